//! Tails: the end of every lane ever seen, of which only the active ones are in memory.
//!
//! A lane that was active lately is in `live`, one that was before that in `old`; below them lies the index. Cold
//! tails are looked up before the state's lock is taken ([`Tails::missing`], [`Tails::warm`]); under it they are
//! found in memory with one look.
//!
//! A checkpoint takes the list of changed lanes in one step and reads their tails afterwards, a few at a time,
//! while work goes on. So a tail in the index may be newer than the checkpoint's place in the log, though never
//! newer than what is durable: replay from that place sets it again, to the same or a later one.
//!
//! The whole interface to what lies below is three calls (get many, write at a checkpoint, position), so that
//! sorted runs can take redb's place when millions of keys are active at once.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use hashbrown::{Equivalent, HashMap};
use laneway_core::{Key, Partition, Result, Seq, Shard, StreamId, Timestamp};

use super::fetched::{Directly, IndexReader, PageKey};
use crate::file::index::{IndexTable, Snapshot, prefix_end};
use crate::machine::Tail;
use crate::machine::codec::{Decoder, Encoder, Malformed};

/// Most tails of the index that a list reads at a time.
const PAGE_MAX: usize = 1_024;

/// A lane of a shard. Owns its bytes: a key sliced out of a request must not keep the request alive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TailKey {
    shard: Shard,
    key: Key,
}

#[derive(Hash)]
struct BorrowedKey<'a> {
    shard: Shard,
    key: &'a [u8],
}

impl Equivalent<TailKey> for BorrowedKey<'_> {
    fn equivalent(&self, other: &TailKey) -> bool {
        self.shard == other.shard && self.key == other.key.bytes()
    }
}

impl TailKey {
    fn new(shard: Shard, key: &Key) -> Self {
        Self { shard, key: key.detached() }
    }

    fn encode(shard: Shard, key: &[u8]) -> Vec<u8> {
        let mut bytes = shard_prefix(shard).to_vec();
        bytes.extend_from_slice(key);
        bytes
    }

    /// The key in the index.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        Self::encode(self.shard, self.key.bytes())
    }
}

/// Where the tails of a shard begin in the index.
pub(crate) fn shard_prefix(shard: Shard) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix[..4].copy_from_slice(&shard.stream.0.to_be_bytes());
    prefix[4..].copy_from_slice(&shard.partition.0.to_be_bytes());
    prefix
}

/// The shard that a prefix in the index names.
pub(crate) fn parse_shard(bytes: &[u8]) -> Option<Shard> {
    let (stream, rest) = bytes.split_first_chunk::<4>()?;
    let partition = rest.first_chunk::<4>()?;
    let (stream, partition) = (u32::from_be_bytes(*stream), u32::from_be_bytes(*partition));
    Some(Shard { stream: StreamId(stream), partition: Partition(partition) })
}

/// A lane in memory. Without a tail it is known not to exist.
#[derive(Clone, Copy, Debug)]
struct Slot {
    tail: Option<Tail>,
    /// In which interval between checkpoints it last changed.
    changed: u64,
}

type Layer = HashMap<TailKey, Slot>;
/// Lanes that changed, by shard.
pub(crate) type ChangedLanes = HashMap<Shard, Vec<TailKey>>;
/// Tails by key.
type NamedTails = BTreeMap<Vec<u8>, Tail>;
/// So many lanes that changed lately are looked through for a list.
const NEWER_LISTED: usize = 4_096;

/// All tails.
#[derive(Debug)]
pub(crate) struct Tails {
    live: Layer,
    old: Layer,
    /// Lanes that changed since the last checkpoint began.
    changed: ChangedLanes,
    /// Lanes that the checkpoint which is being written is about.
    writing: Arc<ChangedLanes>,
    /// When that checkpoint began, and the last one that was finished.
    writing_since: Timestamp,
    stored_at: Timestamp,
    /// Number of the interval between checkpoints, from 1: a slot that was only read has none.
    interval: u64,
    /// Lanes in `live` from which on it becomes `old`, at the next checkpoint.
    live_max: usize,
    /// Whether every tail there is lies in memory: then a miss is an answer.
    complete: bool,
    index: Option<Arc<Snapshot>>,
    /// Counts checkpoints: a tail read below one must not enter memory above it.
    epoch: u64,
}

