//! The schedule of a shard: drafts that wait outside their lanes, ordered by each clock on its own.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Due, Result, Shard, StoreError};

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

/// Reads the drafts of several places one after the other, many with one look at the table where their tickets follow
/// each other: drafts that are due at one moment were mostly entered together.
pub(super) struct Drafts<'a> {
    shard: Shard,
    places: std::slice::Iter<'a, Place>,
    /// Rows read ahead, by ticket.
    ahead: VecDeque<(u64, Bytes)>,
    /// How many rows the next look reads.
    at_once: usize,
}

impl<'a> Drafts<'a> {
    const AT_ONCE_MAX: usize = 64;
    /// Rows read ahead may be in vain, so large ones are read a few at a time.
    const BYTES_MAX: usize = 64 << 10;

    pub(super) fn new(shard: Shard, places: &'a [Place]) -> Self {
        Self { shard, places: places.iter(), ahead: VecDeque::new(), at_once: 4 }
    }

    /// The next place and its draft.
    ///
    /// # Errors
    /// Returns [`StoreError::Corrupt`] if the draft of the place is missing.
    pub(super) fn next<S: View>(&mut self, state: &S) -> Result<Option<(Place, Waiting)>> {
        let place = self.places.as_slice().first().copied();
        if let Some(Place { ticket, .. }) = place
            && self.ahead.front().is_none_or(|(found, _)| *found != ticket)
        {
            self.read(state, ticket)?;
        }
        self.places.next();
        let Some(place) = place else { return Ok(None) };
        match self.ahead.pop_front() {
            Some((ticket, row)) if ticket == place.ticket => Ok(Some((place, Waiting::from_row(row)?))),
            _ => {
                let what = format!(
                    "schedule of shard {}: the draft of ticket {} is missing",
                    self.shard, place.ticket
                );
                Err(StoreError::Corrupt { what })
            }
        }
    }

    fn read<S: View>(&mut self, state: &S, ticket: u64) -> Result<()> {
        let follow =
            self.places.as_slice().windows(2).take_while(|pair| pair[0].ticket + 1 == pair[1].ticket);
        let limit = 1 + follow.take(self.at_once - 1).count();
        self.ahead.clear();
        if limit == 1 {
            let row = state.get(Table::Schedule, &keys::shard_number(self.shard, ticket))?;
            self.ahead.extend(row.map(|row| (ticket, row)));
            return Ok(());
        }
        let before = ticket.checked_sub(1).map(|before| keys::shard_number(self.shard, before));
        let after = before.as_ref().map(|key| &key[..]);
        let rows = state.scan(Table::Schedule, &keys::shard(self.shard), after, limit)?;
        let bytes: usize = rows.iter().map(|(_, row)| row.len()).sum();
        self.at_once = if bytes > Self::BYTES_MAX { 2 } else { (2 * self.at_once).min(Self::AT_ONCE_MAX) };
        for (key, row) in rows {
            self.ahead.push_back((keys::last_number(&key)?, row));
        }
        Ok(())
    }
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
