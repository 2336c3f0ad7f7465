//! About how many bytes a piece of an import carries: a bound for stores that must make room before they write.

use super::copied::{DedupRow, EndRow, ObjectRow, SourceRow, TicketRow, Ticketed, TokenRow};
use super::import::Import;
use super::lanes::Versioned;
use super::query::{LaneTail, OutboxRow, RequestRow, Rows, ScheduledRow, SeatView};
use super::{DeadLetter, Ending, JobResult, RequestOp, Source};
use crate::event::{Draft, Event};
use crate::ids::EventId;
use crate::key::Key;
use crate::lane::{Block, LaneName, LaneRecord};
use crate::stream::{ShardInfo, StreamInfo};

/// What a row costs beside its own bytes: numbers, times, flags, and its keys in indexes.
pub(crate) const ROW_BYTES: usize = 512;

/// A row that can say how large it is, at most.
pub(crate) trait Weighed {
    /// Its bytes with everything that hangs on it.
    fn bytes(&self) -> usize;
}

impl Import {
    /// Bytes that a store may have to write for this, at most.
    pub fn bytes(&self) -> usize {
        ROW_BYTES
            + match self {
                Self::Stream(stream) => stream.bytes(),
                Self::Shard(_, rows) | Self::Seat(_, rows) => rows.bytes(),
                Self::Lanes(_, lanes) => sum(lanes),
                Self::Numbers(..) => ROW_BYTES,
                Self::Finish(_, info) => info.bytes(),
            }
    }
}

fn sum<T: Weighed>(rows: &[T]) -> usize {
    rows.iter().map(Weighed::bytes).sum()
}

impl Weighed for Rows {
    fn bytes(&self) -> usize {
        match self {
            Self::Streams(rows) => sum(rows),
            Self::Seats(info, seats) => info.bytes() + sum(seats),
            Self::Tails(rows) => sum(rows),
            Self::Dead(rows) => sum(rows),
            Self::Endings(rows) => sum(rows),
            Self::Requests(rows) => sum(rows),
            Self::Outbox(rows) => sum(rows),
            Self::States(rows) => sum(rows),
            Self::Scheduled(rows) => sum(rows),
            Self::Events(rows) => sum(rows),
            Self::Objects(rows) => sum(rows),
            Self::Dedup(rows) => sum(rows),
            Self::Sources(rows) => sum(rows),
            Self::Tickets(rows) => sum(rows),
            Self::Ends(rows) => sum(rows),
            Self::Sided(rows) => sum(rows),
            Self::Tokens(rows) => sum(rows),
            // These cannot be imported, or are one number.
            Self::Lane(_) | Self::Ended(_) | Self::Urgent(_) | Self::Counts(_) | Self::Store(_) => ROW_BYTES,
        }
    }
}

fn key_bytes(key: Option<&Key>) -> usize {
    key.map_or(0, |key| key.bytes().len())
}

fn draft_bytes(draft: &Draft) -> usize {
    let dedup = draft.dedup.as_ref().map_or(0, |dedup| dedup.id.len());
    draft.data.len()
        + draft.headers.bytes().len()
        + draft.kind.bytes().len()
        + key_bytes(draft.key.as_ref())
        + dedup
}

fn lane_bytes(lane: &LaneName) -> usize {
    // An escaped key may be twice as long, and a lane is named in its record and in three indexes.
    match lane {
        LaneName::Key(key) => 8 * key.bytes().len(),
        LaneName::Event(_) => 64,
    }
}

impl Weighed for StreamInfo {
    fn bytes(&self) -> usize {
        let names = self.processors.iter().map(|found| found.name.len() + found.settings.len());
        let shards = self.settings.partitions as usize * (1 + self.processors.len());
        self.name.len() + names.sum::<usize>() + (shards + self.processors.len() + 2) * ROW_BYTES
    }
}

impl Weighed for ShardInfo {
    fn bytes(&self) -> usize {
        ROW_BYTES + 32 * self.gaps.len()
    }
}

