//! The handle: push work, look at it, steer it, shut it down.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::drain::{Drained, drain};
use super::hub::Hub;
use super::outcome::Outcome;
use super::push::{Push, TryPushError};
use super::run::Run;
use super::seam::{self, Clock};
use super::settings::{Settings, SettingsError, View};
use super::ticket::Ticket;
use super::timekeeper::Timekeeper;
use super::waiting::{Pushing, PushingMany, try_push};
use super::worker::Worker;
use crate::table::{Cancelled, ItemId, LaneView, Tick, Why};

/// A running executor of lanes. Cheap to clone; all clones are the same executor.
///
/// When the last clone is dropped, what was accepted still runs, except in paused lanes, whose pushes end cancelled;
/// then the workers end.
///
/// ```
/// use laneway_lanes::{End, Lanes, Outcome, Run, Settings};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lanes = Lanes::start(Settings::default(), |run: Run<&str, u32>| async move {
///     Outcome::<u32, String>::Done(run.value() * 2)
/// })?;
/// let first = lanes.push(("alice", 1)).await?;
/// let second = lanes.push(("alice", 2)).await?; // starts when the first has ended
/// assert_eq!(second.await, End::Done(4));
/// assert_eq!(first.await, End::Done(2));
/// # Ok(()) }
/// ```
pub struct Lanes<K: Hash + Eq + Clone, V, R, E> {
    owner: Arc<Owner<K, V, R, E>>,
}

/// Closes the hub when the last handle is gone.
struct Owner<K: Hash + Eq + Clone, V, R, E> {
    hub: Arc<Hub<K, V, R, E>>,
}

