//! How many bytes a call may add to a frame, at most. Only an upper bound: a call that was applied must fit.

use laneway_core::limits::{DEDUP_ID_BYTES_MAX, KEY_BYTES_MAX, PARTITIONS_MAX};
use laneway_core::store::{Append, Commit, Define, JobResult, Request, RequestOp};
use laneway_core::{Block, Draft, LaneName, LaneRecord};

use super::group::Cost;
use super::log::Space;
use crate::machine::expiry::NUMBERED_PER_CALL;
use crate::machine::idle::lanes_per_call;

/// Head of a record, ids, times and small rows that hang on an event or lane, with its key written several times.
const PER_ITEM: usize = 320;
/// What a shard or a seat costs when a whole stream changes.
const PER_SHARD: usize = 2 * PER_ITEM;
/// A key in a row: every zero byte in it takes two.
const KEY_IN_ROW_MAX: usize = 2 * KEY_BYTES_MAX;
/// Deletion of a row with a short key, or what a row of a lane takes beside its name.
const SHORT_ROW: usize = 64;
/// A seat that goes with its stream.
const SEAT_GONE: usize = 24;
/// A run of ids that were never given, in the record of its shard.
const GAP: usize = 24;
/// Two rows of a dedup id that goes, with the longest key and id.
const EVICTED: usize = 2 * (KEY_IN_ROW_MAX + DEDUP_ID_BYTES_MAX + 64);
/// How many dedup ids more than it brings an append lets go.
const EVICTED_PER_APPEND: usize = 16;
/// How many rows of a table one trim takes.
const TRIM_ROWS: usize = 200;
/// What one trim takes of a shard's tables: dedup ids, urgent rows, events kept aside, and six tables whose rows go with the note about
/// them or get another one.
const TRIM: usize = TRIM_ROWS * (EVICTED + 6 * 3 * SHORT_ROW) + 2 * NUMBERED_PER_CALL * SHORT_ROW;
/// What a trim writes of where it goes on looking for idle lanes.
const IDLE_LANES: usize = KEY_BYTES_MAX + 2_048;
/// What a trim writes of how far ids had come, while log time is ahead of the time of day.
const AHEAD_MARKS: usize = 1_024;
/// What one trim takes of a seat's tables: ends other than done.
const TRIM_SEAT: usize = NUMBERED_PER_CALL * SHORT_ROW + PER_ITEM;
/// What the row of an event or job end that is kept aside takes beside it, with the note when it may go.
pub(super) const KEPT_ROW: usize = PER_ITEM;
/// What one promotion writes at most: one draft of the largest size, or several that are small together.
const PROMOTE: usize = 1280 << 10;

fn draft(draft: &Draft) -> usize {
    let key = draft.key.as_ref().map_or(0, |key| key.bytes().len());
    let dedup = draft.dedup.as_ref().map_or(0, |dedup| 4 * (key + dedup.id.len()) + EVICTED + PER_ITEM);
    let delayed = if draft.delay.is_some() { PER_ITEM } else { 0 };
    key + draft.kind.bytes().len()
        + draft.headers.bytes().len()
        + draft.data.len()
        + dedup
        + delayed
        + PER_ITEM
}

fn lane(lane: &LaneName) -> usize {
    match lane {
        LaneName::Key(key) => 2 * key.bytes().len(),
        LaneName::Event(_) => 8,
    }
}

/// What people and handlers said, as far as a record keeps it.
fn words(record: &LaneRecord) -> usize {
    match &record.block {
        Some(Block::Retry { cause: words, .. } | Block::Parked { cause: words, .. }) => words.len(),
        Some(Block::Paused { by: words, .. } | Block::Running { progress: words, .. }) => words.len(),
        Some(Block::Claimed(claim)) => claim.worker.len(),
        Some(Block::Hold { .. } | Block::Diverting { .. }) | None => 0,
    }
}

pub(super) fn append(append: &Append) -> Cost {
    let object =
        append.object.as_ref().and_then(|object| object.value.as_ref()).map_or(0, |value| value.len());
    let evicts = append.drafts.iter().any(|draft| draft.dedup.is_some());
    let evicted = if evicts { EVICTED_PER_APPEND * EVICTED + PER_ITEM } else { 0 };
    let bytes = append.drafts.iter().map(draft).sum::<usize>() + object + evicted + 4 * PER_ITEM;
    Cost { space: Space::Ordinary, bytes, first: false, synced: false, may_wait: false }
}