impl Weighed for SeatView {
    fn bytes(&self) -> usize {
        ROW_BYTES + 20 * self.progress.window.words().count()
    }
}

impl Weighed for Event {
    fn bytes(&self) -> usize {
        let texts = self.kind.bytes().len() + self.headers.bytes().len() + key_bytes(self.key.as_ref());
        ROW_BYTES + self.data.len() + texts
    }
}

impl Weighed for LaneTail {
    fn bytes(&self) -> usize {
        ROW_BYTES + key_bytes(Some(&self.key))
    }
}

impl Weighed for DeadLetter {
    fn bytes(&self) -> usize {
        self.event.bytes() + self.cause.len()
    }
}

impl Weighed for Ending {
    fn bytes(&self) -> usize {
        ROW_BYTES + self.reason.len()
    }
}

impl Weighed for RequestRow {
    fn bytes(&self) -> usize {
        let op = match &self.op {
            RequestOp::Settle { claim, answer } => claim.len() + answer.len(),
            RequestOp::Extend { claim, .. } => claim.len(),
            RequestOp::Pause { lane, by } => by.len() + lane.as_ref().map_or(0, lane_bytes),
            RequestOp::Resume { lane } => lane.as_ref().map_or(0, lane_bytes),
            RequestOp::Retry { lane, .. }
            | RequestOp::Skip { lane, .. }
            | RequestOp::Redrive { lane, .. }
            | RequestOp::Discard { lane, .. } => lane_bytes(lane),
            RequestOp::Cancel { .. } | RequestOp::Reset(_) => 0,
        };
        ROW_BYTES + op
    }
}

impl Weighed for OutboxRow {
    fn bytes(&self) -> usize {
        ROW_BYTES + draft_bytes(&self.emit.draft)
    }
}

impl Weighed for (Key, Versioned) {
    fn bytes(&self) -> usize {
        ROW_BYTES + key_bytes(Some(&self.0)) + self.1.bytes.len()
    }
}

impl Weighed for ScheduledRow {
    fn bytes(&self) -> usize {
        ROW_BYTES + draft_bytes(&self.draft)
    }
}

impl Weighed for ObjectRow {
    fn bytes(&self) -> usize {
        ROW_BYTES + key_bytes(Some(&self.key)) + self.value.as_ref().map_or(0, |value| value.len())
    }
}

impl Weighed for DedupRow {
    fn bytes(&self) -> usize {
        ROW_BYTES + 4 * (key_bytes(self.name.key.as_ref()) + self.name.id.len())
    }
}

impl Weighed for SourceRow {
    fn bytes(&self) -> usize {
        let name = if let Source::Named(name) = &self.source { name.len() } else { 64 };
        ROW_BYTES + name
    }
}

impl Weighed for TicketRow {
    fn bytes(&self) -> usize {
        match &self.became {
            Ticketed::Joined(_) => ROW_BYTES,
            Ticketed::Ended(end) => end.bytes(),
        }
    }
}

impl Weighed for EndRow {
    fn bytes(&self) -> usize {
        let result = if let JobResult::Inline(result) = &self.end.result { result.len() } else { 0 };
        ROW_BYTES + self.end.error.len() + result
    }
}

impl Weighed for (EventId, LaneName) {
    fn bytes(&self) -> usize {
        ROW_BYTES + lane_bytes(&self.1)
    }
}

impl Weighed for TokenRow {
    fn bytes(&self) -> usize {
        ROW_BYTES + self.answer.len()
    }
}

impl Weighed for LaneRecord {
    fn bytes(&self) -> usize {
        let block = match &self.block {
            Some(Block::Retry { cause, .. } | Block::Parked { cause, .. }) => cause.len(),
            Some(Block::Paused { by, .. }) => by.len(),
            Some(Block::Running { progress, .. }) => progress.len(),
            Some(Block::Claimed(claim)) => claim.worker.len(),
            Some(Block::Hold { .. } | Block::Diverting { .. }) | None => 0,
        };
        2 * ROW_BYTES + lane_bytes(&self.lane) + block
    }
}
