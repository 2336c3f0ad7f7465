//! Tails: the end of every lane ever seen, of which only the active ones are in memory.
//!
//! Layers, newest first: `dirty` (since the last checkpoint began), `frozen` (being written by one), `clean`
//! (written by recent ones), `fetched` (read from the index, also "there is none"), and the index itself. Cold
//! tails are looked up by the caller's thread before its append reaches the commit thread ([`Tails::missing`],
//! [`Tails::warm`]); the commit thread finds them in memory. `clean` is replaced as a whole, built by the
//! checkpoint thread, so that no checkpoint holds up a commit.
//!
//! The whole interface to what lies below is three calls (get many, write at a checkpoint, position), so that
//! sorted runs can take redb's place when millions of keys are active at once.

use std::ops::Bound;
use std::sync::Arc;

use hashbrown::{Equivalent, HashMap};
use laneway_core::{Key, Partition, Result, Seq, Shard, StreamId};

use crate::file::index::{Snapshot, prefix_end};
use crate::machine::Tail;
use crate::machine::codec::{Decoder, Encoder, Malformed};

/// A lane of a shard. Owns its bytes: a key sliced out of a request must not keep the request alive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TailKey {
    shard: Shard,
    key: Arc<[u8]>,
}

#[derive(Hash)]
struct BorrowedKey<'a> {
    shard: Shard,
    key: &'a [u8],
}

impl Equivalent<TailKey> for BorrowedKey<'_> {
    fn equivalent(&self, other: &TailKey) -> bool {
        self.shard == other.shard && *self.key == *other.key
    }
}

impl TailKey {
    fn encode(shard: Shard, key: &[u8]) -> Vec<u8> {
        let mut bytes = shard_prefix(shard).to_vec();
        bytes.extend_from_slice(key);
        bytes
    }

