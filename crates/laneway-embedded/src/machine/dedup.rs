//! Dedup ids: what is remembered, for how long, and what makes room (contract 1.13).
//!
//! Bounded by time and by number per shard. A draft that still waits in the schedule is remembered whatever the
//! clock says, and for its whole window again once it has joined its lane.

use hashbrown::HashMap;
use laneway_core::event::Dedup;
use laneway_core::store::Receipt;
use laneway_core::{Conflict, ConflictReason, EventId, Key, Result, Shard, StoreError, Timestamp};

use super::codec::keys::{self, Single};
use super::codec::{Numbered, Remembered, Stored, load};
use super::{Now, State, Table, View};

/// How many rows more than it brings one append makes room for.
const EVICTED_PER_CALL: usize = 16;
/// How much of its bound a shard may go over it, at most by as many rows as one append makes room for. Room is then made
/// for many appends at once, which costs little more than for one.
const OVER_BOUND: u64 = 1_024;

/// The dedup ids of one append, until all of it is checked.
#[derive(Default)]
pub(super) struct Entries {
    /// New entries, in order: row and what to remember.
    new: Vec<(Vec<u8>, Remembered)>,
    index: HashMap<Vec<u8>, usize>,
    /// Rows that end now, with their end of life: over, or the oldest of too many.
    gone: Vec<(Vec<u8>, Timestamp)>,
    count: u64,
    /// Of the rows that end now, those whose time is not over; and how many of them there ever were.
    pub(super) evicted: u64,
    evicted_ever: u64,
}

impl Entries {
    /// The receipt of the first draft under this id, if it is remembered; else the row to remember it by.
    pub(super) fn find<S: View>(
        &mut self,
        state: &S,
        now: Now,
        shard: Shard,
        place: (usize, Option<&Key>),
        dedup: &Dedup,
    ) -> Result<Found> {
        let (index, key) = place;
        let row = keys::dedup(shard, key, &dedup.id);
        if let Some(at) = self.index.get(&row) {
            return answer(&self.new[*at].1, index, dedup).map(Found::Before);
        }
        let Some(stored) = load::<Remembered>(state, Table::Dedup, &row)? else { return Ok(Found::New(row)) };
        if is_alive(state, now, shard, &stored)? {
            return answer(&stored, index, dedup).map(Found::Before);
        }
        if !self.gone.iter().any(|(gone, _)| *gone == row) {
            self.gone.push((row.clone(), stored.until));
        }
        Ok(Found::New(row))
    }

    /// Remembers a draft that took its place.
    pub(super) fn insert(&mut self, row: Vec<u8>, dedup: &Dedup, receipt: &Receipt, from: Timestamp) {
        let event = match receipt {
            Receipt::New { id, .. } => Some(*id),
            _ => None,
        };
        let until = from.after(dedup.window);
        self.index.insert(row.clone(), self.new.len());
        self.new.push((row, Remembered { receipt: receipt.clone(), body: dedup.body, until, event }));
    }

    /// Finds what must go so that no more than `max` are remembered, or a few more. The last check before the changes.
    pub(super) fn make_room<S: View>(&mut self, state: &S, now: Now, shard: Shard, max: u64) -> Result<()> {
        if self.new.is_empty() && self.gone.is_empty() {
            return Ok(());
        }
        let stored = count(state, shard)?.saturating_sub(self.gone.len() as u64);
        self.count = stored + self.new.len() as u64;
        if self.count <= max.saturating_add((max / OVER_BOUND).min(EVICTED_PER_CALL as u64)) {
            return Ok(());
        }
        // A bound that was lowered is reached over several calls, so that none has to remove very many.
        let most = self.new.len() + EVICTED_PER_CALL;
        let over = usize::try_from(self.count.saturating_sub(max)).unwrap_or(usize::MAX).min(most);
        let limit = over.saturating_add(self.gone.len());
        let oldest = state.scan(Table::DedupOrder, &keys::shard(shard), None, limit)?;
        let ended = self.gone.len();
        for (order, _) in oldest {
            let (until, row) = keys::dedup_of(&order)?;
            if self.gone.len() - ended < over && !self.gone[..ended].iter().any(|(gone, _)| *gone == row) {
                self.gone.push((row, until));
            }
        }
        let evicted = self.gone.len() - ended;
        // A bound below what one call brings: even of these only the last stay.
        let dropped = (over - evicted).min(self.new.len());
        self.new.drain(..dropped);
        self.count -= (evicted + dropped) as u64;
        let early = self.gone[ended..].iter().filter(|(_, until)| *until >= now.wall).count();
        self.evicted = (early + dropped) as u64;
        self.evicted_ever = evicted_ever(state, shard)? + self.evicted;
        Ok(())
    }

    /// Writes them.
    pub(super) fn apply<S: State>(self, state: &mut S, shard: Shard) {
        if self.new.is_empty() && self.gone.is_empty() {
            return;
        }
        for (row, until) in &self.gone {
            drop_row(state, row, *until);
        }
        for (row, remembered) in &self.new {
            put_row(state, row, remembered);
        }
        set_count(state, shard, self.count);
        if self.evicted > 0 {
            let row = Numbered(self.evicted_ever).to_row();
            state.put(Table::Store, &Single::DedupEvicted.of(shard), &row);
        }
    }
}

/// Whether an id is taken.
pub(super) enum Found {
    /// Not remembered; this row will.
    New(Vec<u8>),
    /// By the draft with this receipt.
    Before(Receipt),
}

