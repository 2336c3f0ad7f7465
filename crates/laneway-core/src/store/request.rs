//! Requests: what everyone but the owner can do to a seat (contract 1.7).

use std::time::Duration;

use bytes::Bytes;

use super::commit::Reset;
use crate::ids::{EventId, Seat, TokenId};
use crate::lane::LaneName;

/// A wish filed with the owner of a seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whose owner decides.
    pub seat: Seat,
    /// Names this wish for a repeat.
    pub token: TokenId,
    /// The wish.
    pub op: RequestOp,
}

/// The wishes. Those about an event name it, so that a late one cannot hit its successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOp {
    /// End this event, wherever it is in its lane.
    Cancel {
        /// Which.
        id: EventId,
    },
    /// Stop a lane, or the whole seat.
    Pause {
        /// Which lane; `None` for all.
        lane: Option<LaneName>,
        /// Who asks.
        by: Bytes,
    },
    /// Go on.
    Resume {
        /// Which lane; `None` for all.
        lane: Option<LaneName>,
    },
    /// Run the head now.
    Retry {
        /// Which lane.
        lane: LaneName,
        /// The head that is meant.
        id: EventId,
    },
    /// Pass the head over.
    Skip {
        /// Which lane.
        lane: LaneName,
        /// The head that is meant.
        id: EventId,
    },
    /// Bring dead letters back: one event, or a whole lane in order.
    Redrive {
        /// One event; `None` for the whole lane.
        id: Option<EventId>,
        /// Its lane.
        lane: LaneName,
        /// Where to.
        to: RedriveTo,
    },
    /// Forget dead letters: one event, or all of a lane.
    Discard {
        /// One event; `None` for the whole lane.
        id: Option<EventId>,
        /// Its lane.
        lane: LaneName,
    },
    /// Begin the processor anew on this shard.
    Reset(Reset),
    /// A remote worker's answer.
    Settle {
        /// Its claim token.
        claim: Bytes,
        /// Its answer, as the engine encodes it.
        answer: Bytes,
    },
    /// A remote worker needs more time.
    Extend {
        /// Its claim token.
        claim: Bytes,
        /// How long from now.
        lease: Duration,
    },
}

/// Where redriven dead letters go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedriveTo {
    /// Back in their place, before their successors.
    Place,
    /// To the end of the lane, as a copy.
    Tail,
}

/// The request is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its number at the seat, from 1.
    pub number: u64,
    /// It was there already.
    pub repeated: bool,
}
