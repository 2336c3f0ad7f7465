//! What a call has read from files before it takes the state's lock, and what it missed under it.
//!
//! Nothing reads a file while it holds the lock. A rule that needs something from one is answered with an error and the
//! need is noted; its caller lets go of the lock, reads the file ([`Fetched::fetch`]) and applies the rule again. Rules read
//! everything before their first change, so nothing is half done.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use laneway_core::{Event, EventId, JobMark, Result, Shard, StoreError, Timestamp};
use parking_lot::Mutex;

use super::archive::{Archive, Reach, from_files};
use crate::file::index::{IndexTable, Snapshot};
use crate::machine::StoredEnd;

/// For so long an answer to "the first event since" serves later questions of the same call.
const SINCE_MICROS: u64 = 60_000_000;

/// The first event since a time, as of when it was looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    pub(super) first: Option<EventId>,
    /// The last event by then: later ones were not looked at.
    pub(super) head: EventId,
}

/// What a search for the end of a job found, or as much of it as is wanted.
#[derive(Debug)]
pub(super) enum EndSearch<T> {
    There(T),
    /// It is in none of the sealed segments up to this one. They never change, so this stays true.
    AbsentThrough(u64),
}

impl<T> EndSearch<T> {
    fn of(archive: &Archive, shard: Shard, id: EventId, part: impl Fn(StoredEnd) -> T) -> Result<Self> {
        let sealed = archive.directory().newest_sealed();
        let end = from_files(archive.job_end(shard, id, 0, Reach::Files))?;
        Ok(end.map_or(Self::AbsentThrough(sealed), |end| Self::There(part(end))))
    }
}

/// Something that only a file can tell.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Event(Shard, EventId),
    JobEnd(Shard, EventId),
    JobEndLife(Shard, EventId),
    JobEnds { shard: Shard, after: EventId, limit: usize },
    Since { shard: Shard, time: Timestamp, trimmed: EventId, head: EventId },
    Value(Arc<Snapshot>, IndexTable, Vec<u8>),
    Page(Arc<Snapshot>, PageKey),
}

/// A page of a table of the index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    pub(super) table: IndexTable,
    pub(super) start: Bound<Vec<u8>>,
    pub(super) end: Option<Vec<u8>>,
    pub(super) len: usize,
    /// Whether the values are wanted too.
    pub(super) values: bool,
}

/// Keys and values, ascending.
pub(super) type Page = Vec<(Bytes, Bytes)>;

/// How a call reads the index.
pub(super) trait IndexReader {
    fn value(&self, index: &Arc<Snapshot>, table: IndexTable, key: &[u8]) -> Result<Option<Bytes>>;
    fn page(&self, index: &Arc<Snapshot>, key: PageKey) -> Result<Page>;
}

/// Reads the file at once: for a bounded number of small values.
pub(super) struct Directly;

impl IndexReader for Directly {
    fn value(&self, index: &Arc<Snapshot>, table: IndexTable, key: &[u8]) -> Result<Option<Bytes>> {
        index.value(table, key)
    }

    fn page(&self, index: &Arc<Snapshot>, key: PageKey) -> Result<Page> {
        key.read(index)
    }
}

impl PageKey {
    fn read(&self, index: &Snapshot) -> Result<Page> {
        let (start, end) = (self.start.as_ref().map(Vec::as_slice), self.end.as_deref());
        if self.values {
            return index.page(self.table, start, end, self.len);
        }
        let keys = index.keys(self.table, start, end, self.len)?;
        Ok(keys.into_iter().map(|key| (key, Bytes::new())).collect())
    }
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(super) events: HashMap<(Shard, EventId), Option<Event>>,
    pub(super) ends: HashMap<(Shard, EventId), EndSearch<StoredEnd>>,
    pub(super) end_lives: HashMap<(Shard, EventId), EndSearch<Timestamp>>,
    pub(super) end_pages: HashMap<(Shard, EventId, usize), Vec<StoredEnd>>,
    since: HashMap<Shard, (Timestamp, Since)>,
    /// Jobs of one shard, by event id.
    pub(super) jobs: Option<(Shard, Vec<(EventId, JobMark)>)>,
    /// The index that values and pages were read from.
    index: Option<Arc<Snapshot>>,
    values: HashMap<(IndexTable, Vec<u8>), Option<Bytes>>,
    pages: HashMap<PageKey, Page>,
    missed: Mutex<Vec<Wanted>>,
}

