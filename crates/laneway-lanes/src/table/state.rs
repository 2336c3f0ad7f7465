//! The table itself, the way items leave it, and the one place where a lane changes lists.
//!
//! The operations are in the files named after them: `arrival` (push), `start`, `finish`, `control` (pause, resume,
//! cancel), `advance` (time passes), `view` (looking without touching).

use std::collections::BTreeMap;
use std::hash::Hash;

use super::item::{Item, ItemId};
use super::lane::{Lane, ListName, Place};
use super::latest::Version;
use super::shelf::{Agenda, Shelf};
use super::words::{Priority, Settings, Tick};

/// How an accepted item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Its run was done.
    Done,
    /// Its run failed for good.
    Failed,
    /// A newer item of its lane took its place, or had already done its version.
    Superseded {
        /// The item that won.
        by: ItemId,
    },
    /// It was cancelled.
    Cancelled,
    /// It was not started in time.
    Expired,
}

/// An item that ended without being the one its caller was just finishing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended<T> {
    /// Which item.
    pub id: ItemId,
    /// What was pushed.
    pub payload: T,
    /// How it ended.
    pub ending: Ending,
}

/// What left the table since it was last emptied.
///
/// The table never drops a payload itself: whoever holds a lock around the table can empty this and drop its
/// contents after letting go of the lock.
#[derive(Debug)]
pub struct Outbox<T> {
    /// Items that ended as a consequence: superseded, cancelled, expired.
    pub ended: Vec<Ended<T>>,
    /// Payloads of last done items that are no longer remembered.
    pub forgotten: Vec<T>,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { ended: Vec::new(), forgotten: Vec::new() }
    }
}

impl<T> Outbox<T> {
    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.forgotten.is_empty()
    }
}

/// Lanes and the rules by which their heads start.
///
/// `K` is the key, `T` what is pushed: something cheap to clone, such as an `Arc`, since a turn carries a copy.
///
/// ```
/// use laneway_lanes::table::{Arrival, Table, Tick, Verdict};
///
/// let mut table = Table::new(Default::default());
/// table.push(Arrival::new("alice", "order 1"));
/// table.push(Arrival::new("alice", "order 2"));
/// table.push(Arrival::new("bob", "order 3"));
///
/// // One run per key: the second order of alice is no candidate while the first runs.
/// let first = table.start(Tick::START).expect("alice's head");
/// let second = table.start(Tick::START).expect("bob's head");
/// assert_eq!((first.payload, second.payload), ("order 1", "order 3"));
/// assert!(table.start(Tick::START).is_none());
///
/// table.finish(&first, Verdict::Done);
/// assert_eq!(table.start(Tick::START).map(|turn| turn.payload), Some("order 2"));
/// ```
#[derive(Debug)]
pub struct Table<K, T> {
    pub(super) settings: Settings,
    pub(super) shelf: Shelf<K, T>,
    pub(super) outbox: Outbox<T>,
    /// Heads in back-off, by the moment they may run again.
    pub(super) retries: Agenda,
    /// Waiting items that must start before a moment.
    pub(super) expiries: Agenda,
    pub(super) last_id: u64,
    pub(super) next_stamp: u64,
    /// Turns until the lane that has been ready longest gets one.
    pub(super) until_aged: u32,
    pub(super) waiting: usize,
    pub(super) running: usize,
    pub(super) paused: usize,
    pub(super) parked: usize,
}

/// Where a lane that becomes ready joins its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Back,
    /// Inside its quantum: before the others, with the age it had.
    Front,
}

