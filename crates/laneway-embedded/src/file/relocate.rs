//! Giving back old segments that still hold a little: what they hold is kept aside as rows (`machine::kept`).
//!
//! Segments go oldest first, so without this one event that waits for long, or one result that is kept for long, would
//! hold back everything that all streams wrote after it. Rows cost more than the log does, so they are moved only where
//! they take much less room than what they hold back, and only once the log has some length.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::{Event, EventId, Result, Shard, Timestamp};

use super::cost;
use super::group::Cost;
use super::log::Space;
use super::state::{FileState, Reach, SegmentTable, from_files};
use super::store::Shared;
use crate::machine::{self, StoredEnd, View};

/// A log that is shorter than so many segments is left alone.
const SEGMENTS_MIN: u64 = 6;
/// Rows that are moved may take one part in so many of the log that their segment holds back.
const ROWS_PART: u64 = 2;
/// Rows that are moved may take one part in so many of the reserve, which is one segment.
const RESERVE_PART: u64 = 4;
/// How much is moved in one call.
const MOVE_BYTES: usize = 256 << 10;
/// How many job ends are looked at at a time.
const ENDS_AT_ONCE: usize = 1_024;

/// What is still needed of one segment.
#[derive(Debug, Default)]
struct Needed {
    /// By shard: its events, and its ends of jobs.
    shards: BTreeMap<Shard, (Vec<Event>, Vec<StoredEnd>)>,
    /// What they take as rows, with their keys and notes.
    row_bytes: u64,
}

/// Whether the log is long enough since this segment to move something out of it.
pub(super) fn is_log_long(shared: &Shared, serial: u64) -> bool {
    let segments = shared.log.segments();
    let written = segments.iter().filter(|segment| segment.serial >= serial).map(|segment| segment.end);
    written.sum::<u64>() >= SEGMENTS_MIN * shared.options.segment_bytes
}

/// How many bytes of rows the oldest of these segments is worth.
///
/// That is half of the log, shared out by how much of it is needed. Where everything is needed, as with events that are kept
/// for a while or many small results, a segment holds back no more than itself.
pub(super) fn row_bytes_max(shared: &Shared, sealed: &[Arc<SegmentTable>], now: Timestamp) -> u64 {
    let segment = shared.options.segment_bytes;
    let log: u64 = shared.log.segments().iter().map(|segment| segment.end).sum();
    let bytes = |table: &Arc<SegmentTable>| bytes_needed(&shared.state.read(), table, now, segment);
    let needed: u64 = sealed.iter().map(bytes).sum();
    log / needed.div_ceil(segment).max(1) / ROWS_PART
}

/// About how many bytes of rows would be needed of a segment, at most the segment itself; without a look at it.
fn bytes_needed(state: &FileState, table: &SegmentTable, now: Timestamp, segment: u64) -> u64 {
    let (mut all, mut needed) = (0, 0);
    for found in &table.shards {
        let first = found.runs.first.0.saturating_sub(1);
        let events = if found.runs.is_empty() { 0 } else { found.runs.last.0.saturating_sub(first) };
        all += events + found.ends.len();
        let Some(trimmed) = state.shard(found.shard).map(|info| info.trimmed) else { continue };
        needed += events.min(found.runs.last.0.saturating_sub(trimmed.0));
        if table.keep_until >= now || found.ends.last > trimmed {
            needed += found.ends.len();
        }
    }
    let payload = segment * needed / all.max(1);
    (payload + needed * cost::KEPT_ROW as u64).min(segment)
}

/// Moves what is needed of a sealed segment out of it, and answers how many bytes of rows that took; `None` if it would take
/// more than `limit`.
pub(super) fn empty_segment(shared: &Arc<Shared>, table: &SegmentTable, limit: u64) -> Result<Option<u64>> {
    let Some(needed) = gather(shared, table, limit)? else { return Ok(None) };
    tracing::debug!(
        serial = table.serial,
        bytes = needed.row_bytes,
        "moved out of an old segment what it still held"
    );
    // On a full disk a little from the reserve brings back a whole segment. More of it belongs to those that settle.
    let is_little = needed.row_bytes <= shared.options.segment_bytes / RESERVE_PART;
    let space = if is_little { Space::Reserve } else { Space::Ordinary };
    for (shard, (events, ends)) in needed.shards {
        let through = table.shard(shard).map(|found| found.runs.last);
        move_out(shared, shard, &events, &ends, through, space)?;
    }
    Ok(Some(needed.row_bytes))
}

