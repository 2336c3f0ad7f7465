//! Rows: an ordered map over three layers, newest first.
//!
//! `dirty` holds changes since the last checkpoint began, `frozen` those that a running checkpoint is writing,
//! and below them lies the index as of the last finished one. A removal is kept as `None` until it is written.
//!
//! A row that is created and deleted between two checkpoints never reaches the index. Rules that create a row call
//! [`Rows::put_new`]; deleting such a row removes it from `dirty` instead of leaving a tombstone.
//!
//! Tables that are used as queues are read at the front again and again, over all that was removed there. Other tables
//! have rows of few lanes and are asked for every lane. Stretches without a living row are remembered, so that neither
//! costs a look at the index (`empty_ranges`).

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::Result;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::empty_ranges::EmptyRanges;
use super::fetched::{IndexReader, PageKey};
use crate::file::index::{IndexTable, Snapshot, prefix_end};
use crate::machine::Table;

type Layer = BTreeMap<RowKey, Slot>;

/// Most keys fit in place. A search compares several keys per level of the tree, and each one elsewhere in memory would
/// be a miss of the processor's cache.
pub(super) type RowKey = SmallVec<[u8; 56]>;

/// A row in one layer.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// `None` if the row is deleted.
    pub(crate) value: Option<Bytes>,
    /// The row does not exist in the layers below.
    is_new: bool,
}