impl Fetched {
    /// With jobs that were looked up.
    pub(crate) fn of_jobs(shard: Shard, jobs: Vec<(EventId, JobMark)>) -> Self {
        Self { jobs: Some((shard, jobs)), ..Self::default() }
    }

    /// Notes that something must be read, and answers the error that ends the attempt. Nobody sees it.
    pub(super) fn miss(&self, wanted: Wanted) -> StoreError {
        self.missed.lock().push(wanted);
        StoreError::Down { reason: "it was not read from its file yet".to_owned() }
    }

    /// What was missed since the last time, if anything.
    pub(crate) fn take_missed(&mut self) -> Vec<Wanted> {
        std::mem::take(self.missed.get_mut())
    }

    /// The first event since a time. Retention asks for a time that goes on between two attempts: what was found for a
    /// moment before keeps a little more.
    pub(super) fn since(&self, shard: Shard, time: Timestamp) -> Option<Since> {
        let (asked, since) = self.since.get(&shard)?;
        (*asked <= time && time.0 - asked.0 <= SINCE_MICROS).then_some(*since)
    }

    fn is_of(&self, index: &Arc<Snapshot>) -> bool {
        self.index.as_ref().is_some_and(|known| Arc::ptr_eq(known, index))
    }

    /// Reads what was missed. Slow: neither under a lock nor on a thread of the runtime.
    pub(crate) fn fetch(&mut self, archive: &Archive, wanted: Vec<Wanted>) -> Result<()> {
        wanted.into_iter().try_for_each(|wanted| self.fetch_one(archive, wanted))
    }

    fn fetch_one(&mut self, archive: &Archive, wanted: Wanted) -> Result<()> {
        match wanted {
            Wanted::Event(shard, id) => {
                let event = from_files(archive.event(shard, id, Reach::Files))?;
                self.events.insert((shard, id), event);
            }
            Wanted::JobEnd(shard, id) => {
                self.ends.insert((shard, id), EndSearch::of(archive, shard, id, |end| end)?);
            }
            Wanted::JobEndLife(shard, id) => {
                self.end_lives.insert((shard, id), EndSearch::of(archive, shard, id, |end| end.keep_until)?);
            }
            Wanted::JobEnds { shard, after, limit } => {
                let ends = from_files(archive.job_ends(shard, after, limit, Reach::Files))?;
                self.end_pages.insert((shard, after, limit), ends);
            }
            Wanted::Since { shard, time, trimmed, head } => {
                let first = from_files(archive.first_since(shard, time, trimmed, Reach::Files))?;
                self.since.insert(shard, (time, Since { first, head }));
            }
            Wanted::Value(index, table, key) => {
                let value = index.value(table, &key)?;
                self.use_index(index);
                self.values.insert((table, key), value);
            }
            Wanted::Page(index, key) => {
                let page = key.read(&index)?;
                self.use_index(index);
                self.pages.insert(key, page);
            }
        }
        Ok(())
    }

    /// What was read from an older index says nothing of this one.
    fn use_index(&mut self, index: Arc<Snapshot>) {
        if !self.is_of(&index) {
            self.values.clear();
            self.pages.clear();
            self.index = Some(index);
        }
    }
}

impl IndexReader for Fetched {
    fn value(&self, index: &Arc<Snapshot>, table: IndexTable, key: &[u8]) -> Result<Option<Bytes>> {
        let known = if self.is_of(index) { self.values.get(&(table, key.to_vec())) } else { None };
        match known {
            Some(value) => Ok(value.clone()),
            None => Err(self.miss(Wanted::Value(Arc::clone(index), table, key.to_vec()))),
        }
    }

    fn page(&self, index: &Arc<Snapshot>, key: PageKey) -> Result<Page> {
        let known = if self.is_of(index) { self.pages.get(&key) } else { None };
        match known {
            Some(page) => Ok(page.clone()),
            None => Err(self.miss(Wanted::Page(Arc::clone(index), key))),
        }
    }
}
