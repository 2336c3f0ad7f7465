//! What keeps files of a store from being given back.

use crate::ids::{EventId, ProcessorId, Shard};

/// A partition of which something old is still needed. Files go oldest first, so everything after it stays too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Where it is.
    pub shard: Shard,
    /// The first event that must stay. If only results of jobs do, the last event that went.
    pub event: EventId,
    /// Why it must stay.
    pub by: HeldBy,
    /// Bytes of files from there on.
    pub bytes: u64,
}

/// Why something old is still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// This processor has not passed the event.
    Processor(ProcessorId),
    /// The event waits in a lane of this processor that is parked or backs off.
    Lane(ProcessorId),
    /// The stream keeps its events for a while.
    Keep,
    /// Results of jobs can still be read.
    Results,
}

impl HeldBy {
    /// A word for it, in metrics and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Processor(_) => "processor",
            Self::Lane(_) => "lane",
            Self::Keep => "keep",
            Self::Results => "results",
        }
    }

    /// The processor that has to do something first.
    pub fn processor(self) -> Option<ProcessorId> {
        match self {
            Self::Processor(processor) | Self::Lane(processor) => Some(processor),
            Self::Keep | Self::Results => None,
        }
    }
}
