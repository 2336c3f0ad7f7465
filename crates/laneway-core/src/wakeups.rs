//! Hints that something may have changed. They save polling and carry no truth: a lost one costs time only.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{Seat, Shard};
use crate::job::JobId;

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The shard has new events.
    Shard(Shard),
    /// The seat has new requests.
    Seat(Seat),
    /// The job changed.
    Job(JobId),
}

/// The third seam: advisory wake-ups. Polling must suffice without them.
#[async_trait]
pub trait Wakeups: Send + Sync {
    /// Wakes whoever waits for the topic.
    async fn announce(&self, topic: Topic) -> Result<()>;

    /// Waits until the topic was announced after the point `seen`, and answers the new point. Begin with 0.
    ///
    /// Because the caller hands in what it has seen, an announcement between two waits is never missed while
    /// the store remembers the topic. It may return early. Dropping the future is harmless.
    async fn wait(&self, topic: Topic, seen: u64) -> Result<u64>;
}
