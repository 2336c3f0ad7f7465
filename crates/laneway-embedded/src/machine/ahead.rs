//! Retention while log time is ahead of the time of day.
//!
//! Log time never goes back. If a wrong clock was believed and then corrected, new events carry a time of the future
//! until the wall clock has caught up, so their age cannot be computed from it. A shard in that state records its newest
//! id from time to time: an event up to an old mark is at least as old as the mark.

use std::time::Duration;

use laneway_core::clock::CLOCK_JUMP;
use laneway_core::{EventId, Result, Shard, ShardInfo};

use super::codec::keys::Single;
use super::codec::{IdleLanes, Stored, load};
use super::{Now, State, Table, View};

/// Marks in the time for which events are kept: so much of it longer may one stay.
const MARKS: u32 = 16;

/// The age marks of a shard, with the pending change to them.
pub(super) struct AgeMarks {
    /// The last event that is older than the stream keeps events, by the marks alone.
    pub(super) aged: EventId,
    change: Option<Change>,
}

enum Change {
    Put(IdleLanes),
    Delete,
}

impl AgeMarks {
    /// Reads the marks and adds one for now if log time is ahead.
    pub(super) fn look<S: View>(
        state: &S,
        now: Now,
        shard: Shard,
        keep: Duration,
        info: &ShardInfo,
    ) -> Result<Self> {
        let is_ahead = info.time > now.wall.after(CLOCK_JUMP);
        let before: Option<IdleLanes> = load(state, Table::Store, &Single::AheadMarks.of(shard))?;
        if keep.is_zero() || !now.settled || (!is_ahead && before.is_none()) {
            return Ok(Self { aged: EventId(0), change: None });
        }
        let mut after = before.clone().unwrap_or_default();
        let marks = &mut after.marks;
        // A mark of the future was made by a clock that was wrong.
        marks.retain(|(time, _)| *time <= now.wall);
        let is_due =
            marks.last().is_none_or(|(time, id)| time.after(keep / MARKS) <= now.wall && *id < info.head);
        if is_ahead && is_due {
            marks.push((now.wall, info.head));
        }
        let old = marks.iter().rposition(|(time, _)| time.after(keep) <= now.expiry);
        marks.drain(..old.unwrap_or(0));
        let aged = old.map_or(EventId(0), |_| marks[0].1);
        let is_over = !is_ahead && marks.last().is_none_or(|(_, id)| *id <= info.trimmed);
        let change = if is_over { Change::Delete } else { Change::Put(after) };
        let is_same = matches!(&change, Change::Put(after) if Some(after) == before.as_ref());
        Ok(Self { aged, change: (!is_same).then_some(change) })
    }

    /// Stores the change.
    pub(super) fn apply<S: State>(self, state: &mut S, shard: Shard) {
        let row = Single::AheadMarks.of(shard);
        match self.change {
            Some(Change::Put(marks)) => state.put(Table::Store, &row, &marks.to_row()),
            Some(Change::Delete) => state.delete(Table::Store, &row),
            None => {}
        }
    }
}
