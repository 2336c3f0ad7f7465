//! What workers say and hear.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Partition, Refusal, Steady};

use crate::handler::types::{LaneAnswer, LaneRun};
use crate::lane::OperateError;

/// What a worker wants.
#[derive(Debug, Clone, Default)]
pub struct ClaimWish {
    /// Lanes at most.
    pub lanes: usize,
    /// Events of one lane at most.
    pub events: usize,
    /// How long it has each lane, unless it extends.
    pub lease: Duration,
    /// How long it waits if there is nothing.
    pub wait: Duration,
    /// Its name, for people who ask why a lane waits.
    pub worker: String,
    /// Names the call: the same name again gets the same claims, as far as they are still open.
    pub request: Option<String>,
}

/// A lane that a worker has, until it settles or its lease ends.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Names it.
    pub token: String,
    /// Name of the stream.
    pub stream: Arc<str>,
    /// Where its events live.
    pub partition: Partition,
    /// What to run.
    pub run: LaneRun,
    /// When the lease ends.
    pub expires: Steady,
}

/// A claim was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// What the worker answered is durable.
    Accepted,
    /// It was settled before, or its events have ended otherwise: with this, if that is still known.
    Already(Option<Outcome>),
}

/// What a claim was settled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// So many events, from the first on, were done.
    pub done: usize,
    /// The one after them failed.
    pub failed: bool,
}

impl Outcome {
    pub(super) fn of(answer: &LaneAnswer) -> Self {
        Self { done: answer.done.len(), failed: answer.failure.is_some() }
    }
}

/// Why a claim could not be settled or extended.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The claim is not this worker's any more; what it did counts for nothing.
    #[error("the claim is not open: its lease ended, its event is held up, or its node came to a bad end")]
    Lost,
    /// The token or the answer is not what it must be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nobody owns the seat at the moment: the answer is filed, and asking again tells what came of it.
    #[error("the owner of the claim's seat has not decided yet: ask again")]
    Undecided,
    /// It could not be passed on.
    #[error(transparent)]
    Operate(#[from] OperateError),
}
