//! Rows: an ordered map over three layers, newest first.
//!
//! `dirty` holds changes since the last checkpoint began, `frozen` those that a running checkpoint is writing,
//! and below them lies the index as of the last finished one. A removal is kept as `None` until it is written.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::Result;

use crate::file::index::{Snapshot, prefix_end};

type Layer = BTreeMap<Vec<u8>, Option<Bytes>>;

/// The changes since a checkpoint began.
#[derive(Debug, Default)]
pub(crate) struct RowChanges {
    pub(crate) rows: Layer,
    /// Prefixes dropped as a whole. Nobody reads such rows again, so reading need not look here.
    pub(crate) forgotten: Vec<Vec<u8>>,
}

/// All rows.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    dirty: RowChanges,
    frozen: Arc<RowChanges>,
    index: Option<Arc<Snapshot>>,
}

impl Rows {
    /// Reads what is below the changes from this snapshot on; drops the frozen changes, which it contains.
    pub(crate) fn rebase(&mut self, index: Option<Arc<Snapshot>>) {
        self.frozen = Arc::default();
        self.index = index;
    }

    /// Hands out the changes for a checkpoint and goes on collecting in a fresh layer.
    pub(crate) fn freeze(&mut self) -> Arc<RowChanges> {
        self.frozen = Arc::new(std::mem::take(&mut self.dirty));
        Arc::clone(&self.frozen)
    }

    pub(crate) fn put(&mut self, key: &[u8], value: Bytes) {
        self.set(key, Some(value));
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.set(key, None);
    }

    fn set(&mut self, key: &[u8], value: Option<Bytes>) {
        match self.dirty.rows.get_mut(key) {
            Some(slot) => *slot = value,
            None => drop(self.dirty.rows.insert(key.to_vec(), value)),
        }
    }

    pub(crate) fn forget(&mut self, prefix: &[u8]) {
        let end = prefix_end(prefix);
        let bounds = (Bound::Included(prefix), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
        let keys: Vec<_> = self.dirty.rows.range::<[u8], _>(bounds).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.dirty.rows.remove(&key);
        }
        self.dirty.forgotten.push(prefix.to_vec());
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        for layer in [&self.dirty.rows, &self.frozen.rows] {
            if let Some(found) = layer.get(key) {
                return Ok(found.clone());
            }
        }
        self.index.as_ref().map_or(Ok(None), |index| index.row(key))
    }

    /// Rows that begin with `prefix` and lie after `after`, ascending, whole keys. Stops as soon as it has
    /// enough: a scan for the first row costs no more than a get.
    pub(crate) fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let end = prefix_end(prefix);
        let after = after.filter(|after| *after >= prefix);
        let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let until = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        if end.as_deref().is_some_and(|end| after.is_some_and(|after| after >= end)) {
            return Ok(Vec::new());
        }
        let mut dirty = self.dirty.rows.range::<[u8], _>((start, until)).peekable();
        let mut frozen = self.frozen.rows.range::<[u8], _>((start, until)).peekable();
        let mut index = IndexRows::new(self.index.as_deref(), start, end.as_deref(), limit);
        let mut found = Vec::new();
        while found.len() < limit {
            let below = index.peek()?.map(|(key, _)| key.clone());
            let heads = [
                dirty.peek().map(|(key, _)| &key[..]),
                frozen.peek().map(|(key, _)| &key[..]),
                below.as_deref(),
            ];
            let Some(key) = heads.into_iter().flatten().min().map(Bytes::copy_from_slice) else { break };
            // The newest layer that has the key decides; the others step past it.
            let mut value = None;
            if below.as_deref() == Some(&key[..]) {
                value = index.next()?;
            }
            for layer in [&mut frozen, &mut dirty] {
                if let Some((_, changed)) = layer.next_if(|(found, _)| found[..] == key[..]) {
                    value.clone_from(changed);
                }
            }
            found.extend(value.map(|value| (key, value)));
        }
        Ok(found)
    }
}

/// The index part of a scan, a page at a time.
struct IndexRows<'a> {
    index: Option<&'a Snapshot>,
    next: Bound<Vec<u8>>,
    end: Option<&'a [u8]>,
    page: VecDeque<(Bytes, Bytes)>,
    page_len: usize,
}

impl<'a> IndexRows<'a> {
    fn new(index: Option<&'a Snapshot>, start: Bound<&[u8]>, end: Option<&'a [u8]>, limit: usize) -> Self {
        Self {
            index,
            next: start.map(<[u8]>::to_vec),
            end,
            page: VecDeque::new(),
            page_len: limit.clamp(1, 256),
        }
    }

    fn peek(&mut self) -> Result<Option<&(Bytes, Bytes)>> {
        if self.page.is_empty()
            && let Some(index) = self.index
        {
            self.page = index.rows(self.next.as_ref().map(Vec::as_slice), self.end, self.page_len)?.into();
            match self.page.back() {
                Some((last, _)) if self.page.len() == self.page_len => {
                    self.next = Bound::Excluded(last.to_vec())
                }
                _ => self.index = None,
            }
        }
        Ok(self.page.front())
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        self.peek()?;
        Ok(self.page.pop_front().map(|(_, value)| value))
    }
}
