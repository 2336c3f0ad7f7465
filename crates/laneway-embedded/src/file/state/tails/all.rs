//! All tails: those in memory, and below them those in the index.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hashbrown::HashMap;
use laneway_core::{Key, Result, Shard, Timestamp};

use super::lanes::{Lane, Lanes, Place};
use super::stored::{decode, encode, index_key, shard_prefix};
use crate::file::index::{IndexTable, PackedChanges, Snapshot, prefix_end};
use crate::file::state::fetched::{Directly, IndexReader, PageKey};
use crate::machine::Tail;

/// Most tails of the index that a list reads at a time.
const PAGE_MAX: usize = 1_024;

/// Lanes that changed, by shard.
pub(crate) type ChangedLanes = HashMap<Shard, Vec<Place>>;
/// Tails by key.
type NamedTails = BTreeMap<Vec<u8>, Tail>;
/// So many lanes that changed lately are looked through for a list.
const NEWER_LISTED: usize = 4_096;

/// All tails.
#[derive(Debug)]
pub(crate) struct Tails {
    pub(super) lanes: Lanes,
    /// Lanes in memory, beside those that must stay.
    lanes_max: usize,
    /// Lanes that changed since the last checkpoint began.
    changed: ChangedLanes,
    /// Lanes that the checkpoint which is being written is about.
    writing: Arc<ChangedLanes>,
    /// When that checkpoint began, and the last one that was finished.
    writing_since: Timestamp,
    stored_at: Timestamp,
    /// Number of the interval between checkpoints, from 1: a lane that was only read has changed in none.
    interval: u32,
    /// The index has what changed up to this interval.
    stored: u32,
    /// Whether every tail there is lies in memory: then a miss is an answer.
    complete: Arc<AtomicBool>,
    index: Option<Arc<Snapshot>>,
    /// Counts checkpoints: a tail read below one must not enter memory above it.
    epoch: u64,
}

impl Tails {
    pub(crate) fn new(lanes_max: usize) -> Self {
        Self {
            lanes: Lanes::new(),
            lanes_max,
            changed: HashMap::new(),
            writing: Arc::default(),
            writing_since: Timestamp(0),
            stored_at: Timestamp(0),
            interval: 1,
            stored: 0,
            complete: Arc::new(AtomicBool::new(true)),
            index: None,
            epoch: 0,
        }
    }

    /// Starts on an index that has tails already.
    pub(crate) fn attach(&mut self, index: Arc<Snapshot>) -> Result<()> {
        self.complete.store(index.tail_count()? == 0, Ordering::Release);
        self.index = Some(index);
        Ok(())
    }

