//! Where lanes are kept: places, an index from key to place, and the lists that run through the lanes.
//!
//! Lists are links inside the lanes, so a lane leaves any list in constant time, and no list can hold a lane that no
//! longer exists. Room is given back: after a lane is removed, a shelf that is mostly empty is compacted, which moves
//! lanes to new places; the answer says where each went.
//!
//! Knows nothing of when a lane is ready or idle.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};
use std::ops::{Index, IndexMut};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::item::ItemId;
use super::lane::{Lane, ListName, Memory, NOWHERE, Place};
use super::places::Places;
use super::words::{Priority, Tick};

/// Moments at which something happens to an item of a lane.
pub(super) type Agenda = BTreeMap<(Tick, ItemId), Place>;

/// A shelf with at most this many places is never compacted: giving a little room back and asking for it again costs
/// more than keeping it. Tests compact all the time.
const SMALL: usize = if cfg!(test) { 4 } else { 8_192 };

/// A shelf is compacted when it has this many times the places it needs. Tests compact while several lanes are left.
const SPARSE: usize = if cfg!(test) { 2 } else { 8 };

#[derive(Debug, Clone, Copy)]
struct List {
    first: Place,
    last: Place,
    len: usize,
}

const EMPTY: List = List { first: NOWHERE, last: NOWHERE, len: 0 };
const REMEMBERED: usize = Priority::LEVELS;

#[derive(Debug)]
pub(super) struct Shelf<K, T> {
    places: Places<K, T>,
    free: Vec<Place>,
    index: HashTable<Place>,
    hasher: DefaultHashBuilder,
    lists: [List; Priority::LEVELS + 1],
}

impl<K: Hash + Eq, T> Shelf<K, T> {
    pub(super) fn new() -> Self {
        Self {
            places: Places::new(),
            free: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            lists: [EMPTY; Priority::LEVELS + 1],
        }
    }

