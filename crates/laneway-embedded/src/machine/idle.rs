//! Lanes that were idle for long and are forgotten, where the stream says so (contract 3.9).
//!
//! The end of a lane has no time. Instead a shard marks now and then how far its ids had come: a lane whose last event is
//! not beyond an old mark is at least as old. For each mark that is old enough all lanes are looked at, a piece at a time.

use std::time::Duration;

use laneway_core::{EventId, Key, Result, Seat, Shard, StreamSettings, Timestamp};

use super::codec::keys::{self, Single};
use super::codec::{IdleLanes, Stored, load};
use super::{Now, State, Table, View};

/// Most rows that one call of trim may take when it forgets lanes: the end of each, and its state for each processor.
const ROWS_PER_CALL: usize = 256;
/// Fewest lanes that one call looks at.
const LANES_PER_CALL_MIN: usize = 50;
/// Marks in the time that a lane must be idle for: so much of it more may pass before it is forgotten.
const MARKS: u32 = 16;
/// Most marks, while retention is held up.
const MARKS_MAX: usize = 64;

/// How many lanes one call of trim looks at in a shard with so many seats.
pub(crate) fn lanes_per_call(seats: usize) -> usize {
    (ROWS_PER_CALL / (1 + seats)).max(LANES_PER_CALL_MIN)
}

impl IdleLanes {
    /// Marks the present now and then; answers the last id that is so old, if everything up to it is trimmed.
    fn through(&mut self, now: Timestamp, head: EventId, trimmed: EventId, length: Duration) -> EventId {
        // A mark of the future was made by a clock that was wrong.
        self.marks.retain(|(time, _)| *time <= now);
        let is_due = self.marks.last().is_none_or(|(time, _)| time.after(length / MARKS) <= now);
        if is_due && self.marks.len() < MARKS_MAX {
            self.marks.push((now, head));
        }
        let is_over = |(time, id): &(Timestamp, EventId)| time.after(length) <= now && *id <= trimmed;
        let Some(newest) = self.marks.iter().rposition(is_over) else { return EventId(0) };
        self.marks.drain(..newest);
        self.marks[0].1
    }
}

/// What a trim does about the next lanes that were idle for as long as the stream says and have no event left.
pub(super) struct IdleSweep {
    /// Where the search stands, if that changed.
    idle: Option<IdleLanes>,
    gone: Vec<Key>,
    /// States of those lanes.
    states: Vec<Vec<u8>>,
    more: bool,
}

impl IdleSweep {
    /// Looks at the next lanes. A lane with an object is not idle: the object is there to be read.
    pub(super) fn look<S: View>(
        state: &S,
        now: Now,
        shard: Shard,
        settings: &StreamSettings,
        head: EventId,
        trimmed: EventId,
    ) -> Result<Self> {
        let mut sweep = Self { idle: None, gone: Vec::new(), states: Vec::new(), more: false };
        let Some(length) = settings.forget_lanes_after.filter(|_| now.settled) else { return Ok(sweep) };
        let before: IdleLanes = load(state, Table::Store, &Single::IdleLanes.of(shard))?.unwrap_or_default();
        let mut idle = before.clone();
        // What is kept readable is trimmed no sooner.
        let through = idle.through(now.expiry, head, trimmed, length.max(settings.keep));
        // Every lane is looked at once for each mark.
        let is_findable = |marks: &[(Timestamp, EventId)]| {
            marks.first().is_none_or(|(time, _)| state.has_old_tails(shard, *time))
        };
        if idle.sweep.is_none() && through > idle.swept && is_findable(&idle.marks) {
            idle.sweep = Some((through, None));
        }
        if let Some((through, after)) = idle.sweep.take() {
            match sweep.look_at(state, shard, through, after.as_ref())? {
                Some(last) => idle.sweep = Some((through, Some(last))),
                None => idle.swept = through,
            }
        }
        sweep.more = idle.sweep.is_some();
        sweep.idle = (idle != before).then_some(idle);
        Ok(sweep)
    }