    /// The key in the index.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        Self::encode(self.shard, &self.key)
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

pub(crate) type TailLayer = HashMap<TailKey, Tail>;

/// All tails.
#[derive(Debug)]
pub(crate) struct Tails {
    dirty: TailLayer,
    frozen: Arc<TailLayer>,
    clean: Arc<TailLayer>,
    fetched: HashMap<TailKey, Option<Tail>>,
    /// Most tails in `clean`, and in `fetched`.
    cache_len: usize,
    /// Whether every tail there is lies in memory: then a miss is an answer.
    complete: bool,
    index: Option<Arc<Snapshot>>,
    /// Counts checkpoints: a tail read below one must not enter memory above it.
    epoch: u64,
}

/// The clean layer after a checkpoint, built outside the lock.
pub(crate) struct NextClean {
    layer: Arc<TailLayer>,
    forgets: bool,
}

impl Tails {
    pub(crate) fn new(cache_len: usize) -> Self {
        Self {
            dirty: HashMap::new(),
            frozen: Arc::default(),
            clean: Arc::default(),
            fetched: HashMap::new(),
            cache_len,
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

    pub(crate) fn set(&mut self, shard: Shard, key: &Key, tail: Tail) {
        let borrowed = BorrowedKey { shard, key: key.as_ref() };
        if let Some(slot) = self.dirty.get_mut(&borrowed) {
            *slot = tail;
            return;
        }
        // A lane that was active before the last checkpoint has its key in memory: no copy of it is needed.
        let known = self.frozen.get_key_value(&borrowed).or_else(|| self.clean.get_key_value(&borrowed));
        let owned = known.map_or_else(|| TailKey { shard, key: key.as_ref().into() }, |(key, _)| key.clone());
        self.dirty.insert(owned, tail);
    }

    /// What memory knows: `None` when it must be read, `Some(None)` when there is no such lane.
    fn in_memory(&self, key: &BorrowedKey<'_>) -> Option<Option<Tail>> {
        let written = self.dirty.get(key).or_else(|| self.frozen.get(key)).or_else(|| self.clean.get(key));
        match written {
            Some(tail) => Some(Some(*tail)),
            None if self.complete => Some(None),
            None => self.fetched.get(key).copied(),
        }
    }

    /// The tail of a lane, from the index if need be.
    pub(crate) fn get(&self, shard: Shard, key: &Key) -> Result<Option<Tail>> {
        match (self.in_memory(&BorrowedKey { shard, key: key.as_ref() }), &self.index) {
            (Some(known), _) => Ok(known),
            (None, Some(index)) => read_tail(index, shard, key.as_ref()),
            (None, None) => Ok(None),
        }
    }

    /// Which of these keys would have to be read from the index, and from which one. `None` when memory has
    /// every tail there is.
    pub(crate) fn missing<'k>(&self, shard: Shard, keys: impl Iterator<Item = &'k Key>) -> Option<Missing> {
        let index = self.index.as_ref()?;
        let missing = keys.filter(|key| self.in_memory(&BorrowedKey { shard, key: key.as_ref() }).is_none());
        let keys: Vec<Key> = missing.cloned().collect();
        (!keys.is_empty()).then(|| Missing { shard, keys, index: Arc::clone(index), epoch: self.epoch })
    }

    /// Keeps looked-up tails, unless a checkpoint has passed since: then they may be outdated.
    pub(crate) fn warm(&mut self, epoch: u64, found: Vec<(TailKey, Option<Tail>)>) {
        if epoch != self.epoch {
            return;
        }
        if self.fetched.len() + found.len() > self.cache_len {
            self.fetched.clear();
        }
        self.fetched.extend(found);
    }

    /// Hands out the changes for a checkpoint and goes on collecting in a fresh layer.
    pub(crate) fn freeze(&mut self) -> Arc<TailLayer> {
        // The next interval will touch about as many lanes as this one.
        let next = HashMap::with_capacity(self.dirty.len());
        self.frozen = Arc::new(std::mem::replace(&mut self.dirty, next));
        Arc::clone(&self.frozen)
    }

    /// What a checkpoint that writes `written` makes of the clean layer; slow, so not under the lock.
    pub(crate) fn next_clean(clean: &TailLayer, written: &Arc<TailLayer>, cache_len: usize) -> NextClean {
        if clean.len() + written.len() > cache_len {
            return NextClean { layer: Arc::clone(written), forgets: !clean.is_empty() };
        }
        let mut layer = clean.clone();
        layer.extend(written.iter().map(|(key, tail)| (key.clone(), *tail)));
        NextClean { layer: Arc::new(layer), forgets: false }
    }

    /// What [`Tails::next_clean`] starts from.
    pub(crate) fn clean(&self) -> (Arc<TailLayer>, usize) {
        (Arc::clone(&self.clean), self.cache_len)
    }

    /// The frozen tails are in this index now. Answers what is to be dropped outside the lock.
    pub(crate) fn rebase(&mut self, index: Arc<Snapshot>, next: NextClean) -> impl Sized + use<> {
        self.epoch += 1;
        self.index = Some(index);
        let frozen = std::mem::take(&mut self.frozen);
        let clean = std::mem::replace(&mut self.clean, next.layer);
        // What `clean` forgets could be shadowing an outdated entry here.
        let fetched = if next.forgets { std::mem::take(&mut self.fetched) } else { HashMap::new() };
        self.complete &= !next.forgets;
        (frozen, clean, fetched)
    }

    /// Drops what changed in a removed shard; what was written before goes with the next checkpoint, and nobody
    /// asks for either again.
    pub(crate) fn forget(&mut self, shard: Shard) {
        self.dirty.retain(|key, _| key.shard != shard);
    }

    /// Tails of a shard after a key, by key. For lists, not for work: it sorts what is in memory.
    pub(crate) fn list(&self, shard: Shard, after: Option<&Key>, limit: usize) -> Result<Vec<(Key, Tail)>> {
        let after = after.map(AsRef::as_ref);
        let mut found = std::collections::BTreeMap::new();
        if let Some(index) = &self.index {
            let start = TailKey::encode(shard, after.unwrap_or_default());
            let from = if after.is_some() { Bound::Excluded(&start[..]) } else { Bound::Included(&start[..]) };
            for (key, value) in index.tails(from, prefix_end(&shard_prefix(shard)).as_deref(), limit)? {
                found.insert(key[8..].to_vec(), decode(&key, value)?);
            }
        }
        let full = found.len() == limit;
        let last = found.keys().next_back().cloned().filter(|_| full);
        let newer = self.frozen.iter().chain(self.dirty.iter()).filter(|(key, _)| {
            key.shard == shard
                && after.is_none_or(|after| *key.key > *after)
                && last.as_ref().is_none_or(|last| *key.key <= last[..])
        });
        found.extend(newer.map(|(key, tail)| (key.key.to_vec(), *tail)));
        let named = found.into_iter().take(limit).map(|(key, tail)| Ok((Key::new(key)?, tail)));
        named.collect()
    }
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
            let tail = read_tail(&self.index, self.shard, key.as_ref())?;
            Ok((TailKey { shard: self.shard, key: key.as_ref().into() }, tail))
        });
        read.collect()
    }
}

fn read_tail(index: &Snapshot, shard: Shard, key: &[u8]) -> Result<Option<Tail>> {
    let stored = TailKey::encode(shard, key);
    index.tail(&stored)?.map(|value| decode(&stored, value)).transpose()
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
