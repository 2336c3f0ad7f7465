//! Append: events join their lanes.

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::durability::Durability;
use crate::event::{Draft, Due};
use crate::ids::{EventId, Incarnation, ProcessorId, Seq, Shard, Term};
use crate::job::JobId;

/// One append to one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Where to.
    pub shard: Shard,
    /// Store incarnation the caller has learned.
    pub incarnation: Incarnation,
    /// Layout version the caller routed by.
    pub layout: u32,
    /// Where the drafts come from, if repeats are told by number.
    pub origin: Option<Origin>,
    /// The events, 1 to 1,000, in order.
    pub drafts: Vec<Draft>,
    /// Changes the lane's object together with the events; then all drafts have that one key.
    pub object: Option<ObjectWrite>,
}

/// Who numbers the drafts of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The source whose numbers grow.
    pub source: Source,
    /// Which holder of the source; an older one is refused.
    pub term: Term,
}

/// A numbered source of events.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The outbox of a seat. A reset processor and an adopted shard number anew, so both are part of the name.
    Outbox {
        /// Shard that emitted.
        shard: Shard,
        /// Processor that emitted.
        processor: ProcessorId,
        /// Which life of the processor.
        incarnation: u32,
        /// How often the emitting shard was adopted.
        adoptions: u32,
    },
    /// An input task, a schedule, a resumable send, a copy: named by whoever makes it.
    Named(Bytes),
}

/// A producer's change of a lane's object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectWrite {
    /// Version it must have now: 0 for none; `None` writes whatever it is.
    pub expect: Option<u64>,
    /// The new value; `None` removes it.
    pub value: Option<Bytes>,
}

/// What became of the drafts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// One answer per draft, in order.
    pub receipts: Vec<Receipt>,
    /// How safe they are.
    pub durability: Durability,
    /// Version of the object after the call, when it changed.
    pub object_version: Option<u64>,
    /// Dedup ids that made room for those of this call before their time was over.
    pub dedup_evicted: u64,
}

/// What became of one draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It has its place.
    New {
        /// Its id.
        id: EventId,
        /// The event before it in its lane.
        prev: Option<EventId>,
        /// Its number in the lane.
        seq: Option<Seq>,
        /// Its job id, if it is a job.
        job: Option<JobId>,
    },
    /// It was appended before.
    Duplicate {
        /// The first receipt, where it is remembered: by dedup id, not by origin number.
        first: Option<Box<Receipt>>,
    },
    /// A newer generation was accepted before (latest mode); not appended.
    Stale {
        /// The newest accepted: its id.
        newest: EventId,
        /// And its generation.
        generation: u64,
    },
    /// It waits outside its lane.
    Scheduled {
        /// Its number in the schedule.
        ticket: u64,
        /// When it joins.
        due: Due,
        /// The same as a date, for people.
        due_at: Timestamp,
        /// Its job id, if it is a job.
        job: Option<JobId>,
    },
}
