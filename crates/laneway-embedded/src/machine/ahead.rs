//! Retention while log time is ahead of the time of day.
//!
//! Log time never goes back. If a wrong clock was believed and then corrected, new events carry a time of the future
//! until the wall clock has caught up, and their age cannot be told from it. So a shard in that state marks now and
//! then how far its ids had come: an event that is not beyond an old mark is at least as old.

use laneway_core::clock::CLOCK_JUMP;
use laneway_core::{EventId, Result, Shard};

use super::codec::keys::Single;
use super::codec::{IdleLanes, Stored, load};
use super::{Now, State, Table, gate};

/// Marks in the time for which events are kept: so much of it longer may one stay.
const MARKS: u32 = 16;

/// Marks the present if log time is ahead. Answers the last event that is older than the stream keeps events, by the
/// marks alone.
pub(super) fn mark_age<S: State>(state: &mut S, now: Now, shard: Shard) -> Result<EventId> {
    let keep = gate::stream(state, shard.stream)?.settings.keep;
    let info = gate::shard(state, shard)?;
    let (head, trimmed) = (info.head, info.trimmed);
    let is_ahead = info.time > now.wall.after(CLOCK_JUMP);
    let row = Single::AheadMarks.of(shard);
    let before: Option<IdleLanes> = load(state, Table::Store, &row)?;
    if keep.is_zero() || now.expiry.0 == 0 || (!is_ahead && before.is_none()) {
        return Ok(EventId(0));
    }
    let mut marks = before.clone().unwrap_or_default();
    // A mark of the future was made by a clock that was wrong.
    marks.marks.retain(|(time, _)| *time <= now.wall);
    let due = marks.marks.last().is_none_or(|(time, id)| time.after(keep / MARKS) <= now.wall && *id < head);
    if is_ahead && due {
        marks.marks.push((now.wall, head));
    }
    let old = marks.marks.iter().rposition(|(time, _)| time.after(keep) <= now.expiry);
    marks.marks.drain(..old.unwrap_or(0));
    let through = old.map_or(EventId(0), |_| marks.marks[0].1);
    let over = !is_ahead && marks.marks.last().is_none_or(|(_, id)| *id <= trimmed);
    if over {
        state.delete(Table::Store, &row);
    } else if before.as_ref() != Some(&marks) {
        state.put(Table::Store, &row, &marks.to_row());
    }
    Ok(through)
}
