//! Drafts and parts of commits with one word each.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::store::{Emit, Ending, JobEnd, JobResult, LaneChange};
use laneway_core::{
    Block, Delay, DelayMode, Draft, Due, EventId, JobDraft, Key, Kind, LaneName, LaneRecord, Passed,
    ProcessorId, StartAfter, StreamId, Terminal, Timestamp,
};

/// A key from text.
pub fn key(text: &str) -> Key {
    Key::new(text.to_owned()).expect("test keys are short")
}

/// The lane of a key.
pub fn lane(text: &str) -> LaneName {
    LaneName::Key(key(text))
}

/// A draft with a key.
pub fn draft(lane: &str, data: &str) -> Draft {
    Draft::new(Some(key(lane)), Kind::new("test").expect("a short kind"), data.to_owned())
}

/// A draft without a key.
pub fn keyless(data: &str) -> Draft {
    Draft { key: None, ..draft("unused", data) }
}

/// A draft that joins its lane after so long.
pub fn delayed(lane: &str, data: &str, by: Duration) -> Draft {
    let delay = Delay { until: StartAfter::Delay(by), mode: DelayMode::Join };
    Draft { delay: Some(delay), ..draft(lane, data) }
}

/// A draft whose end somebody waits for; kept an hour.
pub fn job_draft(lane: &str, data: &str, responder: ProcessorId) -> Draft {
    Draft { job: Some(JobDraft { responder, keep: Duration::from_secs(3_600) }), ..draft(lane, data) }
}

/// Ids as a commit marks them.
pub fn passed(ids: &[EventId]) -> Passed {
    ids.iter().copied().collect()
}

/// An end other than done.
pub fn ending(id: EventId, end: Terminal) -> Ending {
    Ending { id, end, reason: Bytes::from_static(b"reason"), winner: None }
}

/// The end of a job: done, with this result, kept an hour. The store fills in the time, so it is left at zero.
pub fn job_end(id: EventId, result: JobResult) -> JobEnd {
    JobEnd {
        id,
        end: Terminal::Done,
        error: Bytes::new(),
        attempts: 1,
        started_at: None,
        finished_at: Timestamp(0),
        result,
        keep: Duration::from_secs(3_600),
    }
}

/// A result inside the commit.
pub fn inline(text: &str) -> JobResult {
    JobResult::Inline(Bytes::from(text.to_owned()))
}

/// An event to emit.
pub fn emit(stream: StreamId, lane: &str, data: &str) -> Emit {
    Emit { stream, draft: draft(lane, data) }
}

/// A change of one lane that sets its record and leaves its siding alone.
pub fn lane_change(record: LaneRecord) -> LaneChange {
    LaneChange { lane: record.lane.clone(), record: Some(record), side: Vec::new(), unside: Vec::new() }
}

/// A record of a lane whose head gave up.
pub fn parked(lane: LaneName, head: EventId) -> LaneRecord {
    let block = Block::Parked { cause: Bytes::from_static(b"gave up"), at: Timestamp(7) };
    LaneRecord { block: Some(block), head: Some(head), attempts: 3, ..LaneRecord::new(lane) }
}

/// A record of a lane whose head is due again later.
pub fn retrying(lane: LaneName, head: EventId, due: Due) -> LaneRecord {
    let block = Block::Retry { due, cause: Bytes::from_static(b"try again") };
    LaneRecord { block: Some(block), head: Some(head), attempts: 1, ..LaneRecord::new(lane) }
}

/// Adds to drafts what cases vary most.
pub trait DraftExt: Sized {
    /// Named for a repeat; remembered an hour.
    fn dedup(self, id: &str, body: u128) -> Self;
    /// Accepted only after this event.
    fn after(self, prev: Option<EventId>) -> Self;
    /// Numbered at its origin.
    fn at_origin(self, seq: u64) -> Self;
    /// Version of the object it speaks of.
    fn generation(self, incarnation: u64, generation: Option<u64>) -> Self;
}

impl DraftExt for Draft {
    fn dedup(mut self, id: &str, body: u128) -> Self {
        self.dedup = Some(Dedup { id: Bytes::from(id.to_owned()), body, window: Duration::from_secs(3_600) });
        self
    }

    fn after(mut self, prev: Option<EventId>) -> Self {
        self.expect_prev = Some(prev);
        self
    }

    fn at_origin(mut self, seq: u64) -> Self {
        self.origin_seq = Some(seq);
        self
    }

    fn generation(mut self, incarnation: u64, generation: Option<u64>) -> Self {
        self.incarnation = incarnation;
        self.generation = generation;
        self
    }
}
