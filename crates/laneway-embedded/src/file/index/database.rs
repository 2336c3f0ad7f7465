//! The redb file: open, read at the last checkpoint, write the next one.

use std::ops::{Bound, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{Result, StoreError};
use redb::{
    Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTableMetadata, Table, TableDefinition,
};

use super::packed::PackedChanges;
use super::storage::{Patience, Storage};
use super::values::{self, Meta};
use crate::file::disk::Disk;

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

const META: Definition = TableDefinition::new("meta");
const RESIDENT: Definition = TableDefinition::new("resident");
const ROWS: Definition = TableDefinition::new("rows");
const TAILS: Definition = TableDefinition::new("tails");
const META_KEY: &[u8] = b"checkpoint";
const FILE: &str = "index.redb";

/// Everything a checkpoint changes. `None` removes.
#[derive(Debug, Default)]
pub(crate) struct CheckpointWrite {
    pub(crate) resident: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) tails: PackedChanges,
    pub(crate) rows: Vec<(Vec<u8>, Option<Bytes>)>,
    /// Ranges of rows to drop before the rows above are written.
    pub(crate) forgotten_rows: Vec<Vec<u8>>,
    /// Ranges of tails to drop before the tails above are written.
    pub(crate) forgotten_tails: Vec<Vec<u8>>,
}

/// The open index file.
#[derive(Debug)]
pub(crate) struct Index {
    /// There until it is dropped.
    database: Option<Database>,
    path: PathBuf,
}

impl Drop for Index {
    /// redb tidies up when it closes, and panics when the file turns out to be damaged just then.
    fn drop(&mut self) {
        let database = self.database.take();
        let close = || {
            drop(database);
            Ok(())
        };
        if let Err(error) = guarded(&self.path, "close", close) {
            tracing::warn!(%error, "index was not closed in order; the next start checks it");
        }
    }
}

/// The index as of one checkpoint. Keeps its pages alive, so it must not live much longer than a checkpoint.
pub(crate) struct Snapshot {
    rows: ReadOnlyTable<&'static [u8], &'static [u8]>,
    tails: ReadOnlyTable<&'static [u8], &'static [u8]>,
    resident: ReadOnlyTable<&'static [u8], &'static [u8]>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Snapshot")
    }
}

/// redb answers damaged pages with errors or panics; both mean that the file cannot be trusted.
fn guarded<T>(
    path: &Path,
    action: &str,
    work: impl FnOnce() -> std::result::Result<T, redb::Error>,
) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(redb::Error::Io(error))) => {
            Err(StoreError::Down { reason: format!("could not {action} {}: {error}", path.display()) })
        }
        Ok(Err(error)) => {
            Err(StoreError::Corrupt { what: format!("could not {action} {}: {error}", path.display()) })
        }
        Err(_) => Err(StoreError::Corrupt {
            what: format!(
                "could not {action} {}: its pages contradict each other; restore a backup",
                path.display()
            ),
        }),
    }
}

impl Index {
    /// Opens or creates the index of a folder. A new one has no checkpoint.
    pub(crate) fn open(
        disk: &dyn Disk,
        dir: &Path,
        cache_bytes: usize,
        patience: Arc<Patience>,
    ) -> Result<Self> {
        let path = dir.join(FILE);
        let io = |error: std::io::Error| StoreError::Down {
            reason: format!("could not open {}: {error}", path.display()),
        };
        let file = if disk.exists(&path).map_err(io)? {
            disk.open(&path).map_err(io)?
        } else {
            let file = disk.create(&path).map_err(io)?;
            disk.sync_dir(dir).map_err(io)?;
            file
        };
        let database = guarded(&path, "open", || {
            let mut builder = Database::builder();
            builder.set_cache_size(cache_bytes);
            Ok(builder.create_with_backend(Storage { file, patience })?)
        })?;
        Ok(Self { database: Some(database), path })
    }

    fn database(&self) -> &Database {
        self.database.as_ref().expect("it is open until it is dropped")
    }