    pub(super) fn hasher(&self) -> &DefaultHashBuilder {
        &self.hasher
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Places held in memory, used or not.
    pub(super) fn room(&self) -> usize {
        self.places.room().max(self.index.capacity())
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane<K, T>> {
        self.places.lanes()
    }

    pub(super) fn find(&self, key: &K) -> Option<Place> {
        self.find_hashed(self.hasher.hash_one(key), key)
    }

    pub(super) fn find_hashed(&self, hash: u64, key: &K) -> Option<Place> {
        self.find_where(hash, |lane| lane.key == *key)
    }

    /// The lane of this hash that is the one.
    pub(super) fn find_where(&self, hash: u64, is_it: impl Fn(&Lane<K, T>) -> bool) -> Option<Place> {
        self.index.find(hash, |&place| self.places.get(place).is_some_and(&is_it)).copied()
    }

    pub(super) fn find_or_insert(&mut self, hash: u64, key: K) -> Place {
        self.find_hashed(hash, &key).unwrap_or_else(|| self.insert(hash, key))
    }

    /// Puts a new lane on the shelf; there must be none of this key.
    pub(super) fn insert(&mut self, hash: u64, key: K) -> Place {
        let place = match self.free.pop() {
            Some(place) => {
                *self.places.slot(place) = Some(Lane::new(key, hash));
                place
            }
            None => self.places.push(Lane::new(key, hash)),
        };
        let places = &self.places;
        self.index.insert_unique(hash, place, |&other| hash_at(places, other));
        place
    }

    /// The lane at `place`, if there is one: places from before a compaction may be empty or out of range.
    pub(super) fn get(&self, place: Place) -> Option<&Lane<K, T>> {
        self.places.get(place)
    }

    /// Takes a lane off the shelf; it must be in no list. Answers what it remembered.
    pub(super) fn remove(&mut self, place: Place) -> Option<Box<Memory<T>>> {
        let lane = &mut self[place];
        debug_assert!(lane.list.is_none(), "a removed lane is in no list");
        let (hash, memory) = (lane.hash, lane.memory.take());
        if let Ok(entry) = self.index.find_entry(hash, |&other| other == place) {
            entry.remove();
        }
        *self.places.slot(place) = None;
        self.free.push(place);
        memory
    }

    pub(super) fn first(&self, name: ListName) -> Option<Place> {
        let first = self.lists[slot(name)].first;
        (first != NOWHERE).then_some(first)
    }

    pub(super) fn list_len(&self, name: ListName) -> usize {
        self.lists[slot(name)].len
    }

    pub(super) fn ready_len(&self) -> usize {
        self.lists[..Priority::LEVELS].iter().map(|list| list.len).sum()
    }

    pub(super) fn link_back(&mut self, name: ListName, place: Place) -> &mut Lane<K, T> {
        let list = &mut self.lists[slot(name)];
        let before = std::mem::replace(&mut list.last, place);
        list.len += 1;
        if before == NOWHERE {
            list.first = place;
        } else {
            self[before].behind = place;
        }
        self.enter(name, before, place, NOWHERE)
    }

    pub(super) fn link_front(&mut self, name: ListName, place: Place) {
        let list = &mut self.lists[slot(name)];
        let behind = std::mem::replace(&mut list.first, place);
        list.len += 1;
        if behind == NOWHERE {
            list.last = place;
        } else {
            self[behind].before = place;
        }
        self.enter(name, NOWHERE, place, behind);
    }

    /// The lane's own side of a link.
    fn enter(&mut self, name: ListName, before: Place, place: Place, behind: Place) -> &mut Lane<K, T> {
        let lane = &mut self[place];
        debug_assert!(lane.list.is_none(), "a lane is in one list at most");
        (lane.list, lane.before, lane.behind) = (Some(name), before, behind);
        lane
    }

    /// Takes a lane out of its list.
    pub(super) fn unlink(&mut self, place: Place) -> &mut Lane<K, T> {
        let lane = &mut self[place];
        let name = lane.list.take().expect("an unlinked lane was in a list");
        let before = std::mem::replace(&mut lane.before, NOWHERE);
        let behind = std::mem::replace(&mut lane.behind, NOWHERE);
        let list = &mut self.lists[slot(name)];
        list.len -= 1;
        if before == NOWHERE {
            list.first = behind;
        }
        if behind == NOWHERE {
            list.last = before;
        }
        if before != NOWHERE {
            self[before].behind = behind;
        }
        if behind != NOWHERE {
            self[behind].before = before;
        }
        &mut self[place]
    }

    /// Gives room back when most of it is unused, and moves the agendas along.
    ///
    /// Costs one pass over the shelf, at most once per that many removals. Every place known from before is void.
    pub(super) fn compact_if_sparse(&mut self, agendas: [&mut Agenda; 2]) {
        if self.places.len() <= SMALL || self.len() * SPARSE > self.places.len() {
            return;
        }
        let mut moved = vec![NOWHERE; self.places.len()];
        let sparse = std::mem::replace(&mut self.places, Places::new());
        for (old, lane) in sparse.into_slots().enumerate() {
            if let Some(lane) = lane {
                moved[old] = self.places.push(lane);
            }
        }
        self.free = Vec::new();
        let follow = |place: &mut Place| {
            if *place != NOWHERE {
                *place = moved[*place as usize];
            }
        };
        for lane in self.places.lanes_mut() {
            follow(&mut lane.before);
            follow(&mut lane.behind);
        }
        for list in &mut self.lists {
            follow(&mut list.first);
            follow(&mut list.last);
        }
        agendas.into_iter().flat_map(BTreeMap::values_mut).for_each(follow);
        self.rebuild_index();
    }

    fn rebuild_index(&mut self) {
        let places = &self.places;
        let mut index = HashTable::with_capacity(places.len());
        // Compacted: the lanes are at the places 0, 1, 2 and so on.
        for (place, lane) in (0..).zip(places.lanes()) {
            index.insert_unique(lane.hash, place, |&other| hash_at(places, other));
        }
        self.index = index;
    }
}

impl<K, T> Index<Place> for Shelf<K, T> {
    type Output = Lane<K, T>;

    fn index(&self, place: Place) -> &Lane<K, T> {
        self.places.get(place).expect("a known place holds a lane")
    }
}

impl<K, T> IndexMut<Place> for Shelf<K, T> {
    fn index_mut(&mut self, place: Place) -> &mut Lane<K, T> {
        self.places.slot(place).as_mut().expect("a known place holds a lane")
    }
}

fn hash_at<K, T>(places: &Places<K, T>, place: Place) -> u64 {
    places.get(place).map_or(0, |lane| lane.hash)
}

const fn slot(name: ListName) -> usize {
    match name {
        ListName::Ready(priority) => priority.level(),
        ListName::Remembered => REMEMBERED,
    }
}
