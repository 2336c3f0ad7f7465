//! The store of a world as its nodes reach it: now and then a replica takes its place, which had not followed to the end.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{Document, Documents, Incarnation, Result, Store, Timestamp, Wakeups};
use laneway_engine::Stores;
use parking_lot::Mutex;

/// A store that can be copied as it is now.
pub trait Replicated: Send + Sync {
    /// The store itself.
    fn stores(&self) -> Stores;
    /// What it holds now, as another life of the store.
    fn copy(&self, incarnation: Incarnation) -> Box<dyn Replicated>;
}

/// Whichever store is the primary now.
pub(crate) struct Primary {
    now: Mutex<Place>,
}

struct Place {
    held: Box<dyn Replicated>,
    stores: Stores,
}

impl Place {
    fn of(held: Box<dyn Replicated>) -> Self {
        let stores = held.stores();
        Self { held, stores }
    }
}

impl Primary {
    pub(crate) fn new(held: Box<dyn Replicated>) -> Arc<Self> {
        Arc::new(Self { now: Mutex::new(Place::of(held)) })
    }

    /// A replica that follows no longer.
    pub(crate) fn replica(&self, incarnation: Incarnation) -> Box<dyn Replicated> {
        self.now.lock().held.copy(incarnation)
    }

    /// A replica takes over: whatever it did not follow is lost.
    pub(crate) fn fail_over(&self, replica: Box<dyn Replicated>) {
        *self.now.lock() = Place::of(replica);
    }

    pub(crate) fn wakeups(&self) -> Arc<dyn Wakeups> {
        Arc::clone(&self.now.lock().stores.wakeups)
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.now.lock().stores.store)
    }

    fn documents(&self) -> Arc<dyn Documents> {
        Arc::clone(&self.now.lock().stores.documents)
    }
}

#[async_trait]
impl Store for Primary {
    fn clock_report(&self) -> Option<laneway_core::ClockReport> {
        self.store().clock_report()
    }

    async fn held(&self) -> Result<Vec<laneway_core::store::Held>> {
        self.store().held().await
    }

    fn about(&self) -> About {
        self.store().about()
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        self.store().define(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.store().append(append).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        self.store().promote(promote).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        self.store().read(read).await
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        self.store().seize(seize).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        self.store().lanes(lanes).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.store().commit(commit).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        self.store().request(request).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        self.store().jobs(jobs).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        self.store().stash(stash).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        self.store().query(query).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        self.store().trim(trim).await
    }
}

#[async_trait]
impl Documents for Primary {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        self.documents().get(name).await
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        self.documents().put(name, expect, bytes).await
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        self.documents().delete(name, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        self.documents().list(prefix).await
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        self.documents().clock().await
    }
}
