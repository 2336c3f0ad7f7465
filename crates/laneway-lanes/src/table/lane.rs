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
    /// Whether the first in line runs; the others wait.
    pub(super) runs: bool,
    pub(super) running_since: Tick,
    pub(super) stop: Option<Stop>,
    line: Line<T>,
    /// Waiting items per priority, so that a lane knows its most urgent one without looking through the line.
    levels: [u32; Priority::LEVELS],
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
            runs: false,
            running_since: Tick::START,
            stop: None,
            line: Line::new(),
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
        self.line.is_empty() && !self.paused
    }

    /// The list this lane belongs in now.
    pub(super) fn proper_list(&self) -> Option<ListName> {
        if self.is_idle() {
            return self.memory.is_some().then_some(ListName::Remembered);
        }
        let held = self.paused || self.runs || self.block != Block::None;
        (!held).then(|| ListName::Ready(self.priority()))
    }

    /// The item that runs, else the one that starts next.
    pub(super) fn first(&self) -> Option<&Item<T>> {
        self.line.first()
    }

    /// The item that runs.
    pub(super) fn running(&self) -> Option<&Item<T>> {
        if self.runs { self.line.first() } else { None }
    }

    /// The item that starts next.
    pub(super) fn head(&self) -> Option<&Item<T>> {
        if self.runs { self.line.second() } else { self.line.first() }
    }

    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// Its items, the running one first.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item<T>> {
        self.line.iter()
    }

    /// The items that wait, in order.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Item<T>> {
        self.line.iter().skip(usize::from(self.runs))
    }

    pub(super) fn waiting_len(&self) -> usize {
        self.line.len() - usize::from(self.runs)
    }

    pub(super) fn holds(&self, id: ItemId) -> bool {
        self.line.contains(id)
    }

    pub(super) fn join(&mut self, item: Item<T>) {
        self.levels[item.priority.level()] += 1;
        self.line.push_back(item);
    }

    /// Makes the head the running item.
    pub(super) fn start_head(&mut self) -> &mut Item<T> {
        debug_assert!(!self.runs, "a lane runs one item at a time");
        self.runs = true;
        let item = self.line.first_mut().expect("a ready lane has a head");
        self.levels[item.priority.level()] -= 1;
        item
    }

    /// Makes the running item the head again.
    pub(super) fn return_running(&mut self) -> &Item<T> {
        self.runs = false;
        let item = self.line.first().expect("a running item is in line");
        self.levels[item.priority.level()] += 1;
        item
    }

    pub(super) fn end_running(&mut self) {
        self.runs = false;
        self.line.pop_first();
    }

    pub(super) fn leave_head(&mut self) -> Option<Item<T>> {
        let item = if self.runs { self.line.pop_second() } else { self.line.pop_first() }?;
        self.levels[item.priority.level()] -= 1;
        Some(item)
    }

    /// Takes a waiting item out of the line.
    pub(super) fn leave(&mut self, id: ItemId) -> Option<Item<T>> {
        debug_assert!(self.running().is_none_or(|item| item.id != id), "what runs does not leave");
        let item = self.line.remove(id)?;
        self.levels[item.priority.level()] -= 1;
        Some(item)
    }
}
