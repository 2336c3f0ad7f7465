//! Commit: what the owner of a seat settles in one step.

use std::time::Duration;

use bytes::Bytes;

use crate::clock::Timestamp;
use crate::event::{Draft, Event};
use crate::ids::{CommitId, EventId, Fence, Nonce, Seat, StreamId};
use crate::key::Key;
use crate::lane::{LaneName, LaneRecord};
use crate::status::Terminal;
use crate::stream::StartAt;
use crate::window::Passed;

use super::seize::SeatStatus;

/// Everything one commit changes. What is empty changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Whose.
    pub seat: Seat,
    /// Must be equal to what is stored.
    pub fence: Fence,
    /// Names this commit for a repeat.
    pub id: CommitId,
    /// Ids that no longer hold the floor back: ended, or moved to a siding.
    pub passed: Passed,
    /// Ends other than `done`.
    pub endings: Vec<Ending>,
    /// Changed lane records and sidings.
    pub lanes: Vec<LaneChange>,
    /// Changed lane states.
    pub states: Vec<StateWrite>,
    /// New dead letters.
    pub dead: Vec<DeadLetter>,
    /// Dead letters that are none any more: redriven or discarded.
    pub revived: Vec<EventId>,
    /// Events to send to other lanes; numbered and kept in the outbox until forwarded.
    pub emits: Vec<Emit>,
    /// Outbox rows up to this number have reached their shard.
    pub forwarded: Option<u64>,
    /// Requests up to this number had their effect, here or before.
    pub requests_applied: Option<u64>,
    /// Requests that have their effect here, in whatever order, with what is told to whoever filed them.
    pub answers: Vec<Answered>,
    /// Ends of jobs.
    pub jobs: Vec<JobEnd>,
    /// Pauses, resumes or halts the seat.
    pub status: Option<SeatStatus>,
    /// What its owner keeps with the seat from now on, as the engine encodes it; nothing leaves it as it is.
    pub note: Option<Bytes>,
    /// Nothing is running any more: the next owner need not suspect anything.
    pub clean: bool,
    /// Begins the processor anew on this shard.
    pub reset: Option<Reset>,
    /// No caller and no lane waits for this commit. A store that writes in groups may let it wait a few milliseconds
    /// for the next group.
    pub may_wait: bool,
}

impl Commit {
    /// A commit that changes nothing yet.
    pub fn new(seat: Seat, fence: Fence, id: CommitId) -> Self {
        Self {
            seat,
            fence,
            id,
            passed: Passed::default(),
            endings: Vec::new(),
            lanes: Vec::new(),
            states: Vec::new(),
            dead: Vec::new(),
            revived: Vec::new(),
            emits: Vec::new(),
            forwarded: None,
            requests_applied: None,
            answers: Vec::new(),
            jobs: Vec::new(),
            status: None,
            note: None,
            clean: false,
            reset: None,
            may_wait: false,
        }
    }
}

/// An end other than `done`; kept until the event is trimmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Which event.
    pub id: EventId,
    /// How it ended.
    pub end: Terminal,
    /// Why, for people.
    pub reason: Bytes,
    /// The event that took its place, for `superseded`.
    pub winner: Option<EventId>,
}

/// A change of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneChange {
    /// Which.
    pub lane: LaneName,
    /// Its record from now on; `None` makes it plain, which needs an empty siding.
    pub record: Option<LaneRecord>,
    /// Ids that join its siding; they must be passed in this commit or before, or not be beyond the record's `ahead`.
    pub side: Vec<EventId>,
    /// Ids that leave its siding.
    pub unside: Vec<EventId>,
}

/// A change of one lane's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateWrite {
    /// Which lane.
    pub key: Key,
    /// The new value; `None` removes it.
    pub value: Option<Bytes>,
}

/// A kept `failed` event: a copy, so that it outlives retention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The event.
    pub event: Event,
    /// Why it failed.
    pub cause: Bytes,
    /// After how many attempts.
    pub attempts: u32,
    /// When; the store fills it in.
    pub at: Timestamp,
}

/// An event to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emit {
    /// Where to.
    pub stream: StreamId,
    /// What.
    pub draft: Draft,
}

/// A request that had its effect. Others filed before it may still wait for theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Its number.
    pub number: u64,
    /// What came of it, as the engine encodes it; remembered with its token.
    pub answer: Bytes,
}

/// The end of a job. The first one stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Its event.
    pub id: EventId,
    /// How it ended.
    pub end: Terminal,
    /// Why, for ends other than `done`.
    pub error: Bytes,
    /// Attempts it took.
    pub attempts: u32,
    /// When its last run began.
    pub started_at: Option<Timestamp>,
    /// When it ended; the store fills it in.
    pub finished_at: Timestamp,
    /// What the handler returned.
    pub result: JobResult,
    /// How long to keep this.
    pub keep: Duration,
}

/// What a job returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobResult {
    /// Nothing.
    #[default]
    None,
    /// These bytes.
    Inline(Bytes),
    /// Chunks stashed before under (event, nonce).
    Stashed {
        /// The nonce they were stashed under.
        nonce: Nonce,
        /// How many.
        chunks: u32,
    },
}

/// Begins a processor anew on one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Where.
    pub start: StartAt,
    /// Whether the lane states go too.
    pub clear_states: bool,
    /// Whether what was passed before runs without its emits. The owner sees to that: no store looks at it.
    pub quiet: bool,
}

/// The answer to an accepted commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// What the next commit must carry.
    pub fence: Fence,
    /// Every id up to this is passed now.
    pub floor: EventId,
    /// Highest request number.
    pub request_no: u64,
    /// Last number given in the outbox.
    pub emitted: u64,
}
