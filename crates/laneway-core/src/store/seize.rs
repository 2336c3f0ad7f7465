//! Seize: a seat gets a new owner.

use bytes::Bytes;

use crate::adoption::Gap;
use crate::ids::{EventId, Fence, Incarnation, Nonce, Seat, Term};
use crate::window::Window;

/// A wish to own a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seize {
    /// Which.
    pub seat: Seat,
    /// Store incarnation the caller has learned.
    pub incarnation: Incarnation,
    /// The owner the caller believes there is: takes the seat only from this one.
    pub expect: Option<Owner>,
    /// Made anew for this grant.
    pub nonce: Nonce,
    /// The taker's node, for people and for the cluster.
    pub node: Bytes,
}

/// Who owns a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its term.
    pub term: Term,
    /// Its nonce.
    pub nonce: Nonce,
}

/// What a seat's owner works with. Written only by `seize` and `commit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What the next commit must carry.
    pub fence: Fence,
    /// Node of the owner.
    pub node: Bytes,
    /// Which ids are passed.
    pub window: Window,
    /// The owner before ended in good order: nothing was running (contract 1.5).
    pub clean: bool,
    /// Requests up to this number had their effect; later ones may have had theirs too (see [`Answered`]).
    ///
    /// [`Answered`]: super::Answered
    pub requests_applied: u64,
    /// Last number given in the outbox.
    pub emitted: u64,
    /// Outbox rows up to this number were forwarded.
    pub forwarded: u64,
    /// Whether it runs.
    pub status: SeatStatus,
    /// What its owner keeps with the seat; empty at first. It outlasts owners and resets.
    pub note: Bytes,
    /// Which life of the processor on this shard: a reset begins the next.
    pub incarnation: u32,
}

/// Whether a seat runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeatStatus {
    /// It does.
    #[default]
    Run,
    /// Somebody paused it.
    Paused,
    /// A failure stopped it (`on_failure = "halt"`).
    Halted,
}

/// What the new owner begins with. Lane records are paged separately, so this does not grow with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The seat as it is now; `clean` tells how the owner before ended.
    pub progress: Progress,
    /// Last id of the shard.
    pub head: EventId,
    /// Ids of the shard that were never given.
    pub gaps: Vec<Gap>,
    /// Highest request number.
    pub request_no: u64,
}
