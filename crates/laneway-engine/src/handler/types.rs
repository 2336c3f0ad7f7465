//! What a handler is given and what it answers, as bytes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::Versioned;
use laneway_core::{Draft, Event, EventId, Partition, RunFence, Seat, Steady};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::cancel::CancelToken;
use super::progress::Progress;

/// How the error of a run begins whose handler panicked.
pub(crate) const PANICKED: &str = "panicked: ";
/// The same for one that took too long.
pub(crate) const TIMED_OUT: &str = "timed out after ";

/// User code as the engine calls it. Panics are caught and count as failures.
pub trait Handler: Send + Sync + 'static {
    /// Runs events. The future is dropped when the run is out of time or was cancelled and did not stop.
    fn call(&self, run: Run) -> Running;

    /// How long it may take beyond its deadline, or after it was asked to stop: for one that ends its work itself and
    /// waits for that, such as a process. Default: nothing beyond the deadline.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }
}

/// A handler at work.
pub type Running = Pin<Box<dyn Future<Output = Vec<LaneAnswer>> + Send>>;

impl<F, A> Handler for F
where
    F: Fn(Run) -> A + Send + Sync + 'static,
    A: Future<Output = Vec<LaneAnswer>> + Send + 'static,
{
    fn call(&self, run: Run) -> Running {
        Box::pin(self(run))
    }
}

/// One call of a handler: usually one event; a batch of one lane; or the heads of several lanes.
#[derive(Debug)]
pub struct Run {
    /// The processor on the partition that the events live in.
    pub seat: Seat,
    /// Name of the stream.
    pub stream: Arc<str>,
    /// Name of the processor.
    pub processor: Arc<str>,
    /// Where the events live.
    pub partition: Partition,
    /// What to run, lane by lane.
    pub lanes: Vec<LaneRun>,
    /// When the run is dropped and counts as failed.
    pub deadline: Option<Steady>,
    /// How long it may take; a remote worker's time counts from its claim.
    pub(crate) timeout: Option<Duration>,
    /// Tells that the run is to stop.
    pub cancel: CancelToken,
}

/// Events of one lane to run, in order.
#[derive(Debug, Clone)]
pub struct LaneRun {
    /// At least one; more only with a lane batch.
    pub events: Vec<Event>,
    /// Which attempt at the first event, from 1.
    pub attempt: u32,
    /// Sorts higher for every later run of the lane.
    pub fence: RunFence,
    /// The lane's state as the last settled run left it.
    pub state: Option<Versioned>,
    /// Latest mode: the last event of the lane that was done.
    pub last_done: Option<LastDone>,
    /// Where the handler says how far it is.
    pub progress: Progress,
}

/// The last event of a lane that a processor has done (latest mode).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastDone {
    /// Which event.
    pub id: EventId,
    /// Its life of the object.
    pub incarnation: u64,
    /// Its generation.
    pub generation: u64,
    /// Its payload, with [`keep_last`](crate::ProcessorSettings::keep_last).
    pub data: Option<Bytes>,
}

/// What a handler answers for one lane of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneAnswer {
    /// One entry per event that is done, from the first on.
    pub done: Vec<Done>,
    /// What becomes of the lane's state; counts only if at least one event is done.
    pub state: StateChange,
    /// What became of the first event that is not done; `None` leaves it waiting.
    pub failure: Option<Failure>,
    /// Told once all this is durable.
    pub when_durable: WhenDurable,
}

/// Tells somebody that an answer is durable. Says nothing about what was answered.
#[derive(Debug, Clone, Default)]
pub struct WhenDurable(Option<Told>);

/// Who wants to know.
#[derive(Debug, Clone)]
enum Told {
    /// Somebody who waits here.
    Here(Arc<Mutex<Option<oneshot::Sender<()>>>>),
    /// Whoever filed the request with this number.
    Request(u64),
}

impl WhenDurable {
    /// A signal, and where to wait for it. The wait fails when the seat was lost before.
    pub fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Some(Told::Here(Arc::new(Mutex::new(Some(sender)))))), receiver)
    }

    /// The answer came by a request, which is answered in the same commit.
    pub(crate) fn for_request(number: u64) -> Self {
        Self(Some(Told::Request(number)))
    }

    /// The request that it came by.
    pub(crate) fn request(&self) -> Option<u64> {
        if let Some(Told::Request(number)) = &self.0 { Some(*number) } else { None }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn tell(&self) {
        let Some(Told::Here(shared)) = &self.0 else { return };
        if let Some(sender) = shared.lock().take() {
            // Whoever asked may have gone.
            let _gone = sender.send(());
        }
    }
}

/// Who is told is no part of what was answered.
impl PartialEq for WhenDurable {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for WhenDurable {}

/// One event that is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// What a job's submitter gets.
    pub result: Option<Bytes>,
    /// Events to send, in order.
    pub emits: Vec<Emission>,
}

/// An event to send to a stream, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emission {
    /// Where to.
    pub stream: String,
    /// What.
    pub draft: Draft,
}

/// What a run does to its lane's state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StateChange {
    /// Nothing.
    #[default]
    Keep,
    /// The new value.
    Set(Bytes),
    /// Removes it.
    Remove,
}

/// Why an event is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong, for people.
    pub error: String,
    /// Whether another attempt may help.
    pub retry: Retry,
}

/// What a failure says about another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// As the policy says.
    ByPolicy,
    /// After this time, if the policy allows another attempt at all.
    After(Duration),
    /// As the policy says, but the event is not given up before it has failed alone: it ran with others, and nobody knows
    /// which of them it was.
    Alone,
    /// Never: the same would happen again.
    Never,
    /// The run did not take place: the event is its lane's head again, and no attempt is counted.
    NotRun,
}

impl Failure {
    /// In one word, for traces.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.error {
            error if error.starts_with(PANICKED) => "panic",
            error if error.starts_with(TIMED_OUT) => "timeout",
            _ => "handler",
        }
    }
}

impl LaneAnswer {
    /// All events of a lane run are done, without results.
    pub fn all_done(run: &LaneRun) -> Self {
        Self { done: vec![Done::default(); run.events.len()], ..Self::default() }
    }

    /// The one event is done with this result.
    pub fn done(result: Option<Bytes>) -> Self {
        Self { done: vec![Done { result, emits: Vec::new() }], ..Self::default() }
    }

    /// Nothing is done; the first event failed.
    pub fn failed(error: impl Into<String>, retry: Retry) -> Self {
        Self { failure: Some(Failure { error: error.into(), retry }), ..Self::default() }
    }
}
