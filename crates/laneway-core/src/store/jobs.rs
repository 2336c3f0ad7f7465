//! Jobs: the submitter's view.

use std::time::Duration;

use bytes::Bytes;

use super::commit::JobEnd;
use crate::clock::Timestamp;
use crate::event::Due;
use crate::ids::{EventId, Shard};
use crate::job::JobNumber;
use crate::key::Key;
use crate::lane::LaneRecord;

/// What to do with jobs of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// Reads them; one view per number, in order.
    Get {
        /// Where.
        shard: Shard,
        /// Which.
        numbers: Vec<JobNumber>,
        /// Whether to add result bytes.
        results: bool,
    },
    /// Reads an ended job with its result and lets it live no longer than the grace.
    Take {
        /// Where.
        shard: Shard,
        /// Which.
        number: JobNumber,
        /// How long it stays readable.
        grace: Duration,
    },
    /// Forgets an ended job at once; one that is gone already is fine.
    Forget {
        /// Where.
        shard: Shard,
        /// Which.
        number: JobNumber,
    },
    /// Ends a job that has not joined its lane.
    CancelScheduled {
        /// Where.
        shard: Shard,
        /// Its number in the schedule.
        ticket: u64,
    },
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its number.
    pub number: JobNumber,
    /// Where it stands.
    pub state: JobState,
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// There never was such a job.
    Unknown,
    /// There was; it is forgotten or its time is over.
    Gone,
    /// Not yet in its lane.
    Scheduled {
        /// When it joins.
        due: Due,
    },
    /// In its lane, not ended.
    Pending {
        /// Its event.
        id: EventId,
        /// Its lane.
        key: Option<Key>,
        /// The lane's record, if this event is its head.
        lane: Option<LaneRecord>,
    },
    /// Ended.
    Ended {
        /// How.
        end: Box<JobEnd>,
        /// The result, if it was asked for.
        result: Option<Bytes>,
        /// Until when it can be read.
        keep_until: Timestamp,
    },
}
