//! Lanes and processors as they stand, for people.

use bytes::Bytes;
use laneway_core::store::{SeatStatus, TailView, Versioned};
use laneway_core::{EventId, LaneRecord, Partition, Term};

use super::why::Why;
use crate::dispatch::Paused;

/// One lane of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneStanding {
    /// Its partition.
    pub partition: Partition,
    /// Its end as producers see it; nothing for a lane that never was.
    pub tail: Option<TailView>,
    /// How it stands for each processor.
    pub processors: Vec<ProcessorStanding>,
}

/// A lane that does not go on by itself at once, for one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLane {
    /// Its partition.
    pub partition: Partition,
    /// What holds it up, and since which event.
    pub record: LaneRecord,
    /// Its first event that has not ended.
    pub head: Option<EventId>,
}

/// A dead letter and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its partition.
    pub partition: Partition,
    /// The event, why and when it was given up.
    pub letter: laneway_core::store::DeadLetter,
}

/// A partition on which a processor does not go on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedSeat {
    /// Which.
    pub partition: Partition,
    /// Paused or halted.
    pub status: SeatStatus,
    /// Who paused it, where that is known.
    pub paused: Option<Paused>,
    /// The event whose failure halted it, and why it failed.
    pub failed: Option<(EventId, Bytes)>,
}

/// A seat whose owner is this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedSeat {
    /// The stream's name.
    pub stream: String,
    /// The partition.
    pub partition: Partition,
    /// The processor's name.
    pub processor: String,
    /// Grows with every new owner.
    pub term: Term,
}

/// One lane for one processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorStanding {
    /// The processor's name.
    pub processor: String,
    /// Whether it runs on this partition.
    pub status: SeatStatus,
    /// Who paused it there, while it is paused.
    pub paused: Option<Paused>,
    /// The lane's record, if it is not plain.
    pub record: Option<LaneRecord>,
    /// The first event of the lane that has not ended, as far as the store knows.
    pub head: Option<EventId>,
    /// The processor's state of the lane.
    pub state: Option<Versioned>,
    /// Why it does not go on, or that nothing waits.
    pub why: Why,
}