fn answer(remembered: &Remembered, index: usize, dedup: &Dedup) -> Result<Receipt> {
    if remembered.body == dedup.body {
        return Ok(remembered.receipt.clone());
    }
    let reason = ConflictReason::DedupBody { first: remembered.event };
    Err(StoreError::Conflict(Conflict { index: Some(index), reason }))
}

fn is_alive<S: View>(state: &S, now: Now, shard: Shard, remembered: &Remembered) -> Result<bool> {
    Ok(remembered.until >= now.expiry || is_waiting(state, shard, remembered)?)
}

fn is_waiting<S: View>(state: &S, shard: Shard, remembered: &Remembered) -> Result<bool> {
    match (&remembered.receipt, remembered.event) {
        (Receipt::Scheduled { ticket, .. }, None) => {
            Ok(state.get(Table::Schedule, &keys::shard_number(shard, *ticket))?.is_some())
        }
        _ => Ok(false),
    }
}

/// A change to what is remembered of a draft that left the schedule.
pub(super) struct Promotion {
    row: Vec<u8>,
    before: Timestamp,
    after: Remembered,
}

/// What to change when the draft behind a ticket has joined its lane as this event.
pub(super) fn promotion<S: View>(
    state: &S,
    now: Now,
    place: (Shard, Option<&Key>),
    dedup: &Dedup,
    joined: (u64, EventId),
) -> Result<Option<Promotion>> {
    let (shard, key) = place;
    let row = keys::dedup(shard, key, &dedup.id);
    let Some(stored) = load::<Remembered>(state, Table::Dedup, &row)? else { return Ok(None) };
    // The entry may have gone by number and come again for another draft.
    if !matches!(stored.receipt, Receipt::Scheduled { ticket, .. } if ticket == joined.0) {
        return Ok(None);
    }
    let until = stored.until.max(now.wall.after(dedup.window));
    Ok(Some(Promotion {
        row,
        before: stored.until,
        after: Remembered { until, event: Some(joined.1), ..stored },
    }))
}

impl Promotion {
    /// Writes it.
    pub(super) fn apply<S: State>(self, state: &mut S) {
        drop_row(state, &self.row, self.before);
        put_row(state, &self.row, &self.after);
    }
}

/// Remembers what another store remembered. An entry that is there already stays.
pub(super) fn remember<S: State>(
    state: &mut S,
    shard: Shard,
    row: &[u8],
    remembered: &Remembered,
) -> Result<()> {
    if state.get(Table::Dedup, row)?.is_none() {
        let count = count(state, shard)?;
        put_row(state, row, remembered);
        set_count(state, shard, count + 1);
    }
    Ok(())
}

/// Ids that are forgotten because their time is over.
pub(super) struct ExpiredIds {
    over: Vec<(Vec<u8>, Timestamp)>,
    count: u64,
}

/// Looks for ids whose time is over, at most `limit`.
pub(super) fn look_for_expired<S: View>(
    state: &S,
    now: Now,
    shard: Shard,
    limit: usize,
) -> Result<ExpiredIds> {
    let mut over = Vec::new();
    for (order, _) in state.scan(Table::DedupOrder, &keys::shard(shard), None, limit)? {
        let (until, row) = keys::dedup_of(&order)?;
        if until >= now.expiry {
            break;
        }
        let waiting = match load::<Remembered>(state, Table::Dedup, &row)? {
            Some(remembered) => is_waiting(state, shard, &remembered)?,
            None => false,
        };
        if !waiting {
            over.push((row, until));
        }
    }
    let count = if over.is_empty() { 0 } else { count(state, shard)?.saturating_sub(over.len() as u64) };
    Ok(ExpiredIds { over, count })
}

impl ExpiredIds {
    /// Forgets them. Answers how many went.
    pub(super) fn apply<S: State>(self, state: &mut S, shard: Shard) -> u64 {
        if self.over.is_empty() {
            return 0;
        }
        for (row, until) in &self.over {
            drop_row(state, row, *until);
        }
        set_count(state, shard, self.count);
        self.over.len() as u64
    }
}

fn drop_row<S: State>(state: &mut S, row: &[u8], until: Timestamp) {
    state.delete(Table::Dedup, row);
    state.delete(Table::DedupOrder, &keys::dedup_order(until, row));
}

/// Writes a row that does not exist, or was just dropped.
fn put_row<S: State>(state: &mut S, row: &[u8], remembered: &Remembered) {
    state.put_new(Table::Dedup, row, &remembered.to_row());
    state.put_new(Table::DedupOrder, &keys::dedup_order(remembered.until, row), &[]);
}

fn count<S: View>(state: &S, shard: Shard) -> Result<u64> {
    let count = load::<Numbered>(state, Table::Store, &Single::DedupCount.of(shard))?;
    Ok(count.map_or(0, |count| count.0))
}

/// How many dedup ids of a shard ever went before their time.
pub(super) fn evicted_ever<S: View>(state: &S, shard: Shard) -> Result<u64> {
    let count = load::<Numbered>(state, Table::Store, &Single::DedupEvicted.of(shard))?;
    Ok(count.map_or(0, |count| count.0))
}

fn set_count<S: State>(state: &mut S, shard: Shard, count: u64) {
    state.put(Table::Store, &Single::DedupCount.of(shard), &Numbered(count).to_row());
}
