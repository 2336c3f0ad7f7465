//! Lanes that were idle for long and are forgotten, where the stream says so (contract 3.9).
//!
//! The end of a lane has no time. Instead a shard marks now and then how far its ids had come: a lane whose last event is
//! not beyond an old mark is at least as old.

use std::time::Duration;

use laneway_core::{EventId, Key, Result, Shard, Timestamp};

use super::codec::keys::{self, Single};
use super::codec::{Marks, Stored, load};
use super::{Now, State, Table};

/// Most lanes that one call of trim looks at.
const LANES_PER_CALL: usize = 500;
/// Marks in the time that a lane must be idle for: so much of it more may pass before it is forgotten.
const MARKS: u32 = 16;

impl Marks {
    /// Marks the present now and then; answers the last id that is so old.
    fn idle_through(&mut self, now: Timestamp, head: EventId, length: Duration) -> EventId {
        if self.0.last().is_none_or(|(time, _)| time.after(length / MARKS) <= now) {
            self.0.push((now, head));
        }
        match self.0.iter().rposition(|(time, _)| time.after(length) <= now) {
            Some(newest) => {
                self.0.drain(..newest);
                self.0[0].1
            }
            None => EventId(0),
        }
    }
}

/// Forgets the next lanes that were idle for so long and have no event left, and answers how many. A lane with an object is
/// not idle: the object is there to be read.
pub(super) fn forget_lanes<S: State>(
    state: &mut S,
    now: Now,
    shard: Shard,
    head: EventId,
    trimmed: EventId,
    length: Duration,
) -> Result<u64> {
    let row = Single::LaneMarks.of(shard);
    let before: Marks = load(state, Table::Store, &row)?.unwrap_or_default();
    let mut marks = before.clone();
    let through = marks.idle_through(now.calendar, head, length).min(trimmed);
    if marks != before {
        state.put(Table::Store, &row, &marks.to_row());
    }
    if through.0 == 0 {
        return Ok(0);
    }
    let cursor = Single::LaneCursor.of(shard);
    let after = state.get(Table::Store, &cursor)?.map(Key::new).transpose()?;
    let tails = state.tails(shard, after.as_ref(), LANES_PER_CALL)?;
    let last = tails.last().filter(|_| tails.len() == LANES_PER_CALL).map(|(key, _)| key.clone());
    let mut gone = 0;
    for (key, tail) in tails {
        if tail.id <= through && state.get(Table::Object, &keys::object(shard, &key))?.is_none() {
            state.remove_tail(shard, &key);
            gone += 1;
        }
    }
    match (last, after) {
        (Some(last), _) => state.put(Table::Store, &cursor, last.as_ref()),
        (None, Some(_)) => state.delete(Table::Store, &cursor),
        (None, None) => {}
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is idle at each of these times, when ids grow by one each second.
    fn check(length: u64, times: &[u64], expected: &[u64]) {
        let mut marks = Marks::default();
        let found: Vec<u64> = times
            .iter()
            .map(|at| {
                let now = Timestamp(at * 1_000_000);
                marks.idle_through(now, EventId(*at), Duration::from_secs(length)).0
            })
            .collect();
        assert_eq!(found, expected);
        assert!(marks.0.len() <= MARKS as usize + 2, "{marks:?}");
    }

    #[test]
    fn nothing_is_idle_before_its_time_and_everything_soon_after() {
        check(160, &[5, 100, 164, 165, 200, 259, 260, 300], &[0, 0, 0, 5, 5, 5, 100, 100]);
        check(
            160,
            &(1..=2_000).collect::<Vec<_>>(),
            &(1..=2_000).map(|at: u64| late(at)).collect::<Vec<_>>(),
        );
    }

    /// Marks are ten seconds apart, from the first second on.
    fn late(at: u64) -> u64 {
        if at <= 160 { 0 } else { (at - 161) / 10 * 10 + 1 }
    }

    #[test]
    fn a_clock_that_went_back_makes_it_late_and_never_early() {
        check(160, &[1_000, 20, 180, 1_100, 1_170, 1_290], &[0, 0, 0, 0, 1_000, 1_100]);
    }
}
