//! Lanes in memory, each with its end, found by the hash of their key.
//!
//! Looked at and changed under the state's lock, so nothing here ever moves or copies all of it: memory grows by one
//! block of lanes or by one of many small tables at a time.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};
use laneway_core::{Key, Shard};

use crate::machine::Tail;

/// Lanes in a block.
const BLOCK: usize = 1 << 10;
/// Tables over which the lanes are spread: with a million lanes each has a thousand.
const TABLE_BITS: u32 = 10;
/// How many lanes a new one looks at, when there are too many, for one to put in the place of.
const LOOKS: usize = 4;

/// Where a lane lies, as long as it is in memory.
pub(crate) type Place = u32;

/// A lane in memory.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) shard: Shard,
    pub(super) key: Key,
    /// Without a tail it is known not to exist.
    pub(super) tail: Option<Tail>,
    /// In which interval between checkpoints it last changed.
    pub(super) changed: u32,
    /// It was wanted again since the hand last came by.
    pub(super) wanted: bool,
}

/// What a table knows of a lane. A part of the hash is kept, so that a table grows without a look at its lanes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    place: Place,
}

/// All lanes in memory.
#[derive(Debug)]
pub(super) struct Lanes {
    blocks: Vec<Vec<Option<Lane>>>,
    free: Vec<Place>,
    tables: Vec<HashTable<Entry>>,
    hasher: DefaultHashBuilder,
    len: usize,
    /// The place that was last looked at for a lane to forget.
    hand: usize,
}

impl Lanes {
    pub(super) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            free: Vec::new(),
            tables: (0..1 << TABLE_BITS).map(|_| HashTable::new()).collect(),
            hasher: DefaultHashBuilder::default(),
            len: 0,
            hand: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, place: Place) -> Option<&Lane> {
        let (block, at) = split(place as usize);
        self.blocks.get(block)?.get(at)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Lane> {
        let (block, at) = split(place as usize);
        self.blocks.get_mut(block)?.get_mut(at)?.as_mut()
    }

    /// Where this lane is, if it is in memory.
    pub(super) fn find(&self, shard: Shard, key: &[u8]) -> Option<Place> {
        let hash = self.hash(shard, key);
        let is_it = |entry: &Entry| {
            let lane = || self.get(entry.place);
            entry.hash == hash && lane().is_some_and(|lane| lane.shard == shard && lane.key.bytes() == key)
        };
        self.tables[table_of(hash)].find(spread(hash), is_it).map(|entry| entry.place)
    }

    /// Puts a lane into memory that is not there yet.
    pub(super) fn insert(&mut self, lane: Lane) -> Place {
        let hash = self.hash(lane.shard, lane.key.bytes());
        let place = match self.free.pop() {
            Some(place) => place,
            None => self.next_place(),
        };
        let (block, at) = split(place as usize);
        self.blocks[block][at] = Some(lane);
        let entry = Entry { hash, place };
        self.tables[table_of(hash)].insert_unique(spread(hash), entry, |entry| spread(entry.hash));
        self.len += 1;
        place
    }

    /// The place behind all others.
    fn next_place(&mut self) -> Place {
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let before = (self.blocks.len() - 1) * BLOCK;
        let block = self.blocks.last_mut().expect("one was pushed if there was none");
        block.push(None);
        Place::try_from(before + block.len() - 1).expect("so many lanes fit into no memory")
    }

    /// Makes room when there are so many lanes: forgets some that changed in none of the intervals after `stored` and that
    /// nobody wanted for a round of the hand. Answers whether it forgot any.
    pub(super) fn make_room(&mut self, len_max: usize, stored: u32) -> bool {
        let mut forgot = false;
        for _ in 0..LOOKS {
            if self.len < len_max {
                break;
            }
            let hand = self.step();
            match self.get_mut(hand) {
                Some(lane) if lane.changed > stored => {}
                Some(lane) if lane.wanted => lane.wanted = false,
                Some(_) => {
                    self.remove(hand);
                    forgot = true;
                }
                None => {}
            }
        }
        forgot
    }

    /// Moves the hand to the next place.
    fn step(&mut self) -> Place {
        self.hand += 1;
        let (block, at) = split(self.hand);
        if self.blocks.get(block).is_none_or(|block| at >= block.len()) {
            self.hand = 0;
        }
        Place::try_from(self.hand).expect("it is the place of a lane")
    }

    fn remove(&mut self, place: Place) {
        let (block, at) = split(place as usize);
        let Some(lane) = self.blocks[block][at].take() else { return };
        let hash = self.hash(lane.shard, lane.key.bytes());
        let found = self.tables[table_of(hash)].find_entry(spread(hash), |entry| entry.place == place);
        if let Ok(entry) = found {
            entry.remove();
        }
        self.free.push(place);
        self.len -= 1;
    }

    fn hash(&self, shard: Shard, key: &[u8]) -> u32 {
        #[derive(Hash)]
        struct Named<'k>(Shard, &'k [u8]);
        (self.hasher.hash_one(Named(shard, key)) >> 32) as u32
    }
}

fn split(place: usize) -> (usize, usize) {
    (place / BLOCK, place % BLOCK)
}

/// The first bits of a hash say in which table it is.
fn table_of(hash: u32) -> usize {
    (hash >> (u32::BITS - TABLE_BITS)) as usize
}

/// A table looks at the first and the last bits of 64.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
