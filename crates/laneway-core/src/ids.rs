//! Names and numbers: one newtype each, so that two of them can never be swapped in a call.

use std::fmt;
use std::str::FromStr;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Number of a stream, given at its creation and never reused, also not after removal.
    StreamId(u32)
);
number!(
    /// Number of a partition inside its stream, from 0.
    Partition(u32)
);
number!(
    /// Number of a processor, given at its registration and never reused.
    ProcessorId(u32)
);
number!(
    /// Position of an event in its partition: from 1, strictly growing, never reused. 0 means "before the first".
    EventId(u64)
);
number!(
    /// Number of an event in its lane: 1, 2, 3 …
    Seq(u64)
);
number!(
    /// Which holder of a right: every new holder's term is higher.
    Term(u64)
);
number!(
    /// 128 random bits, new at every grant: two grants of one term can be told apart.
    Nonce(u128)
);
number!(
    /// Names one commit, so that an unanswered one can be repeated unchanged.
    CommitId(u128)
);
number!(
    /// Names one request, so that an unanswered one can be repeated unchanged.
    TokenId(u128)
);
number!(
    /// Which life of the store: it changes when the store may have lost a tail (failover, restored backup).
    Incarnation(u128)
);

impl EventId {
    /// The id after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One partition of one stream: the only unit of atomicity, on every store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// The stream.
    pub stream: StreamId,
    /// The partition of it.
    pub partition: Partition,
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.stream, self.partition)
    }
}

/// One processor on one shard: the unit of ownership. Its rows have one writer, the holder of the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat {
    /// The shard whose events are processed.
    pub shard: Shard,
    /// The processor that processes them.
    pub processor: ProcessorId,
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.processor, self.shard)
    }
}

/// What a commit must match in all four parts (contract 1.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Term of the holder.
    pub term: Term,
    /// Made anew for the grant.
    pub nonce: Nonce,
    /// Commits of this seat accepted so far, by anyone: an equal version means equal heads.
    pub version: u64,
    /// How often the shard was adopted: refuses a holder that a rollback of the store made current again.
    pub adoptions: u32,
}

/// The one name of an event in text: `stream/partition/id`.
///
/// ```
/// use laneway_core::Ref;
/// let reference: Ref = "orders/3/17".parse().unwrap();
/// assert_eq!((reference.stream.as_str(), reference.id.0), ("orders", 17));
/// assert_eq!(reference.to_string(), "orders/3/17");
/// assert!("orders/3".parse::<Ref>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref {
    /// Name of the stream; it has no slash.
    pub stream: String,
    /// Partition of the stream.
    pub partition: Partition,
    /// Id of the event.
    pub id: EventId,
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.stream, self.partition, self.id)
    }
}

impl FromStr for Ref {
    type Err = crate::Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refusal = || crate::Refusal::new("ref", text, "stream/partition/id, such as orders/3/17");
        let mut parts = text.rsplitn(3, '/');
        let (Some(id), Some(partition), Some(stream)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(refusal());
        };
        if stream.is_empty() || stream.contains('/') {
            return Err(refusal());
        }
        Ok(Self {
            stream: stream.to_owned(),
            partition: Partition(partition.parse().map_err(|_| refusal())?),
            id: EventId(id.parse().map_err(|_| refusal())?),
        })
    }
}

/// The fence that handlers pass to outside systems: grows with every later run of a lane (contract 1.19).
///
/// Its text has a fixed width, so that comparing texts compares runs:
///
/// ```
/// use laneway_core::{EventId, RunFence, Term};
/// let first = RunFence { term: Term(7), id: EventId(9), attempt: 1 };
/// let retry = RunFence { attempt: 2, ..first };
/// let taken_over = RunFence { term: Term(8), id: EventId(9), attempt: 1 };
/// assert!(first.to_string() < retry.to_string() && retry.to_string() < taken_over.to_string());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunFence {
    /// Term of the seat's holder.
    pub term: Term,
    /// First event of the run.
    pub id: EventId,
    /// Which attempt at it, from 1.
    pub attempt: u32,
}

impl fmt::Display for RunFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{:016x}.{:08x}", self.term.0, self.id.0, self.attempt)
    }
}
