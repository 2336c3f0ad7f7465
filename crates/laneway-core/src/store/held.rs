//! What keeps a store from deleting old files.

use crate::ids::{EventId, ProcessorId, Shard};

/// A partition that still needs old data. Stores delete files oldest first, so everything after that data stays too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The partition.
    pub shard: Shard,
    /// The first event that must stay; if only job results must stay, the last trimmed event.
    pub event: EventId,
    /// The reason.
    pub by: HeldBy,
    /// Bytes of files from that point on.
    pub bytes: u64,
}

/// Why a partition still needs old data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// This processor has not processed the event.
    Processor(ProcessorId),
    /// The event waits in a parked or retrying lane of this processor.
    Lane(ProcessorId),
    /// The stream keeps its events for some time (`keep`).
    Keep,
    /// Job results have not expired.
    Results,
}

impl HeldBy {
    /// Returns the label used in metrics and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Processor(_) => "processor",
            Self::Lane(_) => "lane",
            Self::Keep => "keep",
            Self::Results => "results",
        }
    }

    /// Returns the processor that blocks deletion, if one does.
    pub fn processor(self) -> Option<ProcessorId> {
        match self {
            Self::Processor(processor) | Self::Lane(processor) => Some(processor),
            Self::Keep | Self::Results => None,
        }
    }
}
