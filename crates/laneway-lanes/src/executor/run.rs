//! What a handler gets for one run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::entry::{Held, ListenerId, Stoppable};
use super::seam::Clock;
use crate::table::{ItemId, Tick, Version};

/// One run of one push: key, value and what the handler may want to know.
///
/// ```
/// use laneway_lanes::{Outcome, Run};
/// use std::time::Duration;
///
/// async fn deliver(run: Run<String, Vec<u8>>) -> Outcome<(), String> {
///     if run.attempt() > 1 {
///         // An earlier attempt of the same push failed.
///     }
///     match send(run.key(), run.value()).await {
///         Ok(()) => Outcome::Done(()),
///         Err(error) => Outcome::Retry { after: Duration::from_millis(100), error },
///     }
/// }
/// # async fn send(_: &str, _: &[u8]) -> Result<(), String> { Ok(()) }
/// ```
pub struct Run<K, V> {
    pub(super) key: K,
    pub(super) id: ItemId,
    pub(super) attempt: u32,
    pub(super) version: Version,
    pub(super) held: Arc<dyn Held<V>>,
    pub(super) last_done: Option<Done<V>>,
    pub(super) deadline: Option<Tick>,
    pub(super) clock: Clock,
}

impl<K, V> Run<K, V> {
    /// The lane it runs in. No other run of this key is under way.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// What was pushed.
    pub fn value(&self) -> &V {
        self.held.value()
    }

    /// The push's number, as its ticket has it.
    pub fn id(&self) -> ItemId {
        self.id
    }

    /// Which run of this push it is, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The version it was accepted with (queue mode: what the push said, or zero).
    pub fn version(&self) -> Version {
        self.version
    }

    /// Latest mode: the last push of this key that was done, as far as it is remembered.
    pub fn last_done(&self) -> Option<&Done<V>> {
        self.last_done.as_ref()
    }

    /// How long until this run is dropped and counts as failed, with a timeout set.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.since(self.clock.now()))
    }

    /// Whether the run was asked to stop: cancelled, superseded while running, or out of time.
    pub fn is_cancelled(&self) -> bool {
        self.held.is_stopped()
    }

    /// A token to hand to whatever the handler starts.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken
    where
        V: 'static,
    {
        CancelToken { entry: Arc::clone(&self.held) as Arc<dyn Stoppable> }
    }
}

impl<K: fmt::Debug, V> fmt::Debug for Run<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Run")
            .field("key", &self.key)
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// The last done push of a key.
pub struct Done<V> {
    pub(super) id: ItemId,
    pub(super) version: Version,
    pub(super) held: Option<Arc<dyn Held<V>>>,
}

impl<V> Done<V> {
    /// Which push.
    pub fn id(&self) -> ItemId {
        self.id
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its value, with `keep_last`.
    pub fn value(&self) -> Option<&V> {
        self.held.as_ref().map(|held| held.value())
    }
}

/// Tells that a run was asked to stop. Cheap to clone.
#[derive(Clone)]
pub struct CancelToken {
    entry: Arc<dyn Stoppable>,
}

impl CancelToken {
    /// Whether the run was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.entry.is_stopped()
    }

    /// Resolves when the run is asked to stop.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        Stopped { entry: Arc::clone(&self.entry), number: None }
    }
}

/// A wait for the request to stop. Leaves nothing behind when it is dropped.
struct Stopped {
    entry: Arc<dyn Stoppable>,
    number: Option<ListenerId>,
}

impl Future for Stopped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { entry, number } = self.get_mut();
        entry.poll_stopped(context, number)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.entry.forget_listener(number);
        }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}