pub(super) fn commit(commit: &Commit, rows_removed: usize) -> Cost {
    let mut bytes = (3 + rows_removed) * PER_ITEM + 20 * commit.passed.words().len();
    bytes += commit.endings.iter().map(|ending| ending.reason.len() + PER_ITEM).sum::<usize>();
    for change in &commit.lanes {
        let row = lane(&change.lane) + SHORT_ROW;
        // The record and its two index rows, each maybe removed and written again.
        bytes += 6 * row + change.record.as_ref().map_or(0, words) + PER_ITEM;
        bytes += (change.side.len() + change.unside.len()) * 2 * (row + SHORT_ROW);
    }
    for write in &commit.states {
        bytes += write.key.bytes().len() + write.value.as_ref().map_or(0, |value| value.len()) + PER_ITEM;
    }
    for dead in &commit.dead {
        bytes += dead.event.data.len() + dead.event.headers.bytes().len() + dead.cause.len() + 4 * PER_ITEM;
    }
    bytes += commit.answers.iter().map(|answered| answered.answer.len() + PER_ITEM).sum::<usize>();
    bytes += commit.revived.len() * 2 * PER_ITEM;
    bytes += commit.emits.iter().map(|emit| draft(&emit.draft)).sum::<usize>();
    for end in &commit.jobs {
        let result = if let JobResult::Inline(result) = &end.result { result.len() } else { 0 };
        bytes += result + end.error.len() + PER_ITEM;
    }
    Cost {
        space: Space::Reserve,
        bytes,
        first: commit.reset.is_some(),
        synced: false,
        may_wait: commit.may_wait,
    }
}

/// The largest of everything that a definition may have to write again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Catalogue {
    /// Partitions of a stream.
    pub(super) partitions: u32,
    /// Seats of a stream.
    pub(super) seats: usize,
    /// Runs of ids that were never given, in all shards of a stream.
    pub(super) gaps: usize,
    /// Bytes of all processors' names and settings.
    pub(super) settings: usize,
}

/// A definition, beside what there is.
pub(super) fn define(define: &Define, there: Catalogue) -> Cost {
    let (shards, bytes) = match define {
        Define::Stream { settings, .. } => (settings.partitions.min(PARTITIONS_MAX), there.settings),
        Define::Adopt { .. } => (1, 0),
        Define::Import(piece) => (1, piece.bytes()),
        Define::Processor { settings, .. } => (there.partitions, settings.len() + there.settings),
        Define::RemoveStream { .. } => (there.partitions, there.seats * SEAT_GONE),
        // A seal raises the layout of every shard of its stream, a removal the first term.
        Define::Seal { .. } | Define::RemoveProcessor { .. } => (there.partitions, there.settings),
    };
    let bytes = bytes + (shards as usize + 64) * PER_SHARD + there.gaps * GAP;
    Cost { space: Space::Ordinary, bytes, first: true, synced: false, may_wait: false }
}

/// A wish filed with an owner.
pub(super) fn request(request: &Request) -> Cost {
    let bytes = match &request.op {
        RequestOp::Settle { claim, answer } => claim.len() + answer.len(),
        RequestOp::Extend { claim, .. } => claim.len(),
        RequestOp::Pause { by, .. } => by.len() + KEY_BYTES_MAX,
        _ => KEY_BYTES_MAX,
    };
    settling(bytes)
}

/// A call that lets running work go on or end: it goes through on a full disk as long as the reserve lasts.
pub(super) fn settling(bytes: usize) -> Cost {
    Cost { space: Space::Reserve, bytes: bytes + 8 * PER_ITEM, first: false, synced: false, may_wait: false }
}

/// A change of a job: one that waits in the schedule may take a dedup id with it.
pub(super) fn jobs() -> Cost {
    settling(EVICTED)
}

/// A trim of a shard with so many seats, of a stream that forgets idle lanes or not.
pub(super) fn trim(seats: usize, forgets: bool) -> Cost {
    // Of every lane its end, and its state for every seat.
    let forgotten = lanes_per_call(seats) * (1 + seats) * (KEY_IN_ROW_MAX + SHORT_ROW) + IDLE_LANES;
    settling(TRIM + AHEAD_MARKS + seats * TRIM_SEAT + if forgets { forgotten } else { 0 })
}

/// A promotion.
pub(super) fn promote() -> Cost {
    Cost { space: Space::Ordinary, bytes: PROMOTE, first: false, synced: false, may_wait: false }
}
