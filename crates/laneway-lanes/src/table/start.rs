//! Start: which lane's head gets the next turn.
//!
//! The most urgent ready lane, round robin among equals; every `ageing` turns the lane that has been ready longest.

use std::hash::Hash;

use super::item::ItemId;
use super::lane::{Lane, ListName, Place};
use super::latest::Version;
use super::state::{Join, Table};
use super::words::{Mode, Priority, Tick};

/// The last done item of a lane, in latest mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastDone<T> {
    /// Which item.
    pub id: ItemId,
    /// Its version.
    pub version: Version,
    /// What was pushed, with `keep_last`.
    pub payload: Option<T>,
}

/// The right to run one item. Ends with [`Table::finish`].
#[derive(Debug)]
pub struct Turn<K, T> {
    /// Its lane.
    pub key: K,
    /// Which item.
    pub id: ItemId,
    /// What to run.
    pub payload: T,
    /// The version it was accepted with.
    pub version: Version,
    /// Which run of this item it is, from 1.
    pub attempt: u32,
    /// Latest mode: what the lane did last.
    pub last_done: Option<Box<LastDone<T>>>,
    /// Where the lane was when the turn was given; a hint, since compaction moves lanes.
    pub(super) place: Place,
    /// The key's hash, to find a lane that was moved without asking the key, which may panic.
    pub(super) hash: u64,
}

impl<K: Hash + Eq + Clone, T: Clone> Table<K, T> {
    /// Starts the next lane head, if any may start. Lets time pass up to `now` first.
    pub fn start(&mut self, now: Tick) -> Option<Turn<K, T>> {
        if self.next_due().is_some_and(|due| due <= now) {
            self.advance(now);
        }
        if self.running >= self.settings.concurrency {
            return None;
        }
        let place = self.choose()?;
        Some(self.start_at(place, now))
    }

    /// Starts the head of this lane out of its turn, also one that backs off. Nothing while the lane runs, is paused or
    /// has no head.
    pub fn start_lane(&mut self, key: &K, now: Tick) -> Option<Turn<K, T>> {
        if self.next_due().is_some_and(|due| due <= now) {
            self.advance(now);
        }
        let place = self.shelf.find(key)?;
        let lane = &self.shelf[place];
        if lane.running().is_some() || lane.paused || lane.head().is_none() {
            return None;
        }
        self.unblock(place);
        self.place(place, Join::Back);
        let place = self.shelf.find(key)?;
        Some(self.start_at(place, now))
    }

    fn start_at(&mut self, place: Place, now: Tick) -> Turn<K, T> {
        // First of all: a key that panics must leave everything as it was.
        let key = self.shelf[place].key.clone();
        self.until_aged = if self.until_aged <= 1 { self.settings.ageing } else { self.until_aged - 1 };
        let lane = self.shelf.unlink(place);
        lane.burst += 1;
        lane.running_since = now;
        let last_done = match (self.settings.mode, &lane.memory) {
            (Mode::Latest, Some(memory)) => memory.done.as_ref().map(|(id, version, payload)| {
                Box::new(LastDone { id: *id, version: *version, payload: payload.clone() })
            }),
            _ => None,
        };
        let hash = lane.hash;
        let item = lane.start_head();
        item.attempt += 1;
        let expires = item.expires.take();
        let turn = Turn {
            key,
            id: item.id,
            payload: item.payload.clone(),
            version: item.version,
            attempt: item.attempt,
            last_done,
            place,
            hash,
        };
        if let Some(expires) = expires {
            self.expiries.remove(&(expires, turn.id));
        }
        self.waiting -= 1;
        self.running += 1;
        turn
    }

    /// Takes the head that [`start`](Self::start) would give a turn out of the table, for a key that cannot be cloned.
    /// Answers its payload and the runs it had.
    pub(crate) fn refuse_next(&mut self) -> Option<(T, u32)> {
        let place = self.choose()?;
        let item = self.shelf[place].leave_head()?;
        self.waiting -= 1;
        self.forget_expiry(&item);
        self.place(place, Join::Back);
        Some((item.payload, item.attempt))
    }

    fn choose(&self) -> Option<Place> {
        let heads = (0..Priority::LEVELS)
            .rev()
            .filter_map(|level| self.shelf.first(ListName::Ready(Priority::of_level(level))));
        if self.until_aged == 1 {
            heads.min_by_key(|&place| self.shelf[place].ready_stamp)
        } else {
            { heads }.next()
        }
    }

    /// Where the lane of a running turn is now.
    pub(super) fn place_of(&self, turn: &Turn<K, T>) -> Place {
        let runs_here = |lane: &Lane<K, T>| lane.running().is_some_and(|item| item.id == turn.id);
        if self.shelf.get(turn.place).is_some_and(runs_here) {
            return turn.place;
        }
        let place = self.shelf.find_where(turn.hash, runs_here);
        place.expect("a turn is finished once, in the table that gave it")
    }
}