impl<K, V, R, E> Lanes<K, V, R, E>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Send + Sync + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    /// Starts the workers on the current tokio runtime.
    ///
    /// The handler is called once per run. It must not block its thread: other runs of the same worker would wait.
    ///
    /// # Errors
    /// When settings are out of range; all faults are reported at once.
    ///
    /// # Panics
    /// Outside a tokio runtime, or on one without timers.
    pub fn start<H, F>(settings: Settings, handler: H) -> Result<Self, SettingsError>
    where
        H: Fn(Run<K, V>) -> F + Send + Sync + 'static,
        F: Future<Output = Outcome<R, E>> + Send + 'static,
    {
        settings.check()?;
        let workers = settings.workers;
        let clock = Clock::start();
        // Here, and not when the first retry or drain wants one and pushes hang on it.
        let _first = clock.timer(Tick::START);
        let hub = Arc::new(Hub::new(settings, clock));
        let handler = Arc::new(handler);
        for number in 0..workers {
            seam::spawn(Worker::new(Arc::clone(&hub), Arc::clone(&handler), number));
        }
        seam::spawn(Timekeeper::new(Arc::clone(&hub)));
        Ok(Self { owner: Arc::new(Owner { hub }) })
    }

    fn hub(&self) -> &Arc<Hub<K, V, R, E>> {
        &self.owner.hub
    }

    /// Puts work into its lane; waits for room if need be.
    ///
    /// The order of pushes is the order of these calls, also among those that wait for room. The work is accepted
    /// by the call itself when there is room; awaiting gives the ticket. Dropping the future of a push that still
    /// waits withdraws it and gives its place to the next.
    ///
    /// Resolves to an error, with the push, when the lanes are draining or shut down.
    pub fn push(&self, push: impl Into<Push<K, V>>) -> Pushing<K, V, R, E> {
        Pushing::start(self.hub(), push.into())
    }

    /// Puts many pieces of work into their lanes, in order and with nothing of others in between as far as there is room.
    ///
    /// Cheaper than as many calls of [`push`](Self::push). One answer per push, in order.
    pub fn push_many(
        &self,
        pushes: impl IntoIterator<Item = impl Into<Push<K, V>>>,
    ) -> PushingMany<K, V, R, E> {
        PushingMany::start(self.hub(), pushes.into_iter().map(Into::into))
    }

    /// Puts work into its lane if there is room now and nobody waits for it.
    ///
    /// # Errors
    /// Gives the push back: full, or closed.
    pub fn try_push(&self, push: impl Into<Push<K, V>>) -> Result<Ticket<R, E>, TryPushError<K, V>> {
        try_push(self.hub(), push.into())
    }

    /// Keeps a lane from starting anything until it is resumed; what runs goes on. Answers whether it was not paused.
    pub fn pause(&self, key: K) -> bool {
        self.hub().with(|hall, _| hall.table.pause(key))
    }

    /// Ends a pause. Answers whether the lane was paused.
    pub fn resume(&self, key: &K) -> bool {
        self.hub().with(|hall, _| hall.table.resume(key))
    }

    /// Cancels everything accepted for a key. What waits ends at once; what runs is asked to stop, and dropped after
    /// the grace period. A run that answers done or fail after all ends so. Answers how many waited and how many ran.
    pub fn cancel(&self, key: &K) -> (usize, usize) {
        self.cancel_by(|table| table.cancel(key))
    }

    /// Cancels one push by its number, as [`cancel`](Self::cancel) does all of a key.
    pub fn cancel_push(&self, key: &K, id: ItemId) -> (usize, usize) {
        self.cancel_by(|table| table.cancel_item(key, id))
    }

    fn cancel_by(
        &self,
        cancel: impl FnOnce(
            &mut crate::table::Table<K, Arc<super::entry::Entry<V, R, E>>>,
        ) -> EntriesCancelled<V, R, E>,
    ) -> (usize, usize) {
        self.hub().with(|hall, aftermath| {
            let Cancelled { waiting, running } = cancel(&mut hall.table);
            let counts = (waiting, running.len());
            aftermath.stop(running);
            counts
        })
    }

    /// Refuses new pushes, lets what was accepted finish, and after `within` cancels the rest.
    ///
    /// Resolves when nothing is left, so at the latest after `within` plus the stop grace. Dropping the future leaves
    /// the lanes closed and cancels nothing.
    pub fn drain(&self, within: Duration) -> impl Future<Output = Drained> + Send + use<K, V, R, E> {
        drain(Arc::clone(self.hub()), within)
    }

    /// Counts at this moment.
    #[must_use]
    pub fn snapshot(&self) -> View {
        self.hub().view()
    }

    /// Up to `limit` lanes at this moment, in no particular order. Looks at lanes under the lock: keep the limit modest.
    #[must_use]
    pub fn lanes(&self, limit: usize) -> Vec<LaneView<K>> {
        self.hub().with(|hall, _| hall.table.lanes().take(limit).collect())
    }

    /// The one reason why the next push of a key does not start, or what the key does if none waits.
    #[must_use]
    pub fn why(&self, key: &K) -> Why {
        self.hub().with(|hall, _| hall.table.why(key))
    }

    /// The one reason why one push does not start.
    #[must_use]
    pub fn why_push(&self, key: &K, id: ItemId) -> Why {
        self.hub().with(|hall, _| hall.table.why_item(key, id))
    }
}

type EntriesCancelled<V, R, E> = Cancelled<Arc<super::entry::Entry<V, R, E>>>;

impl<K: Hash + Eq + Clone, V, R, E> Drop for Owner<K, V, R, E> {
    fn drop(&mut self) {
        self.hub.close();
        self.hub.with(|hall, _| hall.table.cancel_held());
    }
}

impl<K: Hash + Eq + Clone, V, R, E> Clone for Lanes<K, V, R, E> {
    fn clone(&self) -> Self {
        Self { owner: Arc::clone(&self.owner) }
    }
}

impl<K: Hash + Eq + Clone, V, R, E> fmt::Debug for Lanes<K, V, R, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lanes").field("view", &self.owner.hub.view()).finish()
    }
}
