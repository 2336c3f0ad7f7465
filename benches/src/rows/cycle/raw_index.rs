//! What the design's reference log keeps in memory, and no less can be kept if events are to be fetched and settled at all:
//! the last event of each key, where every event lies that has not ended, and where the results lie.
//!
//! The design's limit for the cycle (its reference log) is measured with such an index. A log that hands its events over
//! through a queue and forgets them at once would be a limit that nothing durable can be near.

use std::collections::VecDeque;

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::raw_log::{Delivery, Place};
use crate::workload::{EVENT_BYTES, SHARDS};

/// The index of a raw log.
#[derive(Default)]
pub(super) struct RawIndex(RwLock<Inner>);

#[derive(Default)]
struct Inner {
    last_of_key: HashMap<u32, u64>,
    shards: [Waiting; SHARDS as usize],
    results: HashMap<(u32, u64), Place>,
}

/// The events of a shard that have not ended.
#[derive(Default)]
struct Waiting {
    /// The id of the first place.
    first: u64,
    /// `None` for an event that has ended behind one that has not.
    places: VecDeque<Option<Place>>,
    /// What is behind this id was not fetched yet.
    fetched: u64,
}

impl RawIndex {
    /// Notes durable events.
    pub(super) fn add(&self, delivery: &Delivery) {
        let mut inner = self.0.write();
        let Inner { last_of_key, shards, .. } = &mut *inner;
        let waiting = &mut shards[delivery.shard as usize];
        for (number, event) in delivery.bytes.chunks_exact(EVENT_BYTES).enumerate() {
            let id = waiting.first + waiting.places.len() as u64;
            let key = event.first_chunk().map_or(0, |key| u32::from_le_bytes(*key));
            // The store writes it into the event; here it is only looked up.
            std::hint::black_box(last_of_key.insert(key, id));
            let offset = delivery.place.offset + (number * EVENT_BYTES) as u64;
            waiting.places.push_back(Some(Place { offset, ..delivery.place.clone() }));
        }
    }

    /// The next events of a shard, in order.
    pub(super) fn fetch(&self, shard: u32, max: usize) -> Vec<(u64, Place)> {
        if self.0.read().shards[shard as usize].is_all_fetched() {
            return Vec::new();
        }
        let mut inner = self.0.write();
        let waiting = &mut inner.shards[shard as usize];
        let skip = usize::try_from(waiting.fetched.saturating_sub(waiting.first)).unwrap_or(usize::MAX);
        let ids = waiting.first..;
        let next = ids.zip(&waiting.places).skip(skip).take(max);
        let events: Vec<_> = next.filter_map(|(id, place)| Some((id, place.clone()?))).collect();
        waiting.fetched = events.last().map_or(waiting.fetched, |(id, _)| id + 1);
        events
    }

    /// Notes that events have ended, with results of so many bytes each from this place on.
    pub(super) fn end(&self, shard: u32, events: &[(u64, Place)], place: &Place, end_bytes: usize) {
        let mut inner = self.0.write();
        for (number, (id, _)) in events.iter().enumerate() {
            let waiting = &mut inner.shards[shard as usize];
            let at = usize::try_from(id - waiting.first).unwrap_or(usize::MAX);
            if let Some(place) = waiting.places.get_mut(at) {
                *place = None;
            }
            while waiting.places.front().is_some_and(Option::is_none) {
                waiting.places.pop_front();
                waiting.first += 1;
            }
            let offset = place.offset + (number * end_bytes) as u64;
            inner.results.insert((shard, *id), Place { offset, ..place.clone() });
        }
    }

    /// Forgets the results of the round before; the files that had them are used again.
    pub(super) fn forget_results(&self) {
        self.0.write().results.clear();
    }
}

impl Waiting {
    fn is_all_fetched(&self) -> bool {
        self.fetched >= self.first + self.places.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;

    #[test]
    fn events_are_fetched_once_in_order_and_leave_when_they_have_ended() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let place = |offset| Place { file: Arc::clone(&file), offset };
        let index = RawIndex::default();
        let bytes = Bytes::from(vec![1; 3 * EVENT_BYTES]);
        index.add(&Delivery { shard: 3, bytes, place: place(16) });
        let first = index.fetch(3, 2);
        let at: Vec<_> = first.iter().map(|(id, place)| (*id, place.offset)).collect();
        assert_eq!(at, [(0, 16), (1, 16 + EVENT_BYTES as u64)]);
        assert_eq!(index.fetch(3, 2).len(), 1);
        assert!(index.fetch(3, 2).is_empty() && index.fetch(4, 2).is_empty());
        index.end(3, &first[1..], &place(0), 50);
        assert_eq!(index.0.read().shards[3].places.len(), 3, "the first has not ended");
        index.end(3, &first[..1], &place(0), 50);
        assert_eq!(index.0.read().shards[3].places.len(), 1);
    }
}