    /// Whether memory has every tail there is, for those who do not hold the state's lock. Once it is not so, it never
    /// is again.
    pub(crate) fn complete(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.complete)
    }

    /// Sets the end of a lane, or forgets it.
    pub(crate) fn set(&mut self, shard: Shard, key: &Key, tail: Option<Tail>) {
        let interval = self.interval;
        let known = self.lanes.find(shard, key.bytes());
        if let Some((place, lane)) = known.and_then(|place| Some((place, self.lanes.get_mut(place)?))) {
            if lane.changed != interval {
                self.changed.entry(shard).or_default().push(place);
            }
            (lane.tail, lane.changed, lane.wanted) = (tail, interval, true);
        } else {
            let lane = Lane { shard, key: key.detached(), tail, changed: interval, wanted: false };
            self.changed.entry(shard).or_default().push(self.lanes.insert(lane));
        }
        self.make_room();
    }

    /// With every change, also of a lane that is in memory: after a burst there may be far too many.
    fn make_room(&mut self) {
        if self.lanes.make_room(self.lanes_max, self.stored) {
            self.complete.store(false, Ordering::Release);
        }
    }

    /// What memory knows: `None` when it must be read, `Some(None)` when there is no such lane.
    fn in_memory(&self, shard: Shard, key: &[u8]) -> Option<Option<Tail>> {
        match self.lanes.find(shard, key).and_then(|place| self.lanes.get(place)) {
            Some(lane) => Some(lane.tail),
            None => self.complete.load(Ordering::Acquire).then_some(None),
        }
    }

    /// The tail of a lane, from the index if need be.
    pub(in crate::file::state) fn get(
        &self,
        shard: Shard,
        key: &Key,
        reader: &impl IndexReader,
    ) -> Result<Option<Tail>> {
        match (self.in_memory(shard, key.bytes()), &self.index) {
            (Some(known), _) => Ok(known),
            (None, Some(index)) => read_tail(index, shard, key, reader),
            (None, None) => Ok(None),
        }
    }

    /// Which of these keys would have to be read from the index, and from which one.
    pub(crate) fn missing<'k>(&self, shard: Shard, keys: impl Iterator<Item = &'k Key>) -> Option<Missing> {
        let index = self.index.as_ref()?;
        let missing = keys.filter(|key| self.in_memory(shard, key.bytes()).is_none());
        let mut keys: Vec<Key> = missing.map(Key::detached).collect();
        keys.sort_unstable_by(|a, b| a.bytes().cmp(b.bytes()));
        keys.dedup();
        (!keys.is_empty()).then(|| Missing { shard, keys, index: Arc::clone(index), epoch: self.epoch })
    }

    /// Whether no checkpoint has passed since these were looked up.
    pub(crate) fn are_of_now(&self, found: &FoundTails) -> bool {
        found.epoch == self.epoch
    }

    /// Keeps looked-up tails, unless a checkpoint has passed since or memory has a newer one.
    pub(crate) fn warm(&mut self, found: FoundTails) {
        if !self.are_of_now(&found) {
            return;
        }
        // For all of them before the first: none may go again before it was needed.
        found.tails.iter().for_each(|_| self.make_room());
        for (key, tail) in found.tails {
            if self.lanes.find(found.shard, key.bytes()).is_none() {
                self.lanes.insert(Lane { shard: found.shard, key, tail, changed: 0, wanted: true });
            }
        }
    }

    /// Hands out the lanes that changed, for a checkpoint, and begins the next interval.
    pub(crate) fn freeze(&mut self, now: Timestamp) -> Arc<ChangedLanes> {
        self.interval += 1;
        self.writing = Arc::new(std::mem::take(&mut self.changed));
        self.writing_since = now;
        Arc::clone(&self.writing)
    }

    /// Adds the tails of these lanes as they are now, as the index keeps them; a removal where a lane was forgotten.
    pub(crate) fn collect(&self, places: &[Place], into: &mut PackedChanges) {
        for lane in places.iter().filter_map(|place| self.lanes.get(*place)) {
            let key = [&shard_prefix(lane.shard)[..], lane.key.bytes()];
            match &lane.tail {
                Some(tail) => into.put(key, |out| encode(tail, out)),
                None => into.remove(key),
            }
        }
    }

    /// What changed before is in this index now.
    pub(crate) fn rebase(&mut self, index: Arc<Snapshot>) {
        self.epoch += 1;
        self.index = Some(index);
        self.stored_at = self.writing_since;
        self.stored = self.interval - 1;
        self.writing = Arc::default();
    }

    /// Tails of a shard after a key, by key.
    pub(in crate::file::state) fn list(
        &self,
        shard: Shard,
        after: Option<&Key>,
        limit: usize,
        reader: &impl IndexReader,
    ) -> Result<Vec<(Key, Tail)>> {
        let (mut found, last) = self.list_stored(shard, after, limit, reader)?;
        // Above the last key of a full page the index may have lanes that are not here.
        let is_inside = |lane: &&Lane| {
            after.is_none_or(|after| lane.key.bytes() > after.bytes())
                && last.as_ref().is_none_or(|last| *lane.key.bytes() <= last[..])
        };
        for lane in self.newer(shard).filter(is_inside) {
            match lane.tail {
                Some(tail) => found.insert(lane.key.bytes().to_vec(), tail),
                None => found.remove(lane.key.bytes()),
            };
        }
        name_all(found, limit)
    }

    /// Tails of a shard after a key, by key, for a search that goes through all of them: lanes that came since the last
    /// checkpoint may be left out when they are many ([`Tails::has_stored`]).
    pub(in crate::file::state) fn list_old(
        &self,
        shard: Shard,
        after: Option<&Key>,
        limit: usize,
        reader: &impl IndexReader,
    ) -> Result<Vec<(Key, Tail)>> {
        if self.newer_len(shard) <= NEWER_LISTED {
            return self.list(shard, after, limit, reader);
        }
        let (found, _) = self.list_stored(shard, after, limit, reader)?;
        name_all(found, limit)
    }

    /// Whether [`Tails::list_old`] finds every lane whose last event is older than this.
    pub(in crate::file::state) fn has_stored(&self, shard: Shard, time: Timestamp) -> bool {
        self.newer_len(shard) <= NEWER_LISTED || time < self.stored_at
    }

    /// Lanes that may differ from what the index says.
    fn newer(&self, shard: Shard) -> impl Iterator<Item = &Lane> {
        let places = self.writing.get(&shard).into_iter().chain(self.changed.get(&shard)).flatten();
        places.filter_map(|place| self.lanes.get(*place))
    }

    fn newer_len(&self, shard: Shard) -> usize {
        let len = |lanes: &ChangedLanes| lanes.get(&shard).map_or(0, Vec::len);
        len(&self.writing) + len(&self.changed)
    }

    /// Tails that the index knows, as they are now, and the last key if there may be more.
    fn list_stored(
        &self,
        shard: Shard,
        after: Option<&Key>,
        limit: usize,
        reader: &impl IndexReader,
    ) -> Result<(NamedTails, Option<Vec<u8>>)> {
        let (mut found, mut last) = (BTreeMap::new(), None);
        let Some(index) = &self.index else { return Ok((found, last)) };
        let (end, len) = (prefix_end(&shard_prefix(shard)), limit.clamp(1, PAGE_MAX));
        let mut start = match after {
            None => Bound::Included(shard_prefix(shard).to_vec()),
            Some(after) => Bound::Excluded(index_key(shard, after)),
        };
        // Lanes that were forgotten since fill no page.
        while found.len() < limit {
            let key = PageKey { table: IndexTable::Tails, start, end: end.clone(), len, values: true };
            let page = reader.page(index, key)?;
            last = page.last().filter(|_| page.len() == len).map(|(key, _)| key[8..].to_vec());
            start = Bound::Excluded(page.last().map(|(key, _)| key.to_vec()).unwrap_or_default());
            for (key, value) in page {
                let known = self.lanes.find(shard, &key[8..]).and_then(|place| self.lanes.get(place));
                let tail = match known {
                    Some(lane) => lane.tail,
                    None => Some(decode(&key, value)?),
                };
                found.extend(tail.map(|tail| (key[8..].to_vec(), tail)));
            }
            if last.is_none() {
                break;
            }
        }
        Ok((found, last))
    }
}