    /// Picks those of the next lanes that are not beyond this id. Answers where to go on.
    fn look_at<S: View>(
        &mut self,
        state: &S,
        shard: Shard,
        through: EventId,
        after: Option<&Key>,
    ) -> Result<Option<Key>> {
        let seats: Vec<(Seat, u32)> = state
            .seats(shard)
            .into_iter()
            .map(|(processor, seat)| (Seat { shard, processor }, seat.head.states_life))
            .collect();
        let limit = lanes_per_call(seats.len());
        let tails = state.old_tails(shard, after, limit)?;
        let last = tails.last().filter(|_| tails.len() == limit).map(|(key, _)| key.clone());
        for (key, tail) in tails {
            if tail.id > through || state.get(Table::Object, &keys::object(shard, &key))?.is_some() {
                continue;
            }
            for (seat, life) in &seats {
                let row = keys::state(*seat, *life, &key);
                if state.get(Table::LaneState, &row)?.is_some() {
                    self.states.push(row);
                }
            }
            self.gone.push(key);
        }
        Ok(last)
    }

    /// Forgets them. Answers how many, and whether there are more to look at.
    pub(super) fn apply<S: State>(self, state: &mut S, shard: Shard) -> (u64, bool) {
        for key in &self.gone {
            state.remove_tail(shard, key);
        }
        for row in &self.states {
            state.delete(Table::LaneState, row);
        }
        if let Some(idle) = &self.idle {
            state.put(Table::Store, &Single::IdleLanes.of(shard), &idle.to_row());
        }
        (self.gone.len() as u64, self.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is idle at each of these times, when the head is the time in seconds and so much of it is trimmed.
    fn check(length: u64, steps: &[(u64, u64)], expected: &[u64]) {
        let mut idle = IdleLanes::default();
        let found: Vec<u64> = steps
            .iter()
            .map(|(at, trimmed)| {
                let now = Timestamp(at * 1_000_000);
                idle.through(now, EventId(*at), EventId(*trimmed), Duration::from_secs(length)).0
            })
            .collect();
        assert_eq!(found, expected);
        assert!(idle.marks.len() <= MARKS_MAX, "{idle:?}");
    }

    #[test]
    fn nothing_is_idle_before_its_time_and_everything_soon_after() {
        let at = |times: &[u64]| times.iter().map(|at| (*at, *at)).collect::<Vec<_>>();
        check(160, &at(&[5, 100, 164, 165, 200, 259, 260, 300]), &[0, 0, 0, 5, 5, 5, 100, 100]);
        let all: Vec<u64> = (1..=2_000).collect();
        // Marks are ten seconds apart, from the first second on.
        let late = |at: &u64| if *at <= 160 { 0 } else { (at - 161) / 10 * 10 + 1 };
        check(160, &at(&all), &all.iter().map(late).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_idle_before_it_is_trimmed() {
        let all: Vec<(u64, u64)> = (1..=3_000).map(|at: u64| (at, at.saturating_sub(400))).collect();
        let late = |(_, trimmed): &(u64, u64)| if *trimmed == 0 { 0 } else { (trimmed - 1) / 10 * 10 + 1 };
        check(160, &all, &all.iter().map(late).collect::<Vec<_>>());
        // Held up for long.
        let stuck: Vec<(u64, u64)> = (1..=3_000).map(|at| (at, 0)).chain([(3_001, 3_001)]).collect();
        let expected: Vec<u64> = std::iter::repeat_n(0, 3_000).chain([631]).collect();
        check(160, &stuck, &expected);
    }

    #[test]
    fn a_clock_that_was_wrong_for_a_while_makes_it_late_and_never_early() {
        let steps = [(9_000, 0), (20, 9_000), (170, 9_000), (179, 9_000), (180, 9_000), (340, 9_000)];
        check(160, &steps, &[0, 0, 0, 0, 20, 180]);
    }
}
