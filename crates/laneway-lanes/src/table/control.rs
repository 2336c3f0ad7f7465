//! Pause, resume and cancel, by key.

use std::hash::{BuildHasher, Hash};

use super::item::ItemId;
use super::lane::{Block, Lane, Place, Stop};
use super::state::{Ending, Join, Table};

/// What a cancel did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled<T> {
    /// Waiting items that ended cancelled; they are in the outbox.
    pub waiting: usize,
    /// Running items that are to be stopped; each ends when its turn is finished.
    pub running: Vec<T>,
}

impl<T> Default for Cancelled<T> {
    fn default() -> Self {
        Self { waiting: 0, running: Vec::new() }
    }
}

impl<K: Hash + Eq + Clone, T: Clone> Table<K, T> {
    /// Stops the lane from starting anything; what runs goes on. A lane that does not exist yet may be paused.
    ///
    /// Answers whether this changed anything. A paused lane exists until it is resumed.
    pub fn pause(&mut self, key: K) -> bool {
        let hash = self.shelf.hasher().hash_one(&key);
        let place = self.shelf.find_or_insert(hash, key);
        let was_paused = std::mem::replace(&mut self.shelf[place].paused, true);
        self.paused += usize::from(!was_paused);
        self.place(place, Join::Back);
        !was_paused
    }

    /// Ends a pause, and lets a parked head run again. A back-off still runs its time.
    ///
    /// Answers whether this changed anything.
    pub fn resume(&mut self, key: &K) -> bool {
        let Some(place) = self.shelf.find(key) else { return false };
        let was_paused = std::mem::replace(&mut self.shelf[place].paused, false);
        let was_parked = self.shelf[place].block == Block::Parked;
        self.paused -= usize::from(was_paused);
        if was_parked {
            self.unblock(place);
        }
        self.place(place, Join::Back);
        was_paused || was_parked
    }

    /// Cancels everything of a key: what waits ends, what runs is to be stopped.
    pub fn cancel(&mut self, key: &K) -> Cancelled<T> {
        self.shelf.find(key).map(|place| self.cancel_at(place)).unwrap_or_default()
    }

    /// Cancels what waits in a lane; what runs goes on. Answers how many.
    pub fn cancel_waiting(&mut self, key: &K) -> usize {
        let Some(place) = self.shelf.find(key) else { return 0 };
        self.unblock(place);
        let mut cancelled = 0;
        while let Some(item) = self.shelf[place].leave_head() {
            self.end_waiting(item, Ending::Cancelled);
            cancelled += 1;
        }
        self.place(place, Join::Back);
        cancelled
    }

    /// Cancels one item of a key. Nothing happens when it has already ended.
    pub fn cancel_item(&mut self, key: &K, id: ItemId) -> Cancelled<T> {
        let mut cancelled = Cancelled::default();
        let Some(place) = self.shelf.find(key) else { return cancelled };
        let lane = &self.shelf[place];
        if lane.running().is_some_and(|item| item.id == id) {
            cancelled.running.extend(self.stop_running(place));
            return cancelled;
        }
        if lane.head().is_some_and(|item| item.id == id) {
            self.unblock(place);
        }
        if let Some(item) = self.shelf[place].leave(id) {
            self.end_waiting(item, Ending::Cancelled);
            cancelled.waiting = 1;
            self.place(place, Join::Back);
        }
        cancelled
    }

    /// Cancels everything of every key. Pauses stay.
    pub fn cancel_all(&mut self) -> Cancelled<T> {
        self.cancel_where(|_| true)
    }

    /// Cancels what waits in paused and parked lanes, which nobody would ever start without a resume.
    pub fn cancel_held(&mut self) -> Cancelled<T> {
        let mut cancelled = self.cancel_where(|lane| lane.paused || lane.block == Block::Parked);
        cancelled.running.clear();
        cancelled
    }

    fn cancel_where(&mut self, chosen: impl Fn(&Lane<K, T>) -> bool) -> Cancelled<T> {
        // By their first items, not by their keys: one that panics when it is cloned must not save the others.
        let lanes = self.shelf.lanes().filter(|lane| chosen(lane));
        let firsts: Vec<_> = lanes.filter_map(|lane| Some((lane.hash, lane.first()?.id))).collect();
        let mut total = Cancelled::default();
        for (hash, id) in firsts {
            let is_first = |lane: &Lane<K, T>| lane.first().is_some_and(|item| item.id == id);
            let Some(place) = self.shelf.find_where(hash, is_first) else { continue };
            let cancelled = self.cancel_at(place);
            total.waiting += cancelled.waiting;
            total.running.extend(cancelled.running);
        }
        total
    }

    fn cancel_at(&mut self, place: Place) -> Cancelled<T> {
        let mut cancelled = Cancelled::default();
        self.unblock(place);
        while let Some(item) = self.shelf[place].leave_head() {
            self.end_waiting(item, Ending::Cancelled);
            cancelled.waiting += 1;
        }
        cancelled.running.extend(self.stop_running(place));
        self.place(place, Join::Back);
        cancelled
    }

    fn stop_running(&mut self, place: Place) -> Option<T> {
        let lane = &mut self.shelf[place];
        let running = lane.running()?.payload.clone();
        lane.stop = Some(Stop::Cancel);
        Some(running)
    }
}
