//! Changes to a table, one behind the other in one piece of memory: a checkpoint may have a million of them.

/// Changes in the order in which they were added. A removal has no value.
#[derive(Debug, Default)]
pub(crate) struct PackedChanges {
    bytes: Vec<u8>,
    changes: Vec<Change>,
}

/// Where a key and the value behind it lie. Small, because there are so many.
#[derive(Clone, Copy, Debug)]
struct Change {
    start: usize,
    key_len: u32,
    /// [`REMOVED`] for a removal.
    value_len: u32,
}

/// No value is so long.
const REMOVED: u32 = u32::MAX;

impl PackedChanges {
    /// With room for so many changes of so many bytes on average: a checkpoint takes memory once.
    pub(crate) fn with_capacity(changes: usize, bytes_each: usize) -> Self {
        Self { bytes: Vec::with_capacity(changes * bytes_each), changes: Vec::with_capacity(changes) }
    }

    /// Makes room for so many bytes, so that adding them copies nothing.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Adds a value under a key, which is given in two parts.
    pub(crate) fn put(&mut self, key: [&[u8]; 2], write: impl FnOnce(&mut Vec<u8>)) {
        let (start, key_len) = self.add_key(key);
        let value = self.bytes.len();
        write(&mut self.bytes);
        self.changes.push(Change { start, key_len, value_len: len_of(self.bytes.len() - value) });
    }

    /// Adds a removal.
    pub(crate) fn remove(&mut self, key: [&[u8]; 2]) {
        let (start, key_len) = self.add_key(key);
        self.changes.push(Change { start, key_len, value_len: REMOVED });
    }

    fn add_key(&mut self, key: [&[u8]; 2]) -> (usize, u32) {
        let start = self.bytes.len();
        key.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        (start, len_of(self.bytes.len() - start))
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Orders the changes from this one on by their keys, which are all different.
    ///
    /// Keys of one shard have a beginning in common, often a long one. What follows it is compared as a number, next to
    /// its change: comparing the keys themselves would fetch two of them from memory each time.
    pub(crate) fn sort_from(&mut self, first: usize) {
        let Some(start) = self.changes.get(first) else { return };
        let start = self.key(start);
        let common = |change: &Change| start.iter().zip(self.key(change)).take_while(|(a, b)| a == b).count();
        let common = self.changes[first..].iter().map(common).min().unwrap_or_default();
        let named = self.changes[first..].iter().map(|change| (number(&self.key(change)[common..]), *change));
        let mut named: Vec<(u64, Change)> = named.collect();
        named.sort_unstable_by(|(left, a), (right, b)| {
            left.cmp(right).then_with(|| self.key(a).cmp(self.key(b)))
        });
        for (place, (_, change)) in self.changes[first..].iter_mut().zip(named) {
            *place = change;
        }
    }

    fn key(&self, change: &Change) -> &[u8] {
        &self.bytes[change.start..][..change.key_len as usize]
    }

    /// Keys with their new values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.changes.iter().map(|change| {
            let value = &self.bytes[change.start + change.key_len as usize..];
            let value = (change.value_len != REMOVED).then(|| &value[..change.value_len as usize]);
            (self.key(change), value)
        })
    }
}

fn len_of(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("no key or value of the index is so long")
}

/// The first eight bytes as a number, with zeros behind a shorter key.
fn number(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}