impl<K: Hash + Eq + Clone, T: Clone> Table<K, T> {
    /// An empty table.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let settings = Settings {
            concurrency: settings.concurrency.max(1),
            quantum: settings.quantum.max(1),
            ..settings
        };
        let until_aged = settings.ageing;
        Self {
            settings,
            shelf: Shelf::new(),
            outbox: Outbox::default(),
            retries: BTreeMap::new(),
            expiries: BTreeMap::new(),
            last_id: 0,
            next_stamp: 0,
            until_aged,
            waiting: 0,
            running: 0,
            paused: 0,
            parked: 0,
        }
    }

    /// Items accepted and not yet ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting + self.running
    }

    /// Whether nothing runs or waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lanes whose head may start.
    #[must_use]
    pub fn ready(&self) -> usize {
        (0..Priority::LEVELS)
            .map(|level| self.shelf.list_len(ListName::Ready(Priority::of_level(level))))
            .sum()
    }

    /// Whether a call to [`start`](Self::start) would give a turn now, leaving aside what time alone would change.
    #[must_use]
    pub fn can_start(&self) -> bool {
        self.running < self.settings.concurrency && self.shelf.ready_len() > 0
    }

    /// Swaps what left the table into `outbox`, which should be empty.
    pub fn swap_outbox(&mut self, outbox: &mut Outbox<T>) {
        debug_assert!(outbox.is_empty(), "an outbox is handed over empty");
        std::mem::swap(&mut self.outbox, outbox);
    }

    /// Whether something left the table that nobody has taken yet.
    #[must_use]
    pub fn has_outbox(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Ends an item that was waiting and has just left its lane.
    pub(super) fn end_waiting(&mut self, item: Item<T>, ending: Ending) {
        self.waiting -= 1;
        self.forget_expiry(&item);
        self.outbox.ended.push(Ended { id: item.id, payload: item.payload, ending });
    }

    pub(super) fn forget_expiry(&mut self, item: &Item<T>) {
        if let Some(expires) = item.expires {
            self.expiries.remove(&(expires, item.id));
        }
    }

    /// Lifts what holds the head of a lane back: a back-off or parking.
    pub(super) fn unblock(&mut self, place: Place) {
        use super::lane::Block;
        let lane = &mut self.shelf[place];
        let block = std::mem::replace(&mut lane.block, Block::None);
        let head = lane.head().map(|item| item.id);
        match (block, head) {
            (Block::RetryAt(at), Some(id)) => {
                self.retries.remove(&(at, id));
            }
            (Block::Parked, _) => self.parked -= 1,
            _ => {}
        }
    }

    /// Puts a lane into the list it belongs in now, or takes it off the shelf. The last step of every operation:
    /// afterwards places are void.
    pub(super) fn place(&mut self, place: Place, join: Join) {
        let lane = &mut self.shelf[place];
        if lane.is_idle() && lane.memory.is_none() {
            self.drop_lane(place);
            return;
        }
        let proper = lane.proper_list();
        if lane.list == proper {
            return;
        }
        if lane.list.is_some() {
            self.shelf.unlink(place);
        }
        match (proper, join) {
            (Some(list @ ListName::Ready(_)), Join::Front) => self.shelf.link_front(list, place),
            (Some(list), _) => {
                self.next_stamp += 1;
                let stamp = self.next_stamp;
                let lane = self.shelf.link_back(list, place);
                lane.ready_stamp = stamp;
                lane.burst = 0;
            }
            (None, _) => {}
        }
        while self.shelf.list_len(ListName::Remembered) > self.settings.remember {
            let Some(oldest) = self.shelf.first(ListName::Remembered) else { break };
            self.drop_lane(oldest);
        }
    }

    fn drop_lane(&mut self, place: Place) {
        if self.shelf[place].list.is_some() {
            self.shelf.unlink(place);
        }
        if let Some(memory) = self.shelf.remove(place)
            && let Some((_, _, Some(payload))) = memory.done
        {
            self.outbox.forgotten.push(payload);
        }
        self.shelf.compact_if_sparse([&mut self.retries, &mut self.expiries]);
    }

    /// The newest version a lane has accepted.
    pub(super) fn accepted(lane: &Lane<K, T>) -> Option<Version> {
        lane.memory.as_ref().map(|memory| memory.accepted)
    }

    /// The next moment at which [`advance`](Self::advance) has something to do.
    #[must_use]
    pub fn next_due(&self) -> Option<Tick> {
        let first = |agenda: &Agenda| agenda.first_key_value().map(|((at, _), _)| *at);
        match (first(&self.retries), first(&self.expiries)) {
            (Some(retry), Some(expiry)) => Some(retry.min(expiry)),
            (retry, expiry) => retry.or(expiry),
        }
    }
}