impl Tails {
    pub(crate) fn new(cache_len: usize) -> Self {
        Self {
            live: HashMap::new(),
            old: HashMap::new(),
            changed: HashMap::new(),
            writing: Arc::default(),
            writing_since: Timestamp(0),
            stored_at: Timestamp(0),
            interval: 1,
            live_max: cache_len / 2,
            complete: true,
            index: None,
            epoch: 0,
        }
    }

    /// Starts on an index that has tails already.
    pub(crate) fn attach(&mut self, index: Arc<Snapshot>) -> Result<()> {
        self.complete = index.tail_count()? == 0;
        self.index = Some(index);
        Ok(())
    }

    /// Whether memory has every tail there is.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Sets the end of a lane, or forgets it.
    pub(crate) fn set(&mut self, shard: Shard, key: &Key, tail: Option<Tail>) {
        let (borrowed, changed) = (BorrowedKey { shard, key: key.as_ref() }, self.interval);
        if let Some((known, slot)) = self.live.get_key_value_mut(&borrowed) {
            if slot.changed != changed {
                self.changed.entry(shard).or_default().push(known.clone());
            }
            *slot = Slot { tail, changed };
            return;
        }
        let known = self.old.get_key_value(&borrowed).map(|(known, _)| known.clone());
        let owned = known.unwrap_or_else(|| TailKey::new(shard, key));
        self.changed.entry(shard).or_default().push(owned.clone());
        self.live.insert(owned, Slot { tail, changed });
    }

    fn slot(&self, key: &BorrowedKey<'_>) -> Option<&Slot> {
        self.live.get(key).or_else(|| self.old.get(key))
    }

    /// What memory knows: `None` when it must be read, `Some(None)` when there is no such lane.
    fn in_memory(&self, key: &BorrowedKey<'_>) -> Option<Option<Tail>> {
        self.slot(key).map(|slot| slot.tail).or(self.complete.then_some(None))
    }

    /// The tail of a lane, from the index if need be.
    pub(super) fn get(&self, shard: Shard, key: &Key, reader: &impl IndexReader) -> Result<Option<Tail>> {
        match (self.in_memory(&BorrowedKey { shard, key: key.as_ref() }), &self.index) {
            (Some(known), _) => Ok(known),
            (None, Some(index)) => read_tail(index, shard, key.as_ref(), reader),
            (None, None) => Ok(None),
        }
    }