fn name_all(found: NamedTails, limit: usize) -> Result<Vec<(Key, Tail)>> {
    found.into_iter().take(limit).map(|(key, tail)| Ok((Key::new(key)?, tail))).collect()
}

/// Keys whose tails must be read before they are needed.
pub(crate) struct Missing {
    shard: Shard,
    pub(super) keys: Vec<Key>,
    index: Arc<Snapshot>,
    epoch: u64,
}

/// Tails that were missing.
#[derive(Debug)]
pub(crate) struct FoundTails {
    shard: Shard,
    tails: Vec<(Key, Option<Tail>)>,
    epoch: u64,
}

impl Missing {
    /// The keys alone: they do not keep an index alive.
    pub(crate) fn into_keys(self) -> Vec<Key> {
        self.keys
    }

    /// Reads them; slow, so not under the lock of the state.
    pub(crate) fn look_up(self) -> Result<FoundTails> {
        let Self { shard, keys, index, epoch } = self;
        let read = keys.into_iter().map(|key| {
            let tail = read_tail(&index, shard, &key, &Directly)?;
            Ok((key, tail))
        });
        Ok(FoundTails { shard, tails: read.collect::<Result<_>>()?, epoch })
    }
}

fn read_tail(
    index: &Arc<Snapshot>,
    shard: Shard,
    key: &Key,
    reader: &impl IndexReader,
) -> Result<Option<Tail>> {
    let stored = index_key(shard, key);
    reader.value(index, IndexTable::Tails, &stored)?.map(|value| decode(&stored, value)).transpose()
}