    /// The last checkpoint; `None` in a new file.
    pub(crate) fn meta(&self) -> Result<Option<Meta>> {
        let stored = guarded(&self.path, "read", || {
            let transaction = self.database().begin_read()?;
            let table = match transaction.open_table(META) {
                Ok(table) => table,
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            Ok(table.get(META_KEY)?.map(|value| value.value().to_vec()))
        })?;
        let Some(stored) = stored else { return Ok(None) };
        Meta::decode(values::open("checkpoint", META_KEY, &stored)?).map(Some)
    }

    /// The index as it is now. There has been a checkpoint.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>> {
        guarded(&self.path, "read", || {
            let transaction = self.database().begin_read()?;
            Ok(Arc::new(Snapshot {
                rows: transaction.open_table(ROWS)?,
                tails: transaction.open_table(TAILS)?,
                resident: transaction.open_table(RESIDENT)?,
            }))
        })
    }

    /// Writes a checkpoint: all of it is durable on return, or nothing.
    ///
    /// Quick repair costs a second sync here and saves the walk over the whole file after a crash.
    pub(crate) fn write(&self, meta: &Meta, changes: &CheckpointWrite) -> Result<()> {
        guarded(&self.path, "write a checkpoint to", || {
            let mut transaction = self.database().begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            transaction.set_quick_repair(true);
            let mut buffer = Vec::new();
            {
                let mut rows = transaction.open_table(ROWS)?;
                changes.forgotten_rows.iter().try_for_each(|prefix| drop_prefix(&mut rows, prefix))?;
                for (key, value) in &changes.rows {
                    write_one(&mut rows, key, value.as_deref(), &mut buffer)?;
                }
                let mut tails = transaction.open_table(TAILS)?;
                changes.forgotten_tails.iter().try_for_each(|prefix| drop_prefix(&mut tails, prefix))?;
                for (key, value) in changes.tails.iter() {
                    write_one(&mut tails, key, value, &mut buffer)?;
                }
                let mut resident = transaction.open_table(RESIDENT)?;
                for (key, value) in &changes.resident {
                    write_one(&mut resident, key, value.as_deref(), &mut buffer)?;
                }
                write_one(&mut transaction.open_table(META)?, META_KEY, Some(&meta.encode()), &mut buffer)?;
            }
            Ok(transaction.commit()?)
        })
    }
}

fn write_one(
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    key: &[u8],
    value: Option<&[u8]>,
    buffer: &mut Vec<u8>,
) -> std::result::Result<(), redb::Error> {
    match value {
        Some(value) => {
            values::seal(key, value, buffer);
            table.insert(key, buffer.as_slice())?;
        }
        None => {
            table.remove(key)?;
        }
    }
    Ok(())
}

fn drop_prefix(
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    prefix: &[u8],
) -> std::result::Result<(), redb::Error> {
    let end = prefix_end(prefix);
    let range = (Bound::Included(prefix), end.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
    Ok(table.retain_in::<&[u8], _>(range, |_, _| false)?)
}

/// The first key after all keys that begin with the prefix; `None` if there is none.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// How many values a copy writes at a time.
const COPY_VALUES: usize = 16_384;

/// The tables of the index that are read while work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum IndexTable {
    Rows,
    Tails,
}

impl Snapshot {
    /// One value.
    pub(crate) fn value(&self, table: IndexTable, key: &[u8]) -> Result<Option<Bytes>> {
        let (table, what) = self.table(table);
        get(table, what, key)
    }

    /// How many tails there are.
    pub(crate) fn tail_count(&self) -> Result<u64> {
        guarded(Path::new(FILE), "read", || Ok(self.tails.len()?))
    }

    /// Values from `start` to before `end`, ascending.
    pub(crate) fn page(
        &self,
        table: IndexTable,
        start: Bound<&[u8]>,
        end: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let (table, what) = self.table(table);
        range(table, what, start, end, limit)
    }

