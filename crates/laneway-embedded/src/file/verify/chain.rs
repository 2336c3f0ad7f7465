//! The chain of every lane and the row of ids of every shard, checked as the events come by.
//!
//! Keeps the last event of every lane seen and the holes in the ids of every shard: memory grows with lanes, not
//! with events.

use hashbrown::HashMap;
use laneway_core::{Event, EventId, Key, Seq, Shard, ShardInfo, StreamId};

use super::finding::{Finding, FindingKind, Place};
use crate::machine::Tail;

/// The last event of a lane, as far as the log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) id: EventId,
    pub(super) seq: Option<Seq>,
}

/// The ids of a shard, as far as the log was read.
#[derive(Debug)]
pub(super) struct Ids {
    pub(super) first: EventId,
    pub(super) last: EventId,
    /// Ids that were left out, with the place of the event after them. Some were never given; that is decided at the end.
    holes: Vec<(EventId, EventId, Place)>,
}

/// Everything seen of all lanes.
#[derive(Debug, Default)]
pub(super) struct Chains {
    lanes: HashMap<(Shard, Key), Last>,
    shards: HashMap<Shard, Ids>,
}

impl Chains {
    /// Takes up the next event of the log; answers what is wrong with it.
    pub(super) fn event(&mut self, shard: Shard, event: &Event, place: &Place) -> Vec<Finding> {
        let key = event.key.as_ref();
        let finding = |kind, ids: &[EventId], what: String| {
            Finding::new(kind, what).at(place.clone()).of(shard, key, ids)
        };
        let mut found = Vec::new();
        if let Some((kind, what)) = self.place_id(shard, event.id, place) {
            found.push(finding(kind, &[event.id], what));
            // It is not where it belongs, so its lane goes on with it only if it fits there.
            let fits = |last: &Last| follows(event, *last).is_none();
            if let Some(last) =
                key.and_then(|key| self.lanes.get_mut(&(shard, key.clone()))).filter(|last| fits(last))
            {
                *last = Last { id: event.id, seq: event.seq };
            }
            return found;
        }
        let Some(key) = key else { return found };
        let name = (shard, key.clone());
        let broken = match self.lanes.get(&name) {
            Some(last) => follows(event, *last),
            None => begins(event, self.shards.get(&shard).map(|ids| ids.first)),
        };
        found.extend(broken.map(|(kind, ids, what)| finding(kind, &ids, what)));
        self.lanes.insert(name, Last { id: event.id, seq: event.seq });
        found
    }

    /// The end of a lane whose events the log never had.
    pub(super) fn tail(&mut self, shard: Shard, key: Key, tail: Tail) {
        self.lanes.insert((shard, key), Last { id: tail.id, seq: Some(tail.seq) });
    }

    /// A lane that was idle for long begins anew.
    pub(super) fn forget_lane(&mut self, shard: Shard, key: Key) {
        self.lanes.remove(&(shard, key));
    }

    /// A removed stream has no lanes.
    pub(super) fn forget(&mut self, stream: StreamId) {
        self.lanes.retain(|(shard, _), _| shard.stream != stream);
        self.shards.retain(|shard, _| shard.stream != stream);
    }

    /// Puts an id into the row of its shard, or says why it has no place there.
    fn place_id(&mut self, shard: Shard, id: EventId, place: &Place) -> Option<(FindingKind, String)> {
        let Some(ids) = self.shards.get_mut(&shard) else {
            self.shards.insert(shard, Ids { first: id, last: id, holes: Vec::new() });
            return None;
        };
        if id > ids.last {
            if id != ids.last.next() {
                ids.holes.push((ids.last.next(), EventId(id.0 - 1), place.clone()));
            }
            ids.last = id;
            return None;
        }
        let left_out = |(first, last, _): &(EventId, EventId, Place)| (*first..=*last).contains(&id);
        let hole = ids.holes.iter().position(left_out);
        if id < ids.first || hole.is_some() {
            if let Some((first, last, place)) = hole.map(|at| ids.holes.remove(at)) {
                let rest = [(first, EventId(id.0 - 1)), (id.next(), last)]
                    .into_iter()
                    .filter(|(from, to)| from <= to);
                ids.holes.extend(rest.map(|(from, to)| (from, to, place.clone())));
            }
            return Some((FindingKind::Reorder, format!("it comes after event {}", ids.last)));
        }
        Some((FindingKind::Duplicate, "this id was there before".to_owned()))
    }

