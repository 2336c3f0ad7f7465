//! Looking at the table without touching it: counts, lanes, and why a lane waits.

use std::hash::Hash;

use super::item::ItemId;
use super::lane::{Block, Lane};
use super::state::Table;
use super::words::Tick;

/// The one reason why a lane, or an item in it, does not start now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Nothing runs or waits.
    Idle,
    /// It runs; nothing else of the lane waits.
    Running {
        /// Which item.
        id: ItemId,
        /// Since when.
        since: Tick,
        /// Which run of it.
        attempt: u32,
    },
    /// The lane was paused.
    Paused,
    /// The head failed and stays until the lane is resumed or the item cancelled.
    Parked {
        /// The head.
        id: ItemId,
    },
    /// The head asked for another run later.
    RetryAt {
        /// The head.
        id: ItemId,
        /// When.
        at: Tick,
        /// Runs so far.
        attempts: u32,
    },
    /// It waits for an earlier item of its lane.
    Behind {
        /// The earlier item: the running one, else the head.
        id: ItemId,
        /// Since when that one runs, if it does.
        since: Option<Tick>,
    },
    /// The head may start, but as many items run as may run at once.
    AtConcurrency {
        /// How many.
        limit: usize,
    },
    /// The head may start and waits for its turn.
    Ready,
}

/// A lane's status in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneStatus {
    /// Nothing runs or waits; kept for what it remembers.
    Idle,
    /// Its head may start.
    Waiting,
    /// An item runs.
    Running,
    /// Its head is in back-off.
    Retrying,
    /// Its head stays until resumed.
    Parked,
    /// Paused.
    Paused,
}

/// One lane as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneView<K> {
    /// Its key.
    pub key: K,
    /// Its status.
    pub status: LaneStatus,
    /// Items waiting in it.
    pub waiting: usize,
    /// Its running item.
    pub running: Option<ItemId>,
}

/// Counts over the whole table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Snapshot {
    /// Lanes that exist, remembered ones included.
    pub lanes: usize,
    /// Items waiting.
    pub waiting: usize,
    /// Items running.
    pub running: usize,
    /// Lanes whose head may start.
    pub ready: usize,
    /// Lanes whose head is in back-off.
    pub retrying: usize,
    /// Lanes whose head is parked.
    pub parked: usize,
    /// Lanes that are paused.
    pub paused: usize,
    /// Idle lanes kept for what they remember (latest mode).
    pub remembered: usize,
    /// Places for lanes held in memory, used or not.
    pub room: usize,
}

impl<K: Hash + Eq + Clone, T: Clone> Table<K, T> {
    /// Why the next waiting item of a lane does not start, or what the lane does if nothing waits.
    #[must_use]
    pub fn why(&self, key: &K) -> Why {
        self.shelf.find(key).map_or(Why::Idle, |place| self.why_lane(&self.shelf[place]))
    }

    /// Why one item does not start; `Idle` when it is not in the table.
    #[must_use]
    pub fn why_item(&self, key: &K, id: ItemId) -> Why {
        let Some(lane) = self.shelf.find(key).map(|place| &self.shelf[place]) else { return Why::Idle };
        match (lane.running(), lane.head()) {
            (Some(running), _) if running.id == id => running_why(lane).unwrap_or(Why::Idle),
            (_, Some(head)) if head.id == id => self.why_lane(lane),
            (running, Some(head)) if lane.holds(id) => {
                Why::Behind { id: running.unwrap_or(head).id, since: running.map(|_| lane.running_since) }
            }
            _ => Why::Idle,
        }
    }

    fn why_lane(&self, lane: &Lane<K, T>) -> Why {
        let Some(head) = lane.head() else {
            let quiet = if lane.paused { Why::Paused } else { Why::Idle };
            return running_why(lane).unwrap_or(quiet);
        };
        match (lane.running(), lane.block) {
            // A pause outlasts the present run, so it is the reason even while something runs.
            _ if lane.paused => Why::Paused,
            (_, Block::Parked) => Why::Parked { id: head.id },
            (_, Block::RetryAt(at)) => Why::RetryAt { id: head.id, at, attempts: head.attempt },
            (Some(running), Block::None) => Why::Behind { id: running.id, since: Some(lane.running_since) },
            (None, Block::None) if self.running >= self.settings.concurrency => {
                Why::AtConcurrency { limit: self.settings.concurrency }
            }
            (None, Block::None) => Why::Ready,
        }
    }

    /// Items of a lane, the running one included.
    #[must_use]
    pub fn len_of(&self, key: &K) -> usize {
        self.shelf.find(key).map_or(0, |place| self.shelf[place].len())
    }

    /// The running item of a lane.
    #[must_use]
    pub fn running_of(&self, key: &K) -> Option<T> {
        let place = self.shelf.find(key)?;
        self.shelf[place].running().map(|item| item.payload.clone())
    }

    /// The first items of a lane that wait, in order.
    #[must_use]
    pub fn behind(&self, key: &K, max: usize) -> Vec<(ItemId, T)> {
        let Some(place) = self.shelf.find(key) else { return Vec::new() };
        self.shelf[place].waiting().take(max).map(|item| (item.id, item.payload.clone())).collect()
    }

    /// All items with their lanes, in no particular order of lanes.
    pub fn items(&self) -> impl Iterator<Item = (&K, &T)> {
        self.shelf.lanes().flat_map(|lane| lane.items().map(|item| (&lane.key, &item.payload)))
    }

    /// Counts, without looking at any lane.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        use super::lane::ListName;
        Snapshot {
            lanes: self.shelf.len(),
            waiting: self.waiting,
            running: self.running,
            ready: self.shelf.ready_len(),
            retrying: self.retries.len(),
            parked: self.parked,
            paused: self.paused,
            remembered: self.shelf.list_len(ListName::Remembered),
            room: self.shelf.room(),
        }
    }

    /// The lanes that exist, in no particular order.
    pub fn lanes(&self) -> impl Iterator<Item = LaneView<K>> {
        self.shelf.lanes().map(|lane| LaneView {
            key: lane.key.clone(),
            status: status(lane),
            waiting: lane.waiting_len(),
            running: lane.running().map(|item| item.id),
        })
    }
}

fn running_why<K, T>(lane: &Lane<K, T>) -> Option<Why> {
    let running = lane.running()?;
    Some(Why::Running { id: running.id, since: lane.running_since, attempt: running.attempt })
}

fn status<K, T>(lane: &Lane<K, T>) -> LaneStatus {
    match lane.block {
        _ if lane.runs => LaneStatus::Running,
        _ if lane.paused => LaneStatus::Paused,
        Block::Parked => LaneStatus::Parked,
        Block::RetryAt(_) => LaneStatus::Retrying,
        Block::None if lane.head().is_none() => LaneStatus::Idle,
        Block::None => LaneStatus::Waiting,
    }
}
