//! Numbered places for lanes, in chunks.
//!
//! Chunks rather than one long vector: a vector of many lanes is one huge allocation that is copied whenever it grows,
//! and allocators tend to keep such blocks when they are freed. Chunks come and go one by one.

use super::lane::{Lane, Place};

const CHUNK: usize = 256;

#[derive(Debug)]
pub(super) struct Places<K, T> {
    /// All full but the last.
    chunks: Vec<Vec<Option<Lane<K, T>>>>,
}

impl<K, T> Places<K, T> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// Places made so far, used or not.
    pub(super) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Places held in memory.
    pub(super) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    pub(super) fn push(&mut self, lane: Lane<K, T>) -> Place {
        let place = Place::try_from(self.len()).expect("lanes fit a 32-bit place");
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(Some(lane)),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(Some(lane));
                self.chunks.push(chunk);
            }
        }
        place
    }

    pub(super) fn get(&self, place: Place) -> Option<&Lane<K, T>> {
        let place = place as usize;
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)?.as_ref()
    }

    /// A place that was made before, used or not.
    pub(super) fn slot(&mut self, place: Place) -> &mut Option<Lane<K, T>> {
        let place = place as usize;
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }

    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane<K, T>> {
        self.chunks.iter().flatten().flatten()
    }

    pub(super) fn lanes_mut(&mut self) -> impl Iterator<Item = &mut Lane<K, T>> {
        self.chunks.iter_mut().flatten().flatten()
    }

    /// All places in order, used or not.
    pub(super) fn into_slots(self) -> impl Iterator<Item = Option<Lane<K, T>>> {
        self.chunks.into_iter().flatten()
    }
}
