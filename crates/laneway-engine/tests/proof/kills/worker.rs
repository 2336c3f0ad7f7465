//! The process that is killed: sends, submits, runs, and reports every effect of a handler and every answer it got.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use laneway_core::StreamSettings;
use laneway_engine::handler::{Done, Emission, LaneAnswer, LaneRun, Policy, Retry, Run, StateChange};
use laneway_engine::job::{JobStatus, Submit};
use laneway_engine::log::Appending;
use laneway_engine::{Engine, ProcessorSettings};
use tokio::sync::Semaphore;

use super::plan::{self, PRODUCERS, Sum};
use crate::child::{self, LIFE_MAX, report};
use crate::open::open;
use crate::seam;

pub(super) const TEST: &str = "kills::worker::works_until_it_is_killed";
/// The streams with their processors: the first emits into the second.
pub(super) const STREAMS: [(&str, &str, u32); 2] = [("orders", "fold", 4), ("totals", "tally", 2)];
/// Calls of one producer whose jobs have not ended, at most.
const CALLS_AHEAD: usize = 6;

/// What a worker is told.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    pub(super) dir: PathBuf,
    pub(super) life: u64,
    /// First number to be sent, per producer.
    pub(super) from: [u64; PRODUCERS],
    /// And the number to stop at, if it is to stop.
    pub(super) until: Option<[u64; PRODUCERS]>,
}

fn numbers(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

fn parse(list: &str) -> [u64; PRODUCERS] {
    let list: Vec<u64> = list.split(',').map(|number| number.parse().expect("a number")).collect();
    list.try_into().expect("a number per producer")
}

impl Orders {
    pub(super) fn encode(&self) -> String {
        let until = self.until.map_or("-".to_owned(), |until| numbers(&until));
        format!("{} {} {until} {}", self.life, numbers(&self.from), self.dir.display())
    }

    fn decode(text: &str) -> Self {
        let parts: Vec<&str> = text.splitn(4, ' ').collect();
        let [life, from, until, dir] = parts[..] else { panic!("four parts: {text}") };
        Self {
            dir: PathBuf::from(dir),
            life: life.parse().expect("a number"),
            from: parse(from),
            until: (until != "-").then(|| parse(until)),
        }
    }
}

/// Creates the streams of an empty folder.
pub(super) async fn found(dir: &Path) {
    let (store, engine) = open(dir, 0);
    for (stream, _, partitions) in STREAMS {
        let settings = StreamSettings { partitions, ..StreamSettings::default() };
        engine.define_stream(stream, settings).await.expect("a new stream");
    }
    store.close().expect("closes in order");
}

/// Settles one event into its lane's state and emits what follows from it.
fn fold(run: &Run, lane: &LaneRun) -> LaneAnswer {
    let event = &lane.events[0];
    let number = plan::number(&event.data);
    let before = lane.state.as_ref().map_or(Sum::default(), |state| Sum::from_bytes(&state.bytes));
    let key = event.key.as_ref().expect("events of this proof have keys").to_string();
    report(&format!("ran {} {key} {number} {}", run.stream, before.count));
    let is_first = run.stream.as_ref() == STREAMS[0].0;
    if is_first && plan::fails_first(number) && lane.attempt == 1 {
        return LaneAnswer::failed("as planned", Retry::ByPolicy);
    }
    let after = before.with(number);
    let emits = if is_first { plan::emits(number) } else { Vec::new() };
    let emits = emits
        .into_iter()
        .map(|emitted| Emission { stream: STREAMS[1].0.to_owned(), draft: plan::plain(&key, emitted) });
    let done = Done { result: Some(after.to_bytes()), emits: emits.collect() };
    let state = StateChange::Set(after.to_bytes());
    LaneAnswer { done: vec![done], state, ..LaneAnswer::default() }
}

async fn start(engine: &Engine) {
    let policy = Policy {
        backoff: Duration::from_millis(5),
        backoff_max: Duration::from_millis(20),
        // The kills come from outside and are no event's fault.
        crashes_max: u32::MAX,
        ..Policy::default()
    };
    for (stream, processor, _) in STREAMS {
        let settings = ProcessorSettings { policy: policy.clone(), ..ProcessorSettings::default() };
        let handler = |run: Run| async move {
            let answers = run.lanes.iter().map(|lane| fold(&run, lane)).collect();
            // The kill may come between an effect and its settling.
            tokio::task::yield_now().await;
            answers
        };
        engine.process(processor, stream, settings, Arc::new(handler)).await.expect("the stream exists");
    }
}

/// Sends everything from a number on, in order, and reports what was acknowledged and which jobs ended.
async fn produce(engine: Engine, producer: usize, from: u64, until: Option<u64>) {
    let ahead = Arc::new(Semaphore::new(CALLS_AHEAD));
    let mut number = from;
    while until.is_none_or(|until| number < until) {
        let permit = Arc::clone(&ahead).acquire_owned().await.expect("never closed");
        let next = number + plan::batch(number);
        let drafts = (number..next).map(|number| plan::draft(producer, number));
        let mut jobs = Vec::new();
        if plan::are_jobs(number) {
            let submits =
                drafts.map(|draft| Submit { draft, processor: Some(STREAMS[0].1.to_owned()), keep: None });
            let submitted = engine.jobs().submit(STREAMS[0].0, submits.collect()).await.expect("accepted");
            jobs.extend(submitted.into_iter().map(|job| job.expect("accepted").id));
        } else {
            let appending = Appending { drafts: drafts.collect(), object: None };
            let sent = engine.producer().append(STREAMS[0].0, appending).await.expect("accepted");
            sent.into_iter().for_each(|sent| drop(sent.receipt.expect("accepted")));
        }
        let ids = jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        report(&format!("sent {producer} {number} {next} {ids}"));
        let engine = engine.clone();
        // Ends with the process, or with its last job.
        drop(seam::spawn(async move {
            for id in jobs {
                let job = engine.jobs().wait(id, LIFE_MAX).await.expect("a job that was accepted");
                let JobStatus::Ended { end, result, .. } = job.status else { panic!("job {id} did not end") };
                let result = result.map_or(Sum::default(), |result| Sum::from_bytes(&result));
                report(&format!("ended {id} {} {}", end.end, result.count));
            }
            drop(permit);
        }));
        number = next;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_until_it_is_killed() {
    let Some(orders) = child::orders() else { return };
    let orders = Orders::decode(&orders);
    report("\nopening");
    let (store, engine) = open(&orders.dir, orders.life);
    report("ready");
    start(&engine).await;
    let produced: Vec<_> = (0..PRODUCERS)
        .map(|producer| {
            let until = orders.until.map(|until| until[producer]);
            seam::spawn(produce(engine.clone(), producer, orders.from[producer], until))
        })
        .collect();
    let told = seam::within(LIFE_MAX, seam::input_closed()).await;
    assert!(told.is_some(), "nobody killed this process or told it to end");
    for producer in produced {
        producer.await.expect("producers come to an end when they are told where");
    }
    engine.drain(Duration::from_secs(30)).await;
    store.close().expect("closes in order");
    report("closed");
}
