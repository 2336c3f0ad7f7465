//! The memory store: a lock around the state, the rules under it, wake-ups after it.
//!
//! The lock is a plain one and never held over an await: every transition is one short synchronous step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::store::{
    About, Accepted, Append, Appended, Commit, Committed, Define, Defined, Import, JobView, Jobs, LaneView,
    Lanes, Page, Promote, Promoted, Query, Read, Request, Resume, Rows, Seize, Stash, Trim, Trimmed,
};
use laneway_core::{
    CLOCK_SETTLE, Capabilities, Clock, ClockReport, Durability, Incarnation, JobId, Result, Store, Topic,
};
use parking_lot::Mutex;

use super::state::MemoryState;
use crate::clock::{ClockMark, StoreClock};
use crate::machine::promote::Bounds;
use crate::machine::{self, Now};
use crate::wakeups::LocalWakeups;

/// What one promotion moves: all that it is asked for.
const UNBOUNDED: Bounds = Bounds { drafts: usize::MAX - 1, bytes: usize::MAX };

/// A store that lives in memory and ends with the process.
///
/// ```
/// use std::sync::Arc;
/// use laneway_core::store::Define;
/// use laneway_core::{Store, StreamSettings, SystemClock};
/// use laneway_embedded::MemoryStore;
///
/// # futures::executor::block_on(async {
/// let store = MemoryStore::new(Arc::new(SystemClock));
/// let settings = StreamSettings::default();
/// let define = Define::Stream { name: "orders".to_owned(), expect: None, settings };
/// let defined = store.define(define).await.unwrap();
/// assert_eq!(defined.stream.unwrap().name, "orders");
/// # });
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    clock: StoreClock,
    incarnation: Incarnation,
    pub(super) state: Mutex<MemoryState>,
    pub(super) wakeups: LocalWakeups,
}

/// Tells stores apart that were made in the same microsecond.
static STORES: AtomicU64 = AtomicU64::new(0);

impl MemoryStore {
    /// An empty store. Its incarnation is unique in this process, and nothing outlives the process.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let incarnation = Incarnation(u128::from(clock.calendar().0) << 64 | u128::from(number));
        Self::with_incarnation(clock, incarnation)
    }

    /// An empty store of this incarnation.
    pub fn with_incarnation(clock: Arc<dyn Clock>, incarnation: Incarnation) -> Self {
        Self::with_state(
            StoreClock::resume(clock, ClockMark::default(), CLOCK_SETTLE),
            MemoryState::new(incarnation),
        )
    }

    /// An empty store that believes a jump of the wall clock after this time. Others do after 10 minutes.
    pub fn with_clock_settle(clock: Arc<dyn Clock>, settle: Duration) -> Self {
        let incarnation = Self::new(Arc::clone(&clock)).incarnation;
        let clock = StoreClock::resume(clock, ClockMark::default(), settle);
        Self::with_state(clock, MemoryState::new(incarnation))
    }

    /// A copy of this store as it is now, as after a failover to a replica or from a restored backup: it has
    /// another incarnation, so its shards must be adopted before they are written.
    pub fn restored(&self, incarnation: Incarnation) -> Self {
        let mut state = self.state.lock().clone();
        state.incarnation = incarnation;
        Self::with_state(self.clock.again(), state)
    }

    fn with_state(clock: StoreClock, state: MemoryState) -> Self {
        let incarnation = state.incarnation;
        Self { clock, incarnation, state: Mutex::new(state), wakeups: LocalWakeups::default() }
    }

    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    fn announce_jobs(&self, jobs: &[JobId]) {
        let topics: Vec<Topic> = jobs.iter().map(|job| Topic::Job(*job)).collect();
        self.wakeups.announce_all(&topics);
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn clock_report(&self) -> Option<ClockReport> {
        Some(self.clock.report())
    }

    fn about(&self) -> About {
        let capabilities = Capabilities { durability: Durability::Memory, persistent: false, shared: false };
        About { capabilities, incarnation: self.incarnation }
    }

    async fn define(&self, define: Define) -> Result<Defined> {
        if matches!(define, Define::Import(Import::Stream(_))) {
            self.clock.unsettle();
        }
        let now = self.now();
        machine::define::define(&mut *self.state.lock(), now, define)
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let (shard, now) = (append.shard, self.now());
        let appended = machine::append::append(&mut *self.state.lock(), now, append, Durability::Memory)?;
        self.wakeups.announce_all(&[Topic::Shard(shard)]);
        Ok(appended)
    }

    async fn promote(&self, promote: Promote) -> Result<Promoted> {
        let now = self.now();
        let (promoted, ended) = machine::promote::promote(&mut *self.state.lock(), now, promote, UNBOUNDED)?;
        if promoted.moved > 0 {
            self.wakeups.announce_all(&[Topic::Shard(promote.shard)]);
        }
        self.announce_jobs(&ended);
        Ok(promoted)
    }

    async fn read(&self, read: Read) -> Result<Page> {
        machine::read::read(&*self.state.lock(), self.now(), &read)
    }

    async fn seize(&self, seize: Seize) -> Result<Resume> {
        machine::seize::seize(&mut *self.state.lock(), self.now(), seize)
    }

    async fn lanes(&self, lanes: Lanes) -> Result<Vec<LaneView>> {
        machine::lanes::lanes(&*self.state.lock(), self.now(), &lanes)
    }

    async fn commit(&self, commit: Commit) -> Result<Committed> {
        let (committed, ended) = machine::commit::commit(&mut *self.state.lock(), self.now(), commit)?;
        self.announce_jobs(&ended);
        Ok(committed)
    }

    async fn request(&self, request: Request) -> Result<Accepted> {
        let seat = request.seat;
        let accepted = machine::request::request(&mut *self.state.lock(), self.now(), request)?;
        self.wakeups.announce_all(&[Topic::Seat(seat)]);
        Ok(accepted)
    }

    async fn jobs(&self, jobs: Jobs) -> Result<Vec<JobView>> {
        let (views, ended) = machine::jobs::jobs(&mut *self.state.lock(), self.now(), &jobs)?;
        self.announce_jobs(&ended);
        Ok(views)
    }

    async fn stash(&self, stash: Stash) -> Result<()> {
        machine::stash::stash(&mut *self.state.lock(), self.now(), &stash)
    }

    async fn query(&self, query: Query) -> Result<Rows> {
        machine::query::query(&*self.state.lock(), self.now(), &query)
    }

    async fn trim(&self, trim: Trim) -> Result<Trimmed> {
        machine::trim::trim(&mut *self.state.lock(), self.now(), trim)
    }
}
