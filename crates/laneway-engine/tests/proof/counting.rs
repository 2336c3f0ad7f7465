//! A store that counts what it hands out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{Result, Store};
use laneway_embedded::MemoryStore;

/// What a store handed out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Events, in pages or by their ids.
    pub(crate) events: u64,
    /// Lane records.
    pub(crate) lanes: u64,
}

impl Counted {
    pub(crate) fn since(self, before: Self) -> Self {
        Self { events: self.events - before.events, lanes: self.lanes - before.lanes }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} events and {} lane records read", self.events, self.lanes)
    }
}

pub(crate) struct Counting {
    inner: Arc<MemoryStore>,
    events: AtomicU64,
    lanes: AtomicU64,
}

impl Counting {
    pub(crate) fn new(inner: Arc<MemoryStore>) -> Arc<Self> {
        Arc::new(Self { inner, events: AtomicU64::new(0), lanes: AtomicU64::new(0) })
    }

    pub(crate) fn counted(&self) -> Counted {
        Counted { events: self.events.load(Ordering::Relaxed), lanes: self.lanes.load(Ordering::Relaxed) }
    }
}

#[async_trait]
impl Store for Counting {
    fn clock_report(&self) -> Option<laneway_core::ClockReport> {
        self.inner.clock_report()
    }

    async fn held(&self) -> Result<Vec<laneway_core::store::Held>> {
        self.inner.held().await
    }

    fn about(&self) -> About {
        self.inner.about()
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        self.inner.define(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.inner.append(append).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        self.inner.promote(promote).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        let page = self.inner.read(read).await?;
        self.events.fetch_add(page.entries.len() as u64, Ordering::Relaxed);
        Ok(page)
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        self.inner.seize(seize).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        let views = self.inner.lanes(lanes).await?;
        self.lanes.fetch_add(views.len() as u64, Ordering::Relaxed);
        Ok(views)
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.inner.commit(commit).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        self.inner.request(request).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        self.inner.jobs(jobs).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        self.inner.stash(stash).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        self.inner.query(query).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        self.inner.trim(trim).await
    }
}