/// Most rows of the index that a scan reads at a time.
const PAGE_MAX: usize = 256;
/// The same when only keys are counted.
const KEYS_MAX: usize = 4_096;
/// A scan that passed over this many removed rows remembers where they were.
const REMOVED_MIN: usize = 16;

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
    empty: Mutex<EmptyRanges>,
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
        self.set(key, Slot { value: Some(value), is_new: false });
    }

    /// Writes a row that does not exist in any layer.
    pub(crate) fn put_new(&mut self, key: &[u8], value: Bytes) {
        debug_assert!(
            matches!(self.get(key, &super::fetched::Directly), Ok(None) | Err(_)),
            "put_new on an existing row"
        );
        self.set(key, Slot { value: Some(value), is_new: true });
    }

    fn set(&mut self, key: &[u8], set: Slot) {
        self.empty.get_mut().fill(key);
        match self.dirty.rows.entry(RowKey::from_slice(key)) {
            // `is_new` describes the layers below, which this write does not change.
            Entry::Occupied(mut slot) => slot.get_mut().value = set.value,
            Entry::Vacant(place) => drop(place.insert(set)),
        }
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        match self.dirty.rows.entry(RowKey::from_slice(key)) {
            Entry::Occupied(slot) if slot.get().is_new => drop(slot.remove()),
            Entry::Occupied(mut slot) => slot.get_mut().value = None,
            Entry::Vacant(place) => drop(place.insert(Slot { value: None, is_new: false })),
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

    pub(super) fn get(&self, key: &[u8], reader: &impl IndexReader) -> Result<Option<Bytes>> {
        for layer in [&self.dirty.rows, &self.frozen.rows] {
            if let Some(found) = layer.get(key) {
                return Ok(found.value.clone());
            }
        }
        let Some(index) = &self.index else { return Ok(None) };
        let is_sparse = Table::is_sparse(key);
        if is_sparse && self.empty.lock().has(key) {
            return Ok(None);
        }
        let found = reader.value(index, IndexTable::Rows, key)?;
        if is_sparse && found.is_none() {
            self.note_gap(key, reader)?;
        }
        Ok(found)
    }

    /// Rows that begin with `prefix` and lie after `after`, ascending, whole keys. Stops as soon as it has
    /// enough: a scan for the first row costs no more than a get, whatever was removed before it.
    pub(super) fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
        reader: &impl IndexReader,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        self.walk(prefix, after, limit, reader, true)
    }

    /// How many of the next rows there are, at most `limit`, and the last one's key if there may be more.
    pub(super) fn count_page(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
        reader: &impl IndexReader,
    ) -> Result<(u64, Option<Bytes>)> {
        let found = self.walk(prefix, after, limit, reader, false)?;
        let last = found.last().filter(|_| found.len() == limit).map(|(key, _)| key.clone());
        Ok((found.len() as u64, last))
    }

    /// The first whole keys that begin with `prefix`.
    pub(super) fn first_keys(
        &self,
        prefix: &[u8],
        limit: usize,
        reader: &impl IndexReader,
    ) -> Result<Vec<Bytes>> {
        let found = self.walk(prefix, None, limit, reader, false)?;
        Ok(found.into_iter().map(|(key, _)| key).collect())
    }

    fn walk(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
        reader: &impl IndexReader,
        values: bool,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let end = prefix_end(prefix);
        // The first key that is looked at; behind `after` that is the same with a zero byte.
        let first = match after.filter(|after| *after >= prefix) {
            Some(after) => [after, &[0]].concat(),
            None => prefix.to_vec(),
        };
        let start = self.empty.lock().end_of(&first).unwrap_or_else(|| first.clone());
        if end.as_deref().is_some_and(|end| &start[..] >= end) {
            return Ok(Vec::new());
        }
        let page_len = limit.clamp(1, if values { PAGE_MAX } else { KEYS_MAX });
        let mut merge = Merge::new(self, &start, end.as_deref(), page_len, reader, values);
        let (mut found, mut removed) = (Vec::new(), 0);
        while found.len() < limit {
            match merge.next()? {
                Some((key, Some(value))) => {
                    if found.is_empty() {
                        self.note_removed(removed, &first, &key);
                    }
                    found.push((key, value));
                }
                Some((_, None)) => removed += usize::from(found.is_empty()),
                None => {
                    if let (true, Some(end)) = (found.is_empty(), &end) {
                        self.note_removed(removed, &first, end);
                        if Table::is_sparse(prefix) {
                            self.note_gap(end, reader)?;
                            self.empty.lock().add(&first, end);
                        }
                    }
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Remembers that no row lives from this key to the next row of its table, if there is an index to ask.
    fn note_gap(&self, from: &[u8], reader: &impl IndexReader) -> Result<()> {
        let Some(index) = &self.index else { return Ok(()) };
        let Some(mut to) = prefix_end(&from[..1]) else { return Ok(()) };
        let start = Bound::Included(from.to_vec());
        let key = PageKey { table: IndexTable::Rows, start, end: Some(to.clone()), len: 1, values: false };
        if let Some((key, _)) = reader.page(index, key)?.first() {
            to = key.to_vec();
        }
        for layer in [&self.dirty.rows, &self.frozen.rows] {
            let next = layer.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next();
            if let Some((key, _)) = next.filter(|(key, _)| key[..] < to[..]) {
                to = key.to_vec();
            }
        }
        if from < &to[..] {
            self.empty.lock().add(from, &to);
        }
        Ok(())
    }

    fn note_removed(&self, removed: usize, from: &[u8], to: &[u8]) {
        if removed >= REMOVED_MIN {
            self.empty.lock().add(from, to);
        }
    }
}

/// All layers side by side.
struct Merge<'a, R> {
    dirty: std::iter::Peekable<std::collections::btree_map::Range<'a, RowKey, Slot>>,
    frozen: std::iter::Peekable<std::collections::btree_map::Range<'a, RowKey, Slot>>,
    index: IndexRows<'a, R>,
}

impl<'a, R: IndexReader> Merge<'a, R> {
    fn new(
        rows: &'a Rows,
        start: &[u8],
        end: Option<&'a [u8]>,
        page_len: usize,
        reader: &'a R,
        values: bool,
    ) -> Self {
        let bounds = (Bound::Included(start), end.map_or(Bound::Unbounded, Bound::Excluded));
        Self {
            dirty: rows.dirty.rows.range::<[u8], _>(bounds).peekable(),
            frozen: rows.frozen.rows.range::<[u8], _>(bounds).peekable(),
            index: IndexRows {
                index: rows.index.as_ref(),
                reader,
                next: Bound::Included(start.to_vec()),
                end,
                page: VecDeque::new(),
                page_len,
                values,
            },
        }
    }

    /// The next key, and what the newest layer that has it says.
    fn next(&mut self) -> Result<Option<(Bytes, Option<Bytes>)>> {
        let below = self.index.peek()?.map(|(key, _)| key.clone());
        let heads = [
            self.dirty.peek().map(|(key, _)| &key[..]),
            self.frozen.peek().map(|(key, _)| &key[..]),
            below.as_deref(),
        ];
        let Some(key) = heads.into_iter().flatten().min().map(Bytes::copy_from_slice) else {
            return Ok(None);
        };
        let mut value = None;
        if below.as_deref() == Some(&key[..]) {
            value = self.index.next()?;
        }
        for layer in [&mut self.frozen, &mut self.dirty] {
            if let Some((_, changed)) = layer.next_if(|(found, _)| found[..] == key[..]) {
                value.clone_from(&changed.value);
            }
        }
        Ok(Some((key, value)))
    }
}

/// The index part of a scan, a page at a time.
struct IndexRows<'a, R> {
    index: Option<&'a Arc<Snapshot>>,
    reader: &'a R,
    next: Bound<Vec<u8>>,
    end: Option<&'a [u8]>,
    page: VecDeque<(Bytes, Bytes)>,
    /// Twice as many every next time: mostly the first page has what is wanted.
    page_len: usize,
    values: bool,
}

impl<R: IndexReader> IndexRows<'_, R> {
    fn peek(&mut self) -> Result<Option<&(Bytes, Bytes)>> {
        if self.page.is_empty()
            && let Some(index) = self.index
        {
            let key = PageKey {
                table: IndexTable::Rows,
                start: self.next.clone(),
                end: self.end.map(<[u8]>::to_vec),
                len: self.page_len,
                values: self.values,
            };
            self.page = self.reader.page(index, key)?.into();
            match self.page.back() {
                Some((last, _)) if self.page.len() == self.page_len => {
                    self.next = Bound::Excluded(last.to_vec());
                }
                _ => self.index = None,
            }
            self.page_len = (2 * self.page_len).min(if self.values { PAGE_MAX } else { KEYS_MAX });
        }
        Ok(self.page.front())
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        self.peek()?;
        Ok(self.page.pop_front().map(|(_, value)| value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fetched::{Directly, Page};
    use super::*;
    use crate::file::index::fixture::{meta, new_index};
    use crate::file::index::{CheckpointWrite, Index};

    /// Counts how often the index is asked.
    #[derive(Default)]
    struct Counted(std::cell::Cell<usize>);

    impl IndexReader for Counted {
        fn value(&self, index: &Arc<Snapshot>, table: IndexTable, key: &[u8]) -> Result<Option<Bytes>> {
            self.0.set(self.0.get() + 1);
            Directly.value(index, table, key)
        }

        fn page(&self, index: &Arc<Snapshot>, key: PageKey) -> Result<Page> {
            self.0.set(self.0.get() + 1);
            Directly.page(index, key)
        }
    }

    /// Carries out a checkpoint of the frozen rows.
    fn checkpoint(rows: &mut Rows, index: &Index) {
        let changed = rows.frozen.rows.iter();
        let changed = changed.map(|(key, slot)| (key.to_vec(), slot.value.clone())).collect();
        index.write(&meta(), &CheckpointWrite { rows: changed, ..CheckpointWrite::default() }).unwrap();
        rows.rebase(Some(index.snapshot().unwrap()));
    }

    fn lane_row(number: u32) -> Vec<u8> {
        [&[Table::Lane as u8][..], &number.to_be_bytes()].concat()
    }

    #[test]
    fn index_is_not_asked_again_for_rows_that_few_lanes_have() {
        let (index, mut rows) = (new_index(), Rows::default());
        rows.put_new(&lane_row(500), Bytes::new());
        rows.freeze();
        checkpoint(&mut rows, &index);
        let asked = |rows: &Rows| {
            let reader = Counted::default();
            for number in 0..1_000 {
                let is_there = rows.get(&lane_row(number), &reader).unwrap().is_some();
                assert_eq!(is_there, number == 500, "row {number}");
                rows.scan(&lane_row(number), None, 1, &reader).unwrap();
            }
            reader.0.get()
        };
        assert!(asked(&rows) < 10, "the first two rows that are missing tell of all others");
        assert_eq!(asked(&rows), 2, "one look and one scan for the row that is there");
    }

    #[test]
    fn first_row_of_a_queue_is_found_without_a_look_at_what_was_removed() {
        let mut rows = Rows::default();
        let key = |number: u32| number.to_be_bytes();
        let first = |rows: &Rows| rows.scan(&[0], None, 1, &Directly).unwrap().pop().map(|(key, _)| key);
        (0..1_000).for_each(|number| rows.put(&key(number), Bytes::new()));
        for number in 0..1_000 {
            assert_eq!(first(&rows).as_deref(), Some(&key(number)[..]));
            rows.delete(&key(number));
            let start = rows.empty.lock().end_of(&[0]).unwrap_or_else(|| vec![0]);
            let passed = rows
                .dirty
                .rows
                .range::<[u8], _>((Bound::Included(&start[..]), Bound::Unbounded))
                .take_while(|(_, slot)| slot.value.is_none())
                .count();
            assert!(passed <= REMOVED_MIN + 1, "{passed} removed rows are passed over again");
        }
        assert_eq!(first(&rows), None);
    }

    #[test]
    fn rows_that_come_and_go_between_checkpoints_leave_no_trace() {
        let mut rows = Rows::default();
        rows.put_new(b"short", Bytes::new());
        rows.put(b"long", Bytes::new());
        rows.delete(b"short");
        rows.delete(b"long");
        assert_eq!(rows.dirty.rows.keys().map(|key| &key[..]).collect::<Vec<_>>(), [b"long"]);
        // One that a checkpoint has taken is removed from the index by the next.
        rows.put_new(b"taken", Bytes::new());
        rows.freeze();
        rows.delete(b"taken");
        assert!(rows.dirty.rows[&b"taken"[..]].value.is_none());
        // It is not there now, so it may come and go again, and stays removed.
        rows.freeze();
        rows.put_new(b"taken", Bytes::from_static(b"again"));
        rows.delete(b"taken");
        assert_eq!(rows.get(b"taken", &Directly).unwrap(), None);
        assert!(rows.dirty.rows.is_empty());
    }

    proptest! {
        #[test]
        fn scans_answer_what_a_plain_map_does(
            steps in proptest::collection::vec((0u8..4, 0u8..60, 0u8..8), 1..400),
        ) {
            let (mut rows, mut plain) = (Rows::default(), BTreeMap::new());
            for (step, number, limit) in steps {
                let key = [number / 20, number];
                match step {
                    0 => {
                        let value = Bytes::copy_from_slice(&[number]);
                        if plain.insert(key, number).is_none() {
                            rows.put_new(&key, value);
                        } else {
                            rows.put(&key, value);
                        }
                    }
                    // A checkpoint begins; what it writes is read from the frozen layer until it ends.
                    3 if rows.frozen.rows.is_empty() => drop(rows.freeze()),
                    1 => {
                        // Whole stretches go, as from a queue.
                        for gone in 0..number {
                            rows.delete(&[gone / 20, gone]);
                            plain.remove(&[gone / 20, gone]);
                        }
                    }
                    _ => {
                        let prefix = &key[..1];
                        let after = limit.is_multiple_of(2).then_some(&key[..]);
                        let found = rows.scan(prefix, after, limit.into(), &Directly).unwrap();
                        let wanted = plain.keys().filter(|found| found[0] == key[0]);
                        let wanted = wanted.filter(|found| after.is_none_or(|after| &found[..] > after));
                        let wanted: Vec<_> = wanted.take(limit.into()).map(|key| key.to_vec()).collect();
                        prop_assert_eq!(found.into_iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>(), wanted);
                    }
                }
            }
        }

        #[test]
        fn rows_answer_what_a_plain_map_does_through_checkpoints(
            steps in proptest::collection::vec((0u8..6, 0u32..40, 0usize..4), 1..120),
        ) {
            let (index, mut rows, mut plain) = (new_index(), Rows::default(), BTreeMap::new());
            for (step, number, limit) in steps {
                let key = lane_row(number);
                match step {
                    0 => {
                        let is_new = plain.insert(key.clone(), number).is_none();
                        let value = Bytes::copy_from_slice(&number.to_be_bytes());
                        if is_new { rows.put_new(&key, value) } else { rows.put(&key, value) }
                    }
                    1 => {
                        rows.delete(&key);
                        plain.remove(&key);
                    }
                    2 if rows.frozen.rows.is_empty() => drop(rows.freeze()),
                    2 => checkpoint(&mut rows, &index),
                    3 | 4 => {
                        let found = rows.get(&key, &Directly).unwrap();
                        prop_assert_eq!(found.is_some(), plain.contains_key(&key));
                    }
                    _ => {
                        let found = rows.scan(&key[..4], Some(&key), limit, &Directly).unwrap();
                        let wanted = plain.keys().filter(|found| **found > key).take(limit).cloned();
                        let found = found.into_iter().map(|(key, _)| key.to_vec());
                        prop_assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
                    }
                }
            }
        }
    }
}
