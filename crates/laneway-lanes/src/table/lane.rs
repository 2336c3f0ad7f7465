//! One lane: what runs, what waits, what holds it back, and its place in a list.
//!
//! Holds state only; the rules are in the files named after the operations.

use super::item::{Item, ItemId, Line};
use super::latest::Version;
use super::words::{Priority, Tick};

/// Where a lane sits on the shelf. Changes when the shelf is compacted.
pub(super) type Place = u32;

/// No lane.
pub(super) const NOWHERE: Place = Place::MAX;

/// The list a lane is linked into. A lane is in one list or in none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListName {
    /// Its head may start.
    Ready(Priority),
    /// Idle, kept only for what it remembers.
    Remembered,
}

/// What keeps the head of a lane from starting, apart from a running item and a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    None,
    RetryAt(Tick),
    Parked,
}

/// Why the running item was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Cancel,
    Supersede(ItemId),
}

/// What latest mode knows of a key beyond what runs and waits.
#[derive(Debug)]
pub(super) struct Memory<T> {
    pub(super) accepted: Version,
    pub(super) done: Option<(ItemId, Version, Option<T>)>,
}

#[derive(Debug)]
pub(super) struct Lane<K, T> {
    pub(super) key: K,
    pub(super) hash: u64,
    pub(super) running: Option<Item<T>>,
    pub(super) running_since: Tick,
    pub(super) stop: Option<Stop>,
    pub(super) waiting: Line<T>,
    /// Waiting items per priority, so that a lane knows its most urgent one without looking through the line.
    pub(super) levels: [u32; Priority::LEVELS],
    pub(super) block: Block,
    pub(super) paused: bool,
    /// Items started in a row since the lane last came from the back of a list.
    pub(super) burst: u32,
    /// When the lane became ready, as a growing number; smaller has waited longer.
    pub(super) ready_stamp: u64,
    pub(super) list: Option<ListName>,
    pub(super) before: Place,
    pub(super) behind: Place,
    pub(super) memory: Option<Box<Memory<T>>>,
}

impl<K, T> Lane<K, T> {
    pub(super) fn new(key: K, hash: u64) -> Self {
        Self {
            key,
            hash,
            running: None,
            running_since: Tick::START,
            stop: None,
            waiting: Line::new(),
            levels: [0; Priority::LEVELS],
            block: Block::None,
            paused: false,
            burst: 0,
            ready_stamp: 0,
            list: None,
            before: NOWHERE,
            behind: NOWHERE,
            memory: None,
        }
    }

    /// The priority of the most urgent waiting item.
    pub(super) fn priority(&self) -> Priority {
        Priority::of_level(self.levels.iter().rposition(|&count| count > 0).unwrap_or(0))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty() && !self.paused
    }

    /// The list this lane belongs in now.
    pub(super) fn proper_list(&self) -> Option<ListName> {
        if self.is_idle() {
            return self.memory.is_some().then_some(ListName::Remembered);
        }
        let held = self.paused || self.running.is_some() || self.block != Block::None;
        (!held && !self.waiting.is_empty()).then(|| ListName::Ready(self.priority()))
    }

    pub(super) fn join(&mut self, item: Item<T>) {
        self.levels[item.priority.level()] += 1;
        self.waiting.push_back(item);
    }

    pub(super) fn rejoin_at_head(&mut self, item: Item<T>) {
        self.levels[item.priority.level()] += 1;
        self.waiting.push_front(item);
    }

    pub(super) fn leave_head(&mut self) -> Option<Item<T>> {
        let item = self.waiting.pop_front()?;
        self.levels[item.priority.level()] -= 1;
        Some(item)
    }

    pub(super) fn leave(&mut self, id: ItemId) -> Option<Item<T>> {
        let item = self.waiting.remove(id)?;
        self.levels[item.priority.level()] -= 1;
        Some(item)
    }
}