    pub(super) fn lane_count(&self) -> u64 {
        self.lanes.len() as u64
    }

    /// Lanes with their last events.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (Shard, &Key, Last)> {
        self.lanes.iter().map(|((shard, key), last)| (*shard, key, *last))
    }

    pub(super) fn has_lane(&self, shard: Shard, key: &Key) -> bool {
        self.lanes.contains_key(&(shard, key.clone()))
    }

    pub(super) fn ids(&self, shard: Shard) -> Option<&Ids> {
        self.shards.get(&shard)
    }
}

impl Ids {
    /// Ids that were left out although they were given.
    pub(super) fn missing(&self, shard: Shard, info: &ShardInfo) -> Vec<Finding> {
        let mut found = Vec::new();
        for (first, last, place) in &self.holes {
            let next = next_given(info, EventId(first.0 - 1));
            if next <= *last {
                let what = format!("ids {first} to {last} are not in the log");
                found.push(Finding::new(FindingKind::Gap, what).at(place.clone()).of(
                    shard,
                    None,
                    &[next, *last],
                ));
            }
        }
        found
    }
}

/// The next id after this one that was given or will be.
pub(super) fn next_given(info: &ShardInfo, id: EventId) -> EventId {
    let mut next = id.next();
    for (first, last) in &info.gaps {
        if (*first..=*last).contains(&next) {
            next = last.next();
        }
    }
    next
}

type Broken = (FindingKind, Vec<EventId>, String);

/// What is wrong with an event that comes after another one of its lane.
fn follows(event: &Event, last: Last) -> Option<Broken> {
    match event.prev {
        Some(prev) if prev == last.id => {}
        Some(prev) if prev > last.id => {
            let what = format!(
                "its prev is {prev}, which is not in the log; the last one of its lane there is {}",
                last.id
            );
            return Some((FindingKind::Gap, vec![last.id, event.id], what));
        }
        other => {
            let prev = other.map_or_else(|| "nothing".to_owned(), |prev| format!("event {prev}"));
            let what = format!("it follows {prev}, which event {} or one before it follows already", last.id);
            return Some((FindingKind::Fork, vec![last.id, event.id], what));
        }
    }
    let expected = last.seq.map(|seq| Seq(seq.0 + 1));
    if event.seq != expected {
        let text = |seq: Option<Seq>| seq.map_or_else(|| "none".to_owned(), |seq| seq.to_string());
        let what = format!("its number in the lane is {}, {} comes next", text(event.seq), text(expected));
        return Some((FindingKind::Gap, vec![last.id, event.id], what));
    }
    None
}

/// What is wrong with the first event of a lane in the log. What it follows may be in a segment that is no more.
fn begins(event: &Event, first: Option<EventId>) -> Option<Broken> {
    match (event.prev, event.seq) {
        (Some(prev), _) if first.is_some_and(|first| prev >= first) => {
            let what = format!("its prev is {prev}, which is not in the log");
            Some((FindingKind::Gap, vec![event.id], what))
        }
        (None, Some(Seq(1))) => None,
        (Some(_), Some(Seq(seq))) if seq > 1 => None,
        (prev, seq) => {
            let what = format!("its number in the lane is {seq:?}, which does not fit to its prev {prev:?}");
            Some((FindingKind::Gap, vec![event.id], what))
        }
    }
}
