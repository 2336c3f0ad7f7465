//! A store that panics in a call of one's choice, once: stands for a fault of the engine in the loop that made the call.
//! It can also leave seizures unanswered, fail to read one event back or to list the streams, and it counts how often jobs
//! are looked at and how many dead letters it hands out. And it can be another process that is quicker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, ReadFrom, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{Document, Documents, EventId, Result, Shard, Store, StoreError, Timestamp};
use laneway_embedded::MemoryStore;
use parking_lot::Mutex;
use tokio::sync::Barrier;

use crate::world::World;

/// A call that can be made to panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// The owner reads its events.
    Read(Shard),
    /// Somebody appends to a shard: producers, and the forwarding of emits.
    Append(Shard),
    /// A large result is put aside, while a run is settled.
    Stash,
    /// Retention looks at a shard.
    Trim,
    /// The schedules are listed.
    List,
}

pub(crate) struct Faulty {
    inner: Arc<MemoryStore>,
    armed: Mutex<Option<Call>>,
    /// Calls that were let through after a panic, of the kind that panicked.
    pub(crate) again: AtomicU64,
    last: Mutex<Option<Call>>,
    /// Seizures are not answered.
    pub(crate) silent: AtomicBool,
    /// Reads that failed so.
    pub(crate) unread: AtomicU64,
    /// Streams cannot be listed.
    pub(crate) unlisted: AtomicBool,
    /// Reads of this event by its id fail, after so many more that do not.
    pub(crate) unreadable: Mutex<Option<(EventId, u32)>>,
    /// Calls about jobs.
    pub(crate) looks: AtomicU64,
    /// Calls of trim wait until so many of them are under way.
    pub(crate) trims_together: Mutex<Option<Arc<Barrier>>>,
    /// Calls of trim that were let through.
    pub(crate) trims: AtomicU64,
    /// Calls of owners that read their shard.
    pub(crate) reads: AtomicU64,
    /// Calls of owners that commit.
    pub(crate) commits: AtomicU64,
    /// Dead letters it handed out.
    pub(crate) letters: AtomicU64,
    /// Other processes may reach the store too.
    pub(crate) shared: AtomicBool,
    /// What keeps its files.
    pub(crate) held: Mutex<Vec<laneway_core::store::Held>>,
    /// What another process defines just before the next definition.
    pub(crate) quicker: Mutex<Option<Define>>,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<MemoryStore>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            armed: Mutex::default(),
            again: AtomicU64::new(0),
            last: Mutex::default(),
            silent: AtomicBool::new(false),
            unread: AtomicU64::new(0),
            unlisted: AtomicBool::new(false),
            unreadable: Mutex::default(),
            looks: AtomicU64::new(0),
            trims_together: Mutex::default(),
            trims: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            letters: AtomicU64::new(0),
            shared: AtomicBool::new(false),
            held: Mutex::default(),
            quicker: Mutex::default(),
        })
    }

    /// An engine of another process over the store of a world, which owns nothing.
    pub(crate) fn elsewhere(world: &World) -> World {
        let store = Self::new(world.store.clone());
        store.shared.store(true, Ordering::Relaxed);
        World::through(store, world.store.clone(), world.env.clone())
    }

    /// The next call of this kind panics.
    pub(crate) fn arm(&self, call: Call) {
        *self.armed.lock() = Some(call);
    }

    /// Whether the panic has happened.
    pub(crate) fn has_panicked(&self) -> bool {
        self.last.lock().is_some()
    }

    fn pass(&self, call: Call) {
        if *self.last.lock() == Some(call) {
            self.again.fetch_add(1, Ordering::Relaxed);
        }
        let fires = {
            let mut armed = self.armed.lock();
            let fires = *armed == Some(call);
            if fires {
                *armed = None;
            }
            fires
        };
        if fires {
            *self.last.lock() = Some(call);
            panic!("a fault that was asked for in {call:?}");
        }
    }
}

#[async_trait]
impl Store for Faulty {
    fn clock_report(&self) -> Option<laneway_core::ClockReport> {
        self.inner.clock_report()
    }

    async fn held(&self) -> Result<Vec<laneway_core::store::Held>> {
        let mut held = self.inner.held().await?;
        held.extend(self.held.lock().iter().copied());
        Ok(held)
    }

    fn about(&self) -> About {
        let mut about = self.inner.about();
        about.capabilities.shared |= self.shared.load(Ordering::Relaxed);
        about
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        let quicker = self.quicker.lock().take();
        if let Some(quicker) = quicker {
            self.inner.define(quicker).await?;
        }
        self.inner.define(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.pass(Call::Append(append.shard));
        self.inner.append(append).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        self.inner.promote(promote).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        if read.processor.is_some() {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.pass(Call::Read(read.shard));
        }
        if let (ReadFrom::Ids(ids), Some((bad, left))) = (&read.from, &mut *self.unreadable.lock())
            && ids.contains(bad)
        {
            *left = left.checked_sub(1).ok_or_else(|| {
                self.unread.fetch_add(1, Ordering::Relaxed);
                StoreError::Down { reason: format!("event {bad} cannot be read") }
            })?;
        }
        self.inner.read(read).await
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        if self.silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        self.inner.seize(seize).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        self.inner.lanes(lanes).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.inner.commit(commit).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        self.inner.request(request).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.inner.jobs(jobs).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        self.pass(Call::Stash);
        self.inner.stash(stash).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        if self.unlisted.load(Ordering::Relaxed) && matches!(query, Query::Streams) {
            return Err(StoreError::Down { reason: "streams cannot be listed".to_owned() });
        }
        let rows = self.inner.query(query).await?;
        if let Rows::Dead(letters) = &rows {
            self.letters.fetch_add(letters.len() as u64, Ordering::Relaxed);
        }
        Ok(rows)
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        self.pass(Call::Trim);
        let together = self.trims_together.lock().clone();
        if let Some(together) = together {
            together.wait().await;
        }
        self.trims.fetch_add(1, Ordering::Relaxed);
        self.inner.trim(trim).await
    }
}

#[async_trait]
impl Documents for Faulty {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        self.inner.get(name).await
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        self.inner.put(name, expect, bytes).await
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        self.inner.delete(name, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        self.pass(Call::List);
        self.inner.list(prefix).await
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        self.inner.clock().await
    }
}
