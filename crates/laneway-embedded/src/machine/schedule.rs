//! The schedule of a shard: drafts that wait outside their lanes, ordered by each clock on its own.

use std::time::Duration;

use laneway_core::{Due, Result, Shard};

use super::codec::keys::{self, ClockKind};
use super::codec::{Stored, Waiting, load};
use super::{Now, State, Table, View};

/// A place in the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) due: Due,
    pub(super) ticket: u64,
}

impl Place {
    /// How long ago it became due, in microseconds; negative for the time still to wait.
    pub(super) fn age(&self, now: Now) -> i128 {
        age(self.due, now)
    }
}

/// How long ago a moment was by its own clock, in microseconds; negative if it is to come.
pub(super) fn age(due: Due, now: Now) -> i128 {
    match due {
        Due::Steady(due) => i128::from(now.steady.0) - i128::from(due.0),
        Due::Calendar(due) => i128::from(now.dates.0) - i128::from(due.0),
    }
}

/// How long until then; zero when it is over.
pub(super) fn until(age: i128) -> Duration {
    Duration::from_micros(u64::try_from(-age).unwrap_or(0))
}

/// Enters a draft.
pub(super) fn enter<S: State>(state: &mut S, shard: Shard, ticket: u64, waiting: &Waiting) {
    state.put_new(Table::Schedule, &keys::shard_number(shard, ticket), &waiting.to_row());
    state.put_new(Table::ScheduleDue, &keys::schedule_due(shard, waiting.due, ticket), &[]);
}

/// Takes a draft out.
pub(super) fn leave<S: State>(state: &mut S, shard: Shard, place: Place) {
    state.delete(Table::Schedule, &keys::shard_number(shard, place.ticket));
    state.delete(Table::ScheduleDue, &keys::schedule_due(shard, place.due, place.ticket));
}

/// A waiting draft.
pub(super) fn find<S: View>(state: &S, shard: Shard, ticket: u64) -> Result<Option<Waiting>> {
    load(state, Table::Schedule, &keys::shard_number(shard, ticket))
}

/// The first places, those that are due for longest first, then by number.
pub(super) fn first<S: View>(state: &S, now: Now, shard: Shard, limit: usize) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for clock in ClockKind::ALL {
        let prefix = keys::schedule_clock(shard, clock);
        for (key, _) in state.scan(Table::ScheduleDue, &prefix, None, limit)? {
            let (due, ticket) = keys::schedule_of(&key)?;
            places.push(Place { due, ticket });
        }
    }
    places.sort_by_key(|place| (-place.age(now), place.ticket));
    places.truncate(limit);
    Ok(places)
}

/// How long until a draft is due; zero when one is, `None` when none waits.
pub(super) fn next_due<S: View>(state: &S, now: Now, shard: Shard) -> Result<Option<Duration>> {
    Ok(first(state, now, shard, 1)?.first().map(|place| until(place.age(now))))
}