    /// Keys from `start` to before `end`, ascending, without a look at their values.
    pub(crate) fn keys(
        &self,
        table: IndexTable,
        start: Bound<&[u8]>,
        end: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Bytes>> {
        let (table, _) = self.table(table);
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        guarded(Path::new(FILE), "read", || {
            let entries = table.range::<&[u8]>((start, end))?.take(limit);
            entries.map(|entry| Ok(Bytes::copy_from_slice(entry?.0.value()))).collect()
        })
    }

    fn table(&self, table: IndexTable) -> (&ReadOnlyTable<&'static [u8], &'static [u8]>, &'static str) {
        match table {
            IndexTable::Rows => (&self.rows, "row"),
            IndexTable::Tails => (&self.tails, "tail"),
        }
    }

    /// All streams, shards and seats.
    pub(crate) fn resident(&self) -> Result<Vec<(Bytes, Bytes)>> {
        range(&self.resident, "resident record", Bound::Unbounded, None, usize::MAX)
    }

    /// How many values there are.
    pub(crate) fn value_count(&self) -> Result<u64> {
        guarded(Path::new(FILE), "read", || Ok(self.rows.len()? + self.tails.len()? + self.resident.len()?))
    }

    /// Writes everything into another index, with this checkpoint. Others go on reading and writing meanwhile. `check` is
    /// asked before each page; its error ends the copy.
    pub(crate) fn copy_into(&self, index: &Index, meta: &Meta, check: &dyn Fn() -> Result<()>) -> Result<()> {
        let resident = self.resident()?.into_iter().map(|(key, value)| (key.to_vec(), Some(value.to_vec())));
        index.write(meta, &CheckpointWrite { resident: resident.collect(), ..CheckpointWrite::default() })?;
        for table in [IndexTable::Rows, IndexTable::Tails] {
            let mut start = Bound::Unbounded;
            loop {
                check()?;
                let page = self.page(table, start.as_ref().map(|key: &Bytes| &key[..]), None, COPY_VALUES)?;
                let Some((last, _)) = page.last() else { break };
                start = Bound::Excluded(last.clone());
                let mut write = CheckpointWrite::default();
                match table {
                    IndexTable::Rows => {
                        write.rows = page.into_iter().map(|(key, row)| (key.to_vec(), Some(row))).collect();
                    }
                    IndexTable::Tails => {
                        for (key, tail) in &page {
                            write.tails.put([key, &[]], |out| out.extend_from_slice(tail));
                        }
                    }
                }
                index.write(meta, &write)?;
            }
        }
        Ok(())
    }

    /// Reads everything once, so that a damaged file is found now and not in the middle of work.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_until(|| false)
    }

    /// As [`Snapshot::check`], unless told to stop before the end.
    pub(crate) fn check_until(&self, stop: impl Fn() -> bool) -> Result<()> {
        let tables = [(&self.rows, "row"), (&self.tails, "tail"), (&self.resident, "resident record")];
        tables.into_iter().try_for_each(|(table, what)| check_table(table, what, &stop))
    }
}

fn check_table(
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    what: &'static str,
    stop: &impl Fn() -> bool,
) -> Result<()> {
    let (mut found, mut last) = (0, None::<Bytes>);
    loop {
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let page = range(table, what, from, None, 4096)?;
        found += page.len() as u64;
        match page.into_iter().next_back() {
            Some((key, _)) => last = Some(key),
            None => break,
        }
        if stop() {
            return Ok(());
        }
    }
    let expected = guarded(Path::new(FILE), "read", || Ok(table.len()?))?;
    if found != expected {
        let what = format!("index.redb: {expected} {what}s are counted but {found} can be read");
        return Err(StoreError::Corrupt { what });
    }
    Ok(())
}

fn get(
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    what: &'static str,
    key: &[u8],
) -> Result<Option<Bytes>> {
    let found = guarded(Path::new(FILE), "read", || Ok(table.get(key)?))?;
    found.map(|value| values::open(what, key, value.value()).map(Bytes::copy_from_slice)).transpose()
}

fn range(
    table: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    what: &'static str,
    start: Bound<&[u8]>,
    end: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<(Bytes, Bytes)>> {
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let entries = guarded(Path::new(FILE), "read", || {
        let mut entries = Vec::new();
        // In a damaged tree a walk may come back to where it was, and whoever walks page by page must notice too.
        let mut last: Option<Vec<u8>> =
            if let Bound::Excluded(start) = start { Some(start.to_vec()) } else { None };
        for entry in table.range::<&[u8]>((start, end))?.take(limit) {
            let (key, value) = entry?;
            let inside = RangeBounds::<[u8]>::contains::<[u8]>(&(start, end), key.value());
            if !inside || last.as_deref().is_some_and(|last| last >= key.value()) {
                return Err(redb::Error::Corrupted("keys are not in order".to_owned()));
            }
            last = Some(key.value().to_vec());
            entries.push((Bytes::copy_from_slice(key.value()), value.value().to_vec()));
        }
        Ok(entries)
    })?;
    let checked = entries.into_iter().map(|(key, stored)| {
        let value = Bytes::copy_from_slice(values::open(what, &key, &stored)?);
        Ok((key, value))
    });
    checked.collect()
}
