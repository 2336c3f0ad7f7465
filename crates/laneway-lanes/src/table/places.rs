//! Numbered places for lanes, in chunks.
//!
//! Chunks rather than one long vector: a vector of many lanes is one huge allocation that is copied whenever it grows,
//! and allocators tend to keep such blocks when they are freed. Chunks come and go one by one.

use super::lane::{Lane, Place};

const CHUNK: usize = 256;

/// Arrays, so that the place within a chunk needs no check.
type Chunk<K, T> = Box<[Option<Lane<K, T>>; CHUNK]>;

#[derive(Debug)]
pub(super) struct Places<K, T> {
    chunks: Vec<Chunk<K, T>>,
    len: usize,
}

impl<K, T> Places<K, T> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    /// Places made so far, used or not.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Places held in memory.
    pub(super) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    pub(super) fn push(&mut self, lane: Lane<K, T>) -> Place {
        let place = Place::try_from(self.len).expect("lanes fit a 32-bit place");
        if self.len == self.room() {
            self.chunks.push(empty_chunk());
        }
        self.len += 1;
        *self.slot(place) = Some(lane);
        place
    }

    pub(super) fn get(&self, place: Place) -> Option<&Lane<K, T>> {
        let place = place as usize;
        self.chunks.get(place / CHUNK)?[place % CHUNK].as_ref()
    }

    /// A place that was made before, used or not.
    pub(super) fn slot(&mut self, place: Place) -> &mut Option<Lane<K, T>> {
        let place = place as usize;
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane<K, T>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).flatten()
    }

    pub(super) fn lanes_mut(&mut self) -> impl Iterator<Item = &mut Lane<K, T>> {
        self.chunks.iter_mut().flat_map(|chunk| chunk.iter_mut()).flatten()
    }

    /// All places in order, used or not.
    pub(super) fn into_slots(self) -> impl Iterator<Item = Option<Lane<K, T>>> {
        // By way of vectors: an array would be moved over the stack.
        self.chunks.into_iter().flat_map(|chunk| <[_]>::into_vec(chunk)).take(self.len)
    }
}

fn empty_chunk<K, T>() -> Chunk<K, T> {
    let places: Vec<_> = std::iter::repeat_with(|| None).take(CHUNK).collect();
    places.try_into().unwrap_or_else(|_| unreachable!("a chunk has its length"))
}
