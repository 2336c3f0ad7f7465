//! Lost requests and lost answers: both look the same to the caller (`Unknown`), and one of them happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, JobView, Jobs, LaneView, Lanes,
    Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{Capabilities, Result, Store, StoreError};
use parking_lot::Mutex;

/// A store behind a bad network. What is lost follows from the seed and the order of the calls.
pub struct LostAnswers {
    inner: Arc<dyn Store>,
    random: Mutex<fastrand::Rng>,
    percent: u8,
    lost_requests: AtomicU64,
    lost_answers: AtomicU64,
}

/// What happens to one call.
enum Fate {
    Answered,
    RequestLost,
    AnswerLost,
}

impl LostAnswers {
    /// Loses so many percent of the calls that write, half of them before and half after they happened.
    pub fn new(inner: Arc<dyn Store>, seed: u64, percent: u8) -> Self {
        let random = Mutex::new(fastrand::Rng::with_seed(seed));
        Self { inner, random, percent, lost_requests: AtomicU64::new(0), lost_answers: AtomicU64::new(0) }
    }

    /// How many calls were lost before they happened, and how many after.
    pub fn lost(&self) -> (u64, u64) {
        (self.lost_requests.load(Ordering::Relaxed), self.lost_answers.load(Ordering::Relaxed))
    }

    fn fate(&self) -> Fate {
        let mut random = self.random.lock();
        if random.u8(0..100) >= self.percent {
            Fate::Answered
        } else if random.bool() {
            Fate::RequestLost
        } else {
            Fate::AnswerLost
        }
    }

    async fn call<T>(&self, action: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
        let unknown = || Err(StoreError::Unknown { action, source: "the connection was cut".into() });
        match self.fate() {
            Fate::Answered => call.await,
            Fate::RequestLost => {
                self.lost_requests.fetch_add(1, Ordering::Relaxed);
                unknown()
            }
            Fate::AnswerLost => {
                self.lost_answers.fetch_add(1, Ordering::Relaxed);
                // Also a refusal is lost: the caller learns nothing.
                let _answer = call.await;
                unknown()
            }
        }
    }
}

#[async_trait]
impl Store for LostAnswers {
    fn clock_report(&self) -> Option<laneway_core::ClockReport> {
        self.inner.clock_report()
    }

    async fn held(&self) -> Result<Vec<laneway_core::store::Held>> {
        self.inner.held().await
    }

    fn about(&self) -> About {
        let about = self.inner.about();
        // Answers get lost here, so callers must be able to repeat.
        About { capabilities: Capabilities { shared: true, ..about.capabilities }, ..about }
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        self.inner.define(define).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.call("append", self.inner.append(append)).await
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        self.call("promote", self.inner.promote(promote)).await
    }

    async fn read(&self, read: Read) -> Result<Page> {
        self.inner.read(read).await
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        self.call("seize", self.inner.seize(seize)).await
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        self.inner.lanes(lanes).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        self.call("commit", self.inner.commit(commit)).await
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        self.call("request", self.inner.request(request)).await
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        self.inner.jobs(jobs).await
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        self.call("stash", self.inner.stash(stash)).await
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        self.inner.query(query).await
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        self.call("trim", self.inner.trim(trim)).await
    }
}
