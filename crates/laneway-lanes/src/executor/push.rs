//! What a caller pushes, and why a push may be refused.

use std::fmt;
use std::time::Duration;

use crate::table::{Kind, Priority, Revision};

/// One piece of work on its way into its lane.
///
/// ```
/// use laneway_lanes::{Push, table::Priority};
/// use std::time::Duration;
/// let push = Push::new("pod-1", "spec").generation(7).priority(Priority::High).ttl(Duration::from_secs(30));
/// assert_eq!(push.key, "pod-1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a push does nothing until it is handed to lanes"]
pub struct Push<K, V> {
    /// Which lane.
    pub key: K,
    /// What the handler gets to see.
    pub value: V,
    /// How urgent. Default: normal.
    pub priority: Priority,
    /// How long it may wait to be started, from the call of push. Default: for ever.
    pub ttl: Option<Duration>,
    /// Its version; compared in latest mode, in queue mode only shown to the handler. Default: nothing said.
    pub revision: Revision,
}

impl<K, V> Push<K, V> {
    /// A push of normal priority that may wait for ever.
    pub fn new(key: K, value: V) -> Self {
        Self { key, value, priority: Priority::Normal, ttl: None, revision: Revision::default() }
    }

    /// Sets the priority. The whole lane is lifted until this push has started.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Ends the push expired if it has not been started this long after the call of push.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Says which generation of the object this is.
    pub fn generation(mut self, generation: u64) -> Self {
        self.revision.generation = Some(generation);
        self
    }

    /// Says which life of the object this is; a recreated object has a higher one.
    pub fn incarnation(mut self, incarnation: u64) -> Self {
        self.revision.incarnation = Some(incarnation);
        self
    }

    /// Says that the object is gone: nothing of this incarnation is accepted afterwards.
    pub fn delete(mut self) -> Self {
        self.revision.kind = Kind::Delete;
        self
    }
}

impl<K, V> From<(K, V)> for Push<K, V> {
    fn from((key, value): (K, V)) -> Self {
        Self::new(key, value)
    }
}

/// A push was refused because the lanes are draining or shut down. It carries the push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushError<K, V>(pub Push<K, V>);

impl<K, V> fmt::Display for PushError<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("lanes are closed")
    }
}

impl<K: fmt::Debug, V: fmt::Debug> std::error::Error for PushError<K, V> {}

/// Why a push that does not wait was refused. It carries the push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryPushError<K, V> {
    /// As many pushes are in flight as may be, or earlier pushes wait for room: try later, or wait with `push`.
    Full(Push<K, V>),
    /// Draining or shut down: nothing is accepted any more.
    Closed(Push<K, V>),
}

impl<K, V> TryPushError<K, V> {
    /// The push, given back.
    pub fn into_push(self) -> Push<K, V> {
        match self {
            Self::Full(push) | Self::Closed(push) => push,
        }
    }
}

impl<K, V> fmt::Display for TryPushError<K, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full(_) => "lanes are full",
            Self::Closed(_) => "lanes are closed",
        })
    }
}

impl<K: fmt::Debug, V: fmt::Debug> std::error::Error for TryPushError<K, V> {}
