//! A store that suspends its caller before and after every call.
//!
//! A store in memory answers at once, so a future over it has hardly any await point. Over this store every call has
//! two, and a test can drop the future at each of them with [`polled`].

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{Document, Documents, Result, Store, Timestamp};

/// A store and its documents behind an await point on either side of every call.
pub struct Yielding {
    store: Arc<dyn Store>,
    documents: Arc<dyn Documents>,
}

impl Yielding {
    /// The same store, with more await points.
    pub fn new(store: Arc<dyn Store>, documents: Arc<dyn Documents>) -> Arc<Self> {
        Arc::new(Self { store, documents })
    }
}

/// Polls a future at most `polls` times and drops it then. Returns its output if it was ready by then.
pub async fn polled<A>(polls: usize, future: impl Future<Output = A>) -> Option<A> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn between<A>(call: impl Future<Output = A>) -> A {
    tokio::task::yield_now().await;
    let answer = call.await;
    tokio::task::yield_now().await;
    answer
}

#[async_trait]
impl Store for Yielding {
    fn about(&self) -> About {
        self.store.about()
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        between(self.store.define(define)).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        // Parts of one call arrive one after the other.
        for _ in 0..append.shard.partition.0 {
            tokio::task::yield_now().await;
        }
        between(self.store.append(append)).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        between(self.store.promote(promote)).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        between(self.store.read(read)).await
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        between(self.store.seize(seize)).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        between(self.store.lanes(lanes)).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        between(self.store.commit(commit)).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        between(self.store.request(request)).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        between(self.store.jobs(jobs)).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        between(self.store.stash(stash)).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        between(self.store.query(query)).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        between(self.store.trim(trim)).await
    }
}

#[async_trait]
impl Documents for Yielding {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        between(self.documents.get(name)).await
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        between(self.documents.put(name, expect, bytes)).await
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        between(self.documents.delete(name, expect)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        between(self.documents.list(prefix)).await
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        between(self.documents.clock()).await
    }
}
