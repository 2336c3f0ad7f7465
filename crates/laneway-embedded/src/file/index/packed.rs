//! Changes to a table, one behind the other in one piece of memory: a checkpoint may have a million of them.

/// Changes in the order in which they were added. A removal has no value.
#[derive(Debug, Default)]
pub(crate) struct PackedChanges {
    bytes: Vec<u8>,
    changes: Vec<Change>,
}

/// Where a key and the value behind it lie.
#[derive(Clone, Copy, Debug)]
struct Change {
    start: usize,
    value: usize,
    /// Nothing for a removal.
    end: Option<usize>,
}

impl PackedChanges {
    /// Makes room, so that as many changes as these are added without a copy of the others.
    pub(crate) fn reserve(&mut self, changes: usize, bytes_each: usize) {
        self.bytes.reserve(changes * bytes_each);
        self.changes.reserve(changes);
    }

    /// Adds a value under a key, which is given in two parts.
    pub(crate) fn put(&mut self, key: [&[u8]; 2], write: impl FnOnce(&mut Vec<u8>)) {
        let (start, value) = self.add_key(key);
        write(&mut self.bytes);
        self.changes.push(Change { start, value, end: Some(self.bytes.len()) });
    }

    /// Adds a removal.
    pub(crate) fn remove(&mut self, key: [&[u8]; 2]) {
        let (start, value) = self.add_key(key);
        self.changes.push(Change { start, value, end: None });
    }

    fn add_key(&mut self, key: [&[u8]; 2]) -> (usize, usize) {
        let start = self.bytes.len();
        key.into_iter().for_each(|part| self.bytes.extend_from_slice(part));
        (start, self.bytes.len())
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
        &self.bytes[change.start..change.value]
    }

    /// Keys with their new values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.changes.iter().map(|change| {
            let value = change.end.map(|end| &self.bytes[change.value..end]);
            (self.key(change), value)
        })
    }
}

/// The first eight bytes as a number, with zeros behind a shorter key.
fn number(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}
