//! A store whose reads are repeated until they are answered. Whoever writes must know that an answer was lost, so writes are not.

use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{Result, Store, StoreError};

/// A store for those who only want to know what is there, however bad the road is.
pub struct Patient(pub Arc<dyn Store>);

async fn answered<T, F: Future<Output = Result<T>>>(call: impl Fn() -> F) -> Result<T> {
    loop {
        match call().await {
            Err(StoreError::Unknown { .. }) => tokio::task::yield_now().await,
            answer => return answer,
        }
    }
}

#[async_trait]
impl Store for Patient {
    fn clock_report(&self) -> Option<laneway_core::ClockReport> {
        self.0.clock_report()
    }

    async fn held(&self) -> Result<Vec<laneway_core::store::Held>> {
        self.0.held().await
    }

    fn about(&self) -> About {
        self.0.about()
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        self.0.define(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.0.append(append).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        self.0.promote(promote).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        answered(|| self.0.read(read.clone())).await
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        self.0.seize(seize).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        answered(|| self.0.lanes(lanes.clone())).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.0.commit(commit).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        self.0.request(request).await
    }

    /// Takes and forgets may be repeated too: whoever repeats one is answered the same.
    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        answered(|| self.0.jobs(jobs.clone())).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        self.0.stash(stash).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        answered(|| self.0.query(query.clone())).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        self.0.trim(trim).await
    }
}
