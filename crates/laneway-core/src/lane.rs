//! Lane records: what a seat keeps of a lane that is not plain. A plain lane has no record at all.

use std::fmt;

use bytes::Bytes;

use crate::clock::{Steady, Timestamp};
use crate::event::Due;
use crate::ids::{EventId, Nonce};
use crate::key::Key;

/// Names a lane: by its key, or, for a keyless event, by the event itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LaneName {
    /// The lane of a key.
    Key(Key),
    /// The lane of one keyless event.
    Event(EventId),
}

impl fmt::Display for LaneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Event(id) => write!(f, "#{id}"),
        }
    }
}

/// One lane of one seat, as far as it is not plain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRecord {
    /// Which lane.
    pub lane: LaneName,
    /// What holds it up; `None` while it drains its siding.
    pub block: Option<Block>,
    /// Its first unsettled event.
    pub head: Option<EventId>,
    /// Failed attempts at the head.
    pub attempts: u32,
    /// Crashes with the head running.
    pub crashes: u32,
    /// A suspect's start was committed and its end not yet (contract 1.5).
    pub started: bool,
    /// Its events up to this are run ahead of the floor (contract 3.6): those not in its siding have ended, though the
    /// window may not know it. It is kept until the floor is there.
    pub ahead: Option<EventId>,
}

impl LaneRecord {
    /// A record of a lane that is not held up.
    pub fn new(lane: LaneName) -> Self {
        Self { lane, block: None, head: None, attempts: 0, crashes: 0, started: false, ahead: None }
    }
}

/// What holds a lane up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Its head failed and is due again then.
    Retry {
        /// When.
        due: Due,
        /// Why it failed.
        cause: Bytes,
    },
    /// Its head wants to start then (`delay_mode = "hold"`).
    Hold {
        /// When.
        due: Due,
    },
    /// Somebody paused it.
    Paused {
        /// Who.
        by: Bytes,
        /// When.
        at: Timestamp,
    },
    /// Its head gave up; somebody must decide.
    Parked {
        /// Why.
        cause: Bytes,
        /// When.
        at: Timestamp,
    },
    /// Its events go to the dead letters until redriven or resumed.
    Diverting {
        /// The event that began it.
        since: EventId,
    },
    /// Its head has been running for long; progress as last reported.
    Running {
        /// When it started.
        since: Timestamp,
        /// What the handler last said of its progress.
        progress: Bytes,
    },
    /// A remote worker has it.
    Claimed(Claim),
}

/// A remote worker's right, as the next owner adopts it (contract 1.16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Made anew for the claim.
    pub nonce: Nonce,
    /// Who.
    pub worker: Bytes,
    /// Last event of the batch.
    pub through: EventId,
    /// When it ends unless extended.
    pub expires: Steady,
}

/// The kinds of [`Block`], for lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// See [`Block::Retry`].
    Retry,
    /// See [`Block::Hold`].
    Hold,
    /// See [`Block::Paused`].
    Paused,
    /// See [`Block::Parked`].
    Parked,
    /// See [`Block::Diverting`].
    Diverting,
    /// See [`Block::Running`].
    Running,
    /// See [`Block::Claimed`].
    Claimed,
}

impl BlockKind {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 7] =
        [Self::Retry, Self::Hold, Self::Paused, Self::Parked, Self::Diverting, Self::Running, Self::Claimed];
}

impl Block {
    /// Which kind this is.
    pub fn kind(&self) -> BlockKind {
        match self {
            Self::Retry { .. } => BlockKind::Retry,
            Self::Hold { .. } => BlockKind::Hold,
            Self::Paused { .. } => BlockKind::Paused,
            Self::Parked { .. } => BlockKind::Parked,
            Self::Diverting { .. } => BlockKind::Diverting,
            Self::Running { .. } => BlockKind::Running,
            Self::Claimed(_) => BlockKind::Claimed,
        }
    }

    /// When time alone ends it.
    pub fn due(&self) -> Option<Due> {
        match self {
            Self::Retry { due, .. } | Self::Hold { due } => Some(*due),
            Self::Claimed(claim) => Some(Due::Steady(claim.expires)),
            Self::Paused { .. } | Self::Parked { .. } | Self::Diverting { .. } | Self::Running { .. } => None,
        }
    }
}