/// Reads what is needed of a segment; `None` if that takes more than so many bytes of rows.
fn gather(shared: &Arc<Shared>, table: &SegmentTable, limit: u64) -> Result<Option<Needed>> {
    let now = shared.clock.now().expiry;
    let mut needed = Needed::default();
    for found in &table.shards {
        let Some(trimmed) = shared.state.read().shard(found.shard).map(|info| info.trimmed) else { continue };
        let is_within = gather_events(shared, found.shard, trimmed, found.runs.last, limit, &mut needed)?
            && gather_ends(shared, table, found.shard, (trimmed, now), limit, &mut needed)?;
        if !is_within {
            return Ok(None);
        }
    }
    Ok(Some(needed))
}

fn gather_events(
    shared: &Arc<Shared>,
    shard: Shard,
    trimmed: EventId,
    last: EventId,
    limit: u64,
    needed: &mut Needed,
) -> Result<bool> {
    let from = trimmed.max(shared.state.read().kept_of(shard).events).next();
    if from > last {
        return Ok(true);
    }
    let mut walk = shared.archive.events(shard, from, Reach::Files);
    while let Some(event) = from_files(walk.next())?.filter(|event| event.id <= last) {
        needed.row_bytes += (event.size() + cost::KEPT_ROW) as u64;
        if needed.row_bytes > limit {
            return Ok(false);
        }
        needed.shards.entry(shard).or_default().0.push(event);
    }
    Ok(true)
}

/// Ends are needed while they can be read, and for as long as their event is there.
fn gather_ends(
    shared: &Arc<Shared>,
    table: &SegmentTable,
    shard: Shard,
    (trimmed, now): (EventId, Timestamp),
    limit: u64,
    needed: &mut Needed,
) -> Result<bool> {
    let Some(list) = table.shard(shard).map(|found| found.ends) else { return Ok(true) };
    if list.is_empty() || (table.keep_until < now && list.last <= trimmed) {
        return Ok(true);
    }
    let mut after = EventId(0);
    loop {
        let ends = from_files(shared.archive.ends_in(table, shard, after, ENDS_AT_ONCE))?;
        let Some(last) = ends.last() else { return Ok(true) };
        after = last.end.id;
        for end in ends {
            let is_needed =
                end.end.id > trimmed || machine::jobs::is_readable(&*shared.state.read(), now, shard, &end)?;
            if is_needed {
                needed.row_bytes += (end.bytes() + cost::KEPT_ROW) as u64;
                needed.shards.entry(shard).or_default().1.push(end);
            }
        }
        if needed.row_bytes > limit {
            return Ok(false);
        }
    }
}

/// Writes rows of a shard in pieces; the last piece says how far its events are kept aside.
fn move_out(
    shared: &Arc<Shared>,
    shard: Shard,
    mut events: &[Event],
    mut ends: &[StoredEnd],
    through: Option<EventId>,
    space: Space,
) -> Result<()> {
    loop {
        let (mut bytes, mut event_count, mut end_count) = (0, 0, 0);
        while bytes < MOVE_BYTES && event_count < events.len() {
            bytes += events[event_count].size() + cost::KEPT_ROW;
            event_count += 1;
        }
        while bytes < MOVE_BYTES && end_count < ends.len() {
            bytes += ends[end_count].bytes() + cost::KEPT_ROW;
            end_count += 1;
        }
        let (these, those) = (&events[..event_count], &ends[..end_count]);
        (events, ends) = (&events[event_count..], &ends[end_count..]);
        let is_last = events.is_empty() && ends.is_empty();
        let through = through.filter(|_| is_last);
        shared.call_blocking(Cost { space, ..cost::settling(bytes) }, |state, _| {
            machine::kept::keep(state, shard, these, those, through)
        })?;
        if is_last {
            return Ok(());
        }
    }
}
