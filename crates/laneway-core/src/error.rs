//! What can go wrong at the seams, named by what the caller does next.

use std::fmt;
use std::time::Duration;

use crate::ids::{EventId, Incarnation, Seat, Shard, Term};
use crate::period;

/// The cause underneath: a driver's or the operating system's error.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Answer of every store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else owns the seat now: drop everything local for it, do not retry.
    #[error("seat {seat} is fenced: its term is now {current}")]
    Fenced {
        /// The seat that was lost.
        seat: Seat,
        /// Term that is stored.
        current: Term,
    },
    /// The shard was written by another life of the store: adopt it, then repeat the call.
    #[error("shard {shard} belongs to store incarnation {stored:032x}: adopt it first")]
    Adopt {
        /// The shard to adopt.
        shard: Shard,
        /// Incarnation that is stored with it.
        stored: u128,
        /// Incarnation the store has now.
        current: Incarnation,
    },
    /// The shard's keys moved: read the stream's layout again, route anew, repeat.
    #[error("shard {shard} moved: the stream's layout is now {layout}")]
    Moved {
        /// The sealed or re-laid shard.
        shard: Shard,
        /// Layout version to read.
        layout: u32,
    },
    /// An expectation of the call does not hold; nothing was written. Read again and decide.
    #[error("conflict: {0}")]
    Conflict(Conflict),
    /// The ids asked for are gone by retention: go on from `first`.
    #[error("shard {shard} is trimmed: its first event is {first}")]
    Trimmed {
        /// The shard that was read.
        shard: Shard,
        /// First id still there.
        first: EventId,
    },
    /// No room; nothing was written. Try again when there is.
    #[error("full: {0}")]
    Full(FullReason),
    /// The call may or may not have happened: repeat the very same call.
    #[error("no answer while trying to {action}")]
    Unknown {
        /// What was tried.
        action: &'static str,
        /// Why there is no answer.
        #[source]
        source: Cause,
    },
    /// The store refuses all work until somebody mends it; nothing of this call was written.
    #[error("store is down: {reason}")]
    Down {
        /// What happened and what to do.
        reason: String,
    },
    /// No such stream, processor or shard.
    #[error("{what} does not exist")]
    NotFound {
        /// What was named.
        what: String,
    },
    /// The input is wrong whatever the state: correct it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Stored bytes break the format: stop this node and look.
    #[error("corrupt: {what}")]
    Corrupt {
        /// Where, and what is wrong there.
        what: String,
    },
}

/// Which expectation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Index of the draft in the call, where there is one.
    pub index: Option<usize>,
    /// What was expected and what is.
    pub reason: ConflictReason,
}

/// The kinds of failed expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// The dedup id was used for another body.
    DedupBody {
        /// The event that has it; `None` while it is scheduled.
        first: Option<EventId>,
    },
    /// The lane's last event is another one.
    Prev {
        /// What the lane's last id is.
        actual: Option<EventId>,
    },
    /// The object has another version.
    ObjectVersion {
        /// What the version is; 0 when there is no object.
        actual: u64,
    },
    /// The definition or document has another version.
    Version {
        /// What the version is; `None` when it does not exist.
        actual: Option<u64>,
    },
    /// The draft came from an older holder of its source.
    OriginTerm {
        /// The newest term seen from this source.
        actual: Term,
    },
    /// The scheduled event joined its lane already.
    AlreadyDue,
    /// The job has not ended yet.
    Unfinished,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.index {
            write!(f, "event {index}: ")?;
        }
        match &self.reason {
            ConflictReason::DedupBody { first: Some(id) } => {
                write!(f, "dedup_id was used for another body by event {id}")
            }
            ConflictReason::DedupBody { first: None } => f.write_str("dedup_id was used for another body"),
            ConflictReason::Prev { actual: Some(id) } => write!(f, "expect_prev: the lane's last id is {id}"),
            ConflictReason::Prev { actual: None } => f.write_str("expect_prev: the lane has no event"),
            ConflictReason::ObjectVersion { actual } => {
                write!(f, "expect_object_version: the object has version {actual}")
            }
            ConflictReason::Version { actual: Some(version) } => write!(f, "its version is {version}"),
            ConflictReason::Version { actual: None } => f.write_str("it does not exist"),
            ConflictReason::OriginTerm { actual } => write!(f, "origin: its term is now {actual}"),
            ConflictReason::AlreadyDue => f.write_str("the event joined its lane already"),
            ConflictReason::Unfinished => f.write_str("the job has not ended"),
        }
    }
}

/// What there is no room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FullReason {
    /// The disk or memory of the store.
    Store {
        /// What was tried and what to do.
        reason: String,
    },
    /// The stream's own bound.
    Pending {
        /// Events of the shard that some processor has not passed.
        pending: u64,
        /// The shard's part of `max_pending`.
        limit: u64,
    },
}

impl fmt::Display for FullReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { reason } => f.write_str(reason),
            Self::Pending { pending, limit } => {
                write!(f, "max_pending: {pending} events wait in this partition, its limit is {limit}")
            }
        }
    }
}

/// Input that is wrong whatever the state: names the field, the value and the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, must be {limit}")]
pub struct Refusal {
    /// Which field.
    pub field: &'static str,
    /// What it was, shortened.
    pub value: String,
    /// What it must be.
    pub limit: String,
}

impl Refusal {
    /// A refusal; a long value is shortened.
    pub fn new(field: &'static str, value: impl Into<String>, limit: impl Into<String>) -> Self {
        let mut value: String = value.into();
        if value.chars().count() > 80 {
            value = value.chars().take(77).chain("...".chars()).collect();
        }
        Self { field, value, limit: limit.into() }
    }

    /// Refuses a number above its limit.
    pub fn check_max(field: &'static str, value: usize, max: usize) -> Result<(), Self> {
        if value > max { Err(Self::new(field, value.to_string(), format!("at most {max}"))) } else { Ok(()) }
    }

    /// Refuses a length of time above its limit.
    pub fn check_longest(field: &'static str, length: Duration, max: Duration) -> Result<(), Self> {
        if length <= max {
            return Ok(());
        }
        Err(Self::new(field, period::text(length), format!("at most {}", period::text(max))))
    }
}

impl StoreError {
    /// A conflict of the whole call.
    pub fn conflict(reason: ConflictReason) -> Self {
        Self::Conflict(Conflict { index: None, reason })
    }
}