    /// Which of these keys would have to be read from the index, and from which one.
    pub(crate) fn missing<'k>(&self, shard: Shard, keys: impl Iterator<Item = &'k Key>) -> Option<Missing> {
        let index = self.index.as_ref()?;
        let missing = keys.filter(|key| self.in_memory(&BorrowedKey { shard, key: key.as_ref() }).is_none());
        let keys: Vec<Key> = missing.cloned().collect();
        (!keys.is_empty()).then(|| Missing { shard, keys, index: Arc::clone(index), epoch: self.epoch })
    }

    /// Keeps looked-up tails, unless a checkpoint has passed since or memory has a newer one.
    pub(crate) fn warm(&mut self, epoch: u64, found: Vec<(TailKey, Option<Tail>)>) {
        if epoch != self.epoch {
            return;
        }
        for (key, tail) in found {
            if !self.old.contains_key(&key) {
                self.live.entry(key).or_insert(Slot { tail, changed: 0 });
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

    /// The tails of these lanes as they are now, as the index keeps them; nothing where a lane was forgotten. Lanes of removed
    /// shards are left out.
    pub(crate) fn collect(
        &self,
        keys: &[TailKey],
        exists: impl Fn(Shard) -> bool,
    ) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let slot = |key: &TailKey| self.live.get(key).or_else(|| self.old.get(key));
        let tails =
            keys.iter().filter(|key| exists(key.shard)).filter_map(|key| Some((key, slot(key)?.tail)));
        tails.map(|(key, tail)| (key.bytes(), tail.as_ref().map(encode))).collect()
    }

    /// What changed before is in this index now. Answers what is to be dropped outside the lock.
    ///
    /// What is dropped here lay in `old` since the checkpoint before at least, so this one has written it.
    pub(crate) fn rebase(&mut self, index: Arc<Snapshot>) -> impl Sized + use<> {
        self.epoch += 1;
        self.index = Some(index);
        self.stored_at = self.writing_since;
        self.writing = Arc::default();
        if self.live.len() <= self.live_max {
            return Layer::new();
        }
        self.complete &= self.old.is_empty();
        let live = Layer::with_capacity(self.live.len());
        std::mem::replace(&mut self.old, std::mem::replace(&mut self.live, live))
    }

    /// Tails of a shard after a key, by key.
    pub(super) fn list(
        &self,
        shard: Shard,
        after: Option<&Key>,
        limit: usize,
        reader: &impl IndexReader,
    ) -> Result<Vec<(Key, Tail)>> {
        let (mut found, last) = self.list_stored(shard, after, limit, reader)?;
        // Above the last key of a full page the index may have lanes that are not here.
        let is_inside = |key: &&TailKey| {
            after.is_none_or(|after| key.key.bytes() > after.bytes())
                && last.as_ref().is_none_or(|last| *key.key.bytes() <= last[..])
        };
        for key in self.newer(shard).filter(is_inside) {
            let Some(slot) = self.live.get(key).or_else(|| self.old.get(key)) else { continue };
            match slot.tail {
                Some(tail) => found.insert(key.key.bytes().to_vec(), tail),
                None => found.remove(key.key.bytes()),
            };
        }
        name_all(found, limit)
    }

    /// Tails of a shard after a key, by key, for a search that goes through all of them: lanes that came since the last
    /// checkpoint may be left out when they are many ([`Tails::has_stored`]).
    pub(super) fn list_old(
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
    pub(super) fn has_stored(&self, shard: Shard, time: Timestamp) -> bool {
        self.newer_len(shard) <= NEWER_LISTED || time < self.stored_at
    }

    /// Lanes that may differ from what the index says.
    fn newer(&self, shard: Shard) -> impl Iterator<Item = &TailKey> {
        self.writing.get(&shard).into_iter().chain(self.changed.get(&shard)).flatten()
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
            Some(after) => Bound::Excluded(TailKey::encode(shard, after.as_ref())),
        };
        // Lanes that were forgotten since fill no page.
        while found.len() < limit {
            let key = PageKey { table: IndexTable::Tails, start, end: end.clone(), len, values: true };
            let page = reader.page(index, key)?;
            last = page.last().filter(|_| page.len() == len).map(|(key, _)| key[8..].to_vec());
            start = Bound::Excluded(page.last().map(|(key, _)| key.to_vec()).unwrap_or_default());
            for (key, value) in page {
                let tail = match self.slot(&BorrowedKey { shard, key: &key[8..] }) {
                    Some(slot) => slot.tail,
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
    keys: Vec<Key>,
    index: Arc<Snapshot>,
    pub(crate) epoch: u64,
}

impl Missing {
    /// Reads them; slow, so not under the lock of the state.
    pub(crate) fn look_up(&self) -> Result<Vec<(TailKey, Option<Tail>)>> {
        let read = self.keys.iter().map(|key| {
            let tail = read_tail(&self.index, self.shard, key.as_ref(), &Directly)?;
            Ok((TailKey::new(self.shard, key), tail))
        });
        read.collect()
    }
}

fn read_tail(
    index: &Arc<Snapshot>,
    shard: Shard,
    key: &[u8],
    reader: &impl IndexReader,
) -> Result<Option<Tail>> {
    let stored = TailKey::encode(shard, key);
    reader.value(index, IndexTable::Tails, &stored)?.map(|value| decode(&stored, value)).transpose()
}

pub(crate) fn encode(tail: &Tail) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    out.u8(1 | u8::from(tail.generation.is_some()) << 1 | u8::from(tail.deleted) << 2);
    out.varint(tail.id.0);
    out.varint(tail.seq.0);
    if let Some(generation) = tail.generation {
        out.varint(generation);
    }
    out.varint(tail.incarnation);
    out
}

fn decode(key: &[u8], value: bytes::Bytes) -> Result<Tail> {
    let mut from = Decoder::new(value);
    let tail = decode_parts(&mut from).and_then(|tail| from.finish().map(|()| tail));
    tail.map_err(|malformed| malformed.in_what(format!("tail {}", key.escape_ascii())))
}

/// What [`encode`] wrote.
pub(super) fn decode_parts(from: &mut Decoder) -> std::result::Result<Tail, Malformed> {
    let flags = from.u8()?;
    if flags & 1 == 0 || flags > 7 {
        return Err(Malformed);
    }
    let (id, seq) = (laneway_core::EventId(from.varint()?), Seq(from.varint()?));
    let generation = if flags & 2 != 0 { Some(from.varint()?) } else { None };
    let incarnation = from.varint()?;
    Ok(Tail { id, seq, generation, incarnation, deleted: flags & 4 != 0 })
}
