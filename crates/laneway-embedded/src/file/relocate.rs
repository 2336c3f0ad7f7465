//! Giving back old segments that still hold a little: what they hold is kept aside as rows (`machine::kept`).
//!
//! Segments go oldest first, so without this one event that waits for long, or one result that is kept for long, would
//! hold back everything that all streams wrote after it. Only what makes up a small part of its segment is moved, and only
//! once the log has some length: moving costs a write of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::{Event, EventId, Result, Shard, Timestamp};

use super::cost;
use super::state::{Reach, SegmentTable, from_files};
use super::store::Shared;
use crate::machine::{self, StoredEnd, View};

/// A log that is shorter than so many segments is left alone.
const SEGMENTS_MIN: u64 = 6;
/// What is still needed of a segment may be one part in so many of it to be moved.
const NEEDED_PART: u64 = 4;
/// How much is moved in one call.
const MOVE_BYTES: usize = 256 << 10;
/// How many job ends are looked at at a time.
const ENDS_AT_ONCE: usize = 1_024;

/// What is still needed of one segment.
#[derive(Debug, Default)]
struct Needed {
    /// By shard: its events, and its ends of jobs.
    shards: BTreeMap<Shard, (Vec<Event>, Vec<StoredEnd>)>,
    bytes: u64,
}

/// Whether so much was written since this segment that it is worth moving something out of it.
pub(super) fn is_worth_it(shared: &Shared, serial: u64) -> bool {
    let segments = shared.log.segments();
    let written = segments.iter().filter(|segment| segment.serial >= serial).map(|segment| segment.end);
    written.sum::<u64>() >= SEGMENTS_MIN * shared.options.segment_bytes
}

/// Moves what is needed of a sealed segment out of it, if that is little. Answers whether nothing in it is needed any more.
pub(super) fn empty_segment(shared: &Arc<Shared>, table: &SegmentTable) -> Result<bool> {
    let limit = shared.options.segment_bytes / NEEDED_PART;
    let Some(needed) = gather(shared, table, limit)? else { return Ok(false) };
    tracing::debug!(
        serial = table.serial,
        bytes = needed.bytes,
        "moved out of an old segment what it still held"
    );
    for (shard, (events, ends)) in needed.shards {
        let through = table.shard(shard).map(|found| found.runs.last);
        move_out(shared, shard, &events, &ends, through)?;
    }
    Ok(true)
}

/// Reads what is needed of a segment; `None` if that is more than so many bytes.
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
        needed.bytes += event.size() as u64;
        if needed.bytes > limit {
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
                needed.bytes += end.bytes() as u64;
                needed.shards.entry(shard).or_default().1.push(end);
            }
        }
        if needed.bytes > limit {
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
        shared.call_blocking(cost::settling(bytes), |state, _| {
            machine::kept::keep(state, shard, these, those, through)
        })?;
        if is_last {
            return Ok(());
        }
    }
}
