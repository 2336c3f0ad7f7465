//! The engine's one seam to time, chance and tasks.
//!
//! Everything else takes an [`Env`]; the simulator hands in a seeded one on paused time.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use laneway_core::{Clock, CommitId, Nonce, Steady, Store, StoreError, SystemClock, Timestamp, TokenId};
use laneway_lanes::table::Tick;
use parking_lot::Mutex;

use super::finish::Finishing;
use super::store_time::{StoreTime, WatchedTime};

/// Longer than any life of a process, and within what timers can take.
const SLEEP_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Where the engine learns the time, gets chance from, and starts tasks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Env {
    clock: Arc<dyn Clock>,
    chance: Arc<Mutex<fastrand::Rng>>,
    /// Where its tasks are counted, if they can be ended all at once.
    mortal: Option<Mortal>,
}

/// The tasks of an engine that can die as a process does: all of them at once, in the middle of whatever they do.
///
/// For simulations. A task that was ended is never polled again; what it holds is dropped soon after.
#[derive(Debug, Clone, Default)]
pub struct Mortal(Arc<Mutex<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    dead: bool,
    /// None of them goes on for now.
    frozen: bool,
    /// Those that would have gone on since.
    waiting: Vec<Waker>,
    living: Vec<tokio::task::AbortHandle>,
    /// Those that have ended by themselves are looked for when there are so many.
    sweep_at: usize,
}

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    pub(crate) steady: Steady,
    pub(crate) calendar: Timestamp,
}

impl Now {
    pub(crate) fn tick(self) -> Tick {
        Tick::from_micros(self.steady.0)
    }
}

impl Env {
    /// The clocks and the chance of the machine.
    #[expect(clippy::disallowed_methods, reason = "the engine's seam to chance")]
    pub fn system() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            chance: Arc::new(Mutex::new(fastrand::Rng::new())),
            mortal: None,
        }
    }

    /// A clock of the caller's, and chance that can be repeated.
    pub fn seeded(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self { clock, chance: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))), mortal: None }
    }

    /// The same in steady time as a store counts it that others use too.
    pub async fn in_time_with(self, store: &dyn Store) -> Result<Self, StoreError> {
        let clock = Arc::new(StoreTime::of(store, self.clock).await?);
        Ok(Self { clock, ..self })
    }

    /// The same by the clocks of a store, if it watches its own.
    pub(crate) fn by_clock_of(self, store: &Arc<dyn Store>) -> Self {
        match WatchedTime::of(store, &self.clock) {
            Some(clock) => Self { clock: Arc::new(clock), ..self },
            None => self,
        }
    }

    /// As [`seeded`](Self::seeded), and all its tasks can be ended at once.
    pub fn mortal(clock: Arc<dyn Clock>, seed: u64) -> (Self, Mortal) {
        let mortal = Mortal::default();
        (Self { mortal: Some(mortal.clone()), ..Self::seeded(clock, seed) }, mortal)
    }

    /// The clock, to share it with a store.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn now(&self) -> Now {
        Now { steady: self.clock.steady(), calendar: self.clock.calendar() }
    }

    /// The steady clock alone.
    pub(crate) fn steady(&self) -> Steady {
        self.clock.steady()
    }

    pub(crate) fn chance(&self) -> f64 {
        self.chance.lock().f64()
    }

    fn bits(&self) -> u128 {
        self.chance.lock().u128(..)
    }

    pub(crate) fn nonce(&self) -> Nonce {
        Nonce(self.bits())
    }

    pub(crate) fn commit_id(&self) -> CommitId {
        CommitId(self.bits())
    }

    /// A name for a request, so that it can be repeated.
    pub fn token(&self) -> TokenId {
        TokenId(self.bits())
    }

    #[expect(clippy::disallowed_methods, reason = "the engine's seam to timers")]
    pub(crate) async fn sleep(&self, length: Duration) {
        tokio::time::sleep(length.min(SLEEP_MAX)).await;
    }

    /// A timer for this moment.
    #[expect(clippy::disallowed_methods, reason = "the engine's seam to timers")]
    pub(crate) fn timer(&self, until: Steady) -> tokio::time::Sleep {
        tokio::time::sleep(until.since(self.clock.steady()).min(SLEEP_MAX))
    }

    pub(crate) async fn sleep_until(&self, until: Steady) {
        self.sleep(until.since(self.clock.steady())).await;
    }

    /// Uses up some of what a task may do before others of its thread have a turn, and gives them one when it is used up.
    pub(crate) async fn let_others_run(&self, cost: u32) {
        for _ in 0..cost {
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Starts a task that nobody waits for; its owner keeps the handle and aborts it.
    #[expect(clippy::disallowed_methods, reason = "the engine's seam to tasks")]
    pub(crate) fn spawn<A: Send + 'static>(
        &self,
        task: impl Future<Output = A> + Send + 'static,
    ) -> tokio::task::JoinHandle<A> {
        let Some(mortal) = &self.mortal else { return tokio::spawn(task) };
        let handle = tokio::spawn(mortal.unless_frozen(task));
        mortal.count(handle.abort_handle());
        handle
    }

    /// Makes a change of several steps that no caller can interrupt: if the returned future is dropped halfway, a task
    /// carries the change to its end.
    pub fn finish<F>(&self, change: F) -> impl Future<Output = F::Output> + Send + use<F>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let env = self.clone();
        Finishing::new(change, move |rest: BoxFuture<'static, ()>| {
            // Without a runtime the process is about to end, and the change stops as it would with a crash.
            if tokio::runtime::Handle::try_current().is_ok() {
                drop(env.spawn(rest));
            }
        })
    }
}

impl Mortal {
    /// Ends every task now, and whatever is started from now on.
    pub fn die(&self) {
        let mut tasks = self.0.lock();
        tasks.dead = true;
        tasks.living.drain(..).for_each(|task| task.abort());
    }

    /// Starts a task that dies with the others.
    #[expect(clippy::disallowed_methods, reason = "the engine's seam to tasks")]
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.count(tokio::spawn(self.unless_frozen(task)).abort_handle());
    }

    /// Stops every task where it is, as a process is stopped: time goes on, and its timers come late.
    pub fn freeze(&self) {
        self.0.lock().frozen = true;
    }

    /// Lets every task go on.
    pub fn thaw(&self) {
        let waiting = {
            let mut tasks = self.0.lock();
            tasks.frozen = false;
            std::mem::take(&mut tasks.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The task, which goes on only while nothing is frozen.
    fn unless_frozen<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        let (tasks, mut task) = (Arc::clone(&self.0), Box::pin(task));
        poll_fn(move |context| {
            let mut tasks = tasks.lock();
            if tasks.frozen {
                tasks.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            drop(tasks);
            task.as_mut().poll(context)
        })
    }

    fn count(&self, task: tokio::task::AbortHandle) {
        let mut tasks = self.0.lock();
        if tasks.dead {
            return task.abort();
        }
        tasks.living.push(task);
        if tasks.living.len() > tasks.sweep_at {
            tasks.living.retain(|task| !task.is_finished());
            tasks.sweep_at = 64 + 2 * tasks.living.len();
        }
    }
}
