//! Push: an item joins its lane, or in latest mode takes the lane's slot, or is stale.

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;

use super::item::{Item, ItemId};
use super::lane::{Memory, Place, Stop};
use super::latest::{Revision, Version};
use super::state::{Ended, Ending, Join, Table};
use super::words::{Mode, Priority, Tick};

/// An item on its way into the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival<K, T> {
    /// Which lane.
    pub key: K,
    /// What to run.
    pub payload: T,
    /// How urgent. Default: normal.
    pub priority: Priority,
    /// Ends expired when it has not started by then. Default: never.
    pub expires: Option<Tick>,
    /// Its version; compared in latest mode only.
    pub revision: Revision,
}

impl<K, T> Arrival<K, T> {
    /// An item of normal priority that never expires.
    pub fn new(key: K, payload: T) -> Self {
        Self { key, payload, priority: Priority::Normal, expires: None, revision: Revision::default() }
    }
}

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed<T> {
    /// It is in its lane, or (latest mode, version already done) has just ended and is in the outbox.
    Accepted {
        /// Its number.
        id: ItemId,
        /// The running item of its lane that is to be stopped because this one is newer.
        stop: Option<T>,
    },
    /// The lane has accepted a newer version, or a delete of this incarnation. It never joined.
    Stale {
        /// Its number.
        id: ItemId,
        /// The version that makes it stale.
        newest: Version,
        /// What was pushed, given back.
        payload: T,
    },
}

impl<K: Hash + Eq + Clone, T: Clone> Table<K, T> {
    /// A copy of the table's hasher, so that a key can be hashed before a lock around the table is taken.
    pub(crate) fn hasher(&self) -> DefaultHashBuilder {
        self.shelf.hasher().clone()
    }

    /// Puts an item into its lane.
    ///
    /// Order: items of one key start in the order of these calls.
    /// Latest mode: see [`Revision`]; a newer item ends what waits in its lane as superseded, also in back-off or
    /// parked, and takes over its place and priority with attempts from zero.
    pub fn push(&mut self, arrival: Arrival<K, T>) -> Pushed<T> {
        let hash = self.shelf.hasher().hash_one(&arrival.key);
        let known = self.find_hashed(hash, &arrival.key);
        self.push_found(ItemId(self.last_id + 1), hash, known, arrival)
    }

    /// The lane of a key whose hash is at hand. Good until the next change of the table.
    pub(crate) fn find_hashed(&self, hash: u64, key: &K) -> Option<Place> {
        self.shelf.find_hashed(hash, key)
    }

    /// [`push`](Self::push) with the item's number and the key's hash and lane at hand. Numbers must grow.
    ///
    /// Neither hashes nor compares nor clones the key, so that a key that panics can do no harm here.
    pub(crate) fn push_found(
        &mut self,
        id: ItemId,
        hash: u64,
        known: Option<Place>,
        arrival: Arrival<K, T>,
    ) -> Pushed<T> {
        debug_assert!(id.0 > self.last_id, "numbers grow in push order");
        self.last_id = id.0;
        let Arrival { key, payload, priority, expires, revision } = arrival;
        let mut item = Item { id, payload, version: revision.as_given(), expires, attempt: 0, priority };
        if self.settings.mode == Mode::Queue {
            let place = known.unwrap_or_else(|| self.shelf.insert(hash, key));
            self.join(place, item);
            return Pushed::Accepted { id, stop: None };
        }
        let accepted = known.and_then(|place| Self::accepted(&self.shelf[place]));
        match revision.judge(accepted) {
            Err(newest) => Pushed::Stale { id, newest, payload: item.payload },
            Ok(version) => {
                item.version = version;
                let place = known.unwrap_or_else(|| self.shelf.insert(hash, key));
                Pushed::Accepted { id, stop: self.take_slot(place, item) }
            }
        }
    }

    fn join(&mut self, place: Place, item: Item<T>) {
        if let Some(expires) = item.expires {
            self.expiries.insert((expires, item.id), place);
        }
        self.waiting += 1;
        self.shelf[place].join(item);
        self.place(place, Join::Back);
    }

    /// Latest mode: the item is the newest of its lane. Answers the running item to be stopped.
    fn take_slot(&mut self, place: Place, mut item: Item<T>) -> Option<T> {
        self.unblock(place);
        if let Some(replaced) = self.shelf[place].leave_head() {
            item.priority = item.priority.max(replaced.priority);
            self.end_waiting(replaced, Ending::Superseded { by: item.id });
        }
        let supersede = self.settings.supersede_running;
        let lane = &mut self.shelf[place];
        let done = match &mut lane.memory {
            Some(memory) => {
                memory.accepted = item.version;
                memory.done.as_ref().map(|(id, version, _)| (*id, *version))
            }
            None => {
                lane.memory = Some(Box::new(Memory { accepted: item.version, done: None }));
                None
            }
        };
        let idle = !lane.runs;
        if let (true, Some((by, version))) = (idle, done)
            && version == item.version
        {
            let ended = Ended { id: item.id, payload: item.payload, ending: Ending::Superseded { by } };
            self.outbox.ended.push(ended);
            self.place(place, Join::Back);
            return None;
        }
        let mut stop = None;
        if supersede
            && let Some(running) = lane.running()
            && running.version < item.version
            && lane.stop != Some(Stop::Cancel)
        {
            // Asked to stop once; a still newer push only changes the name of the winner.
            stop = lane.stop.is_none().then(|| running.payload.clone());
            lane.stop = Some(Stop::Supersede(item.id));
        }
        self.join(place, item);
        stop
    }
}
