//! Carries a run out: user code is called, its answer is checked, and the seat gets it. Nothing here decides anything.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use laneway_core::{Documents, Seat, Shard, Store, Wakeups};
use tokio::sync::Semaphore;
use tracing::Instrument;

use super::seat::{Finished, RunNo};
use super::turns::NewRun;
use super::workers::{Carrying, Workers};
use crate::cluster::Standing;
use crate::commit::{Prepared, prepare};
use crate::handler::{
    Demand, Failure, Handler, LaneAnswer, Retry, Run, StateChange, WhenDurable, call, said_by,
};
use crate::lane::Waiting;
use crate::log::Catalogue;
use crate::observe::{Meters, Nearby, note_failures, of_run, processing};
use crate::service::{Env, Now, Sender, contained};

/// What the runs of a seat stand on.
pub(crate) struct Ground {
    pub(crate) env: Env,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) documents: Arc<dyn Documents>,
    pub(crate) wakeups: Arc<dyn Wakeups>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) workers: Arc<Workers>,
    /// Free places for runs, over all seats of the processor on this node.
    pub(crate) places: Arc<Semaphore>,
    /// The most places that one seat waits for at a time.
    pub(crate) places_at_once: usize,
    /// The one place for accused lanes, over all seats of all processors on this node.
    pub(crate) alone: Arc<Semaphore>,
    /// Bounds how many seats are taken at the same time, over all processors on this node.
    pub(crate) taking: Arc<Semaphore>,
    pub(crate) stream: Arc<str>,
    pub(crate) processor: Arc<str>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) meters: Meters,
    /// Where those who look find the seat.
    pub(crate) nearby: Nearby,
    /// A free place is one that somebody asked for, and used up by a run: remote workers claim as many as they want.
    pub(crate) demand: Option<Demand>,
    /// Whether others believe this node alive.
    pub(crate) standing: Standing,
    /// How long runs may go on when their seat is to move to another node.
    pub(crate) grace: Duration,
}

/// A place for a run, given back when it is dropped.
pub(crate) struct Place {
    ground: Arc<Ground>,
    is_taken: bool,
}

impl Place {
    /// One that was taken out of the ground's places.
    pub(super) fn taken(ground: &Arc<Ground>) -> Self {
        Self { ground: Arc::clone(ground), is_taken: true }
    }

    /// It is not given back: it was for this one run, or somebody else keeps it.
    pub(super) fn keep(mut self) {
        self.is_taken = false;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_taken {
            self.ground.places.add_permits(1);
        }
    }
}

/// Where a seat learns of runs that are over.
pub(crate) type Finisher = Sender<(RunNo, Finished)>;

/// A run as something to be carried out. Its end reaches the seat whatever happens.
pub(crate) fn carrying(place: Place, seat: Seat, run: NewRun, finisher: Finisher, now: Now) -> Carrying {
    let NewRun { number, lanes, events, cancel } = run;
    let ground = &place.ground;
    let timeout = timeout_of(&events, ground.timeout);
    let deadline = timeout.map(|timeout| now.steady.after(timeout));
    let shard = seat.shard;
    let run = Run {
        seat,
        stream: Arc::clone(&ground.stream),
        processor: Arc::clone(&ground.processor),
        partition: shard.partition,
        lanes,
        deadline,
        timeout,
        cancel,
    };
    let span = processing(&run);
    let work = async move {
        let ground = &place.ground;
        let finished = match contained("run", carry_out(ground, shard, &events, run)).await {
            Ok(finished) => finished,
            Err(fault) => faulty(&ground.env, &events, &fault),
        };
        // The seat may be gone: then nobody wants to know.
        finisher.send((number, finished));
        if ground.demand.is_some() {
            place.keep();
            return None;
        }
        Some(place)
    };
    if span.is_none() { work.boxed() } else { work.instrument(span).boxed() }
}

async fn carry_out(ground: &Ground, shard: Shard, events: &[Vec<Arc<Waiting>>], run: Run) -> Finished {
    let env = &ground.env;
    let began = env.now();
    // A desk counts from the moment a worker takes the run.
    let timeout = run.timeout.filter(|_| ground.demand.is_none());
    let context = of_run(&run);
    let called = call(env, &*ground.handler, run, timeout);
    let answered = match context {
        // In a box of its own: few runs have one.
        Some(context) => Box::pin(context.within(called)).await,
        None => called.await,
    };
    note_failures(&answered);
    let not_run =
        |answer: &LaneAnswer| matches!(&answer.failure, Some(failure) if failure.retry == Retry::NotRun);
    let took = (!answered.iter().all(not_run)).then(|| env.steady().since(began.steady));
    if let Some(took) = took {
        ground.workers.took(took);
    }
    let mut answers = Vec::with_capacity(events.len());
    for (events, answer) in events.iter().zip(answered) {
        answers.push(prepare(env, &*ground.store, &ground.catalogue, shard, events, answer).await);
    }
    Finished { answers, started_at: began.calendar, took }
}

/// How long a run may take: the shortest of what its events ask for and, for those that ask for nothing, the processor's.
fn timeout_of(events: &[Vec<Arc<Waiting>>], usual: Option<Duration>) -> Option<Duration> {
    if events.iter().flatten().all(|waiting| waiting.event.headers.is_empty()) {
        return usual;
    }
    let each = events.iter().flatten().map(|waiting| said_by(&waiting.event.headers).timeout.or(usual));
    each.flatten().min()
}

/// The answer of a run that was lost by a fault of the engine.
fn faulty(env: &Env, events: &[Vec<Arc<Waiting>>], fault: &str) -> Finished {
    let retry = if events.iter().flatten().count() > 1 { Retry::Alone } else { Retry::ByPolicy };
    let failed = || Prepared {
        done: Vec::new(),
        state: StateChange::Keep,
        failure: Some(Failure { error: format!("a fault of the engine: {fault}"), retry }),
        when_durable: WhenDurable::default(),
    };
    let answers = std::iter::repeat_with(failed).take(events.len()).collect();
    Finished { answers, started_at: env.now().calendar, took: None }
}
