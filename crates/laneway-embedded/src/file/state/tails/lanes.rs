//! Lanes in memory, each with its end, found by the hash of their key.
//!
//! Looked at and changed under the state's lock, so nothing here ever moves or copies all lanes: memory grows by one
//! block of them or by one of many small tables at a time. New lanes take the lowest places, so that after a burst the
//! last blocks become empty and are given back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};
use laneway_core::{Key, Shard};

use crate::machine::Tail;

/// Lanes in a block.
const BLOCK: usize = 1 << 10;
/// Tables over which the lanes are spread: with a million lanes each has a thousand.
const TABLE_BITS: u32 = 10;
/// How many lanes a change looks at, when there are too many, for one to forget.
const LOOKS: usize = 4;
/// How many places without a lane it passes over meanwhile.
const PASSED: usize = 64;

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

/// So many places for lanes in a row.
#[derive(Debug, Default)]
struct Block {
    /// All of them, or none while there is no lane in the block.
    places: Vec<Option<Lane>>,
    lanes: usize,
}

/// All lanes in memory.
#[derive(Debug)]
pub(super) struct Lanes {
    blocks: Vec<Block>,
    /// The places that were given back, lowest first.
    free: BinaryHeap<Reverse<Place>>,
    /// The first place that was never used.
    next: usize,
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
            free: BinaryHeap::new(),
            next: 0,
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

    /// How many blocks take memory.
    #[cfg(test)]
    pub(super) fn blocks_len(&self) -> usize {
        self.blocks.iter().filter(|block| !block.places.is_empty()).count()
    }

    pub(super) fn get(&self, place: Place) -> Option<&Lane> {
        let (block, at) = split(place as usize);
        self.blocks.get(block)?.places.get(at)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Lane> {
        let (block, at) = split(place as usize);
        self.blocks.get_mut(block)?.places.get_mut(at)?.as_mut()
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
        let place = self.free_place();
        let (block, at) = split(place as usize);
        let block = &mut self.blocks[block];
        if block.places.is_empty() {
            block.places.resize_with(BLOCK, || None);
        }
        block.places[at] = Some(lane);
        block.lanes += 1;
        let entry = Entry { hash, place };
        self.tables[table_of(hash)].insert_unique(spread(hash), entry, |entry| spread(entry.hash));
        self.len += 1;
        place
    }

    /// The lowest place without a lane.
    fn free_place(&mut self) -> Place {
        if let Some(Reverse(place)) = self.free.pop() {
            return place;
        }
        if self.next == self.blocks.len() * BLOCK {
            self.blocks.push(Block::default());
        }
        self.next += 1;
        Place::try_from(self.next - 1).expect("so many lanes fit into no memory")
    }

    /// Makes room when there are too many lanes: forgets some that changed in none of the intervals after `stored` and that
    /// nobody wanted for a round of the hand. Answers whether it forgot any.
    pub(super) fn make_room(&mut self, len_max: usize, stored: u32) -> bool {
        let (mut forgot, mut looks, mut passed) = (false, 0, 0);
        while self.len > len_max && looks < LOOKS && passed < PASSED {
            let hand = self.step();
            match self.get_mut(hand) {
                None => {
                    passed += 1;
                    continue;
                }
                Some(lane) if lane.changed > stored => {}
                Some(lane) if lane.wanted => lane.wanted = false,
                Some(_) => {
                    self.remove(hand);
                    forgot = true;
                }
            }
            looks += 1;
        }
        forgot
    }

    /// Moves the hand to the next place, past the rest of a block without lanes.
    fn step(&mut self) -> Place {
        let (block, _) = split(self.hand);
        let is_empty = self.blocks.get(block).is_none_or(|block| block.lanes == 0);
        self.hand = if is_empty { (block + 1) * BLOCK } else { self.hand + 1 };
        if self.hand >= self.next {
            self.hand = 0;
        }
        Place::try_from(self.hand).expect("it is the place of a lane")
    }

    fn remove(&mut self, place: Place) {
        let (block, at) = split(place as usize);
        let block = &mut self.blocks[block];
        let Some(lane) = block.places[at].take() else { return };
        block.lanes -= 1;
        if block.lanes == 0 {
            block.places = Vec::new();
        }
        let hash = self.hash(lane.shard, lane.key.bytes());
        let found = self.tables[table_of(hash)].find_entry(spread(hash), |entry| entry.place == place);
        if let Ok(entry) = found {
            entry.remove();
        }
        self.free.push(Reverse(place));
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
