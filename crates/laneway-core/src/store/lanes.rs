//! Lanes: records of lanes that are not plain.

use std::time::Duration;

use bytes::Bytes;

use crate::ids::{EventId, Seat};
use crate::lane::{BlockKind, LaneName, LaneRecord};

/// Which lane records of a seat to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Whose.
    pub seat: Seat,
    /// Which.
    pub select: LaneSelect,
    /// How many sided ids to answer per lane.
    pub siding: usize,
    /// Whether to answer their states, which may be large.
    pub states: bool,
}

/// The ways to select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneSelect {
    /// These; lanes that have neither a record nor a state that was asked for are left out.
    Names(Vec<LaneName>),
    /// Those that time alone frees within this time, soonest first.
    Due {
        /// How far to look ahead.
        within: Duration,
        /// How many at most.
        limit: usize,
    },
    /// All that have a record, or those held up in one way, by name.
    Blocked {
        /// Which way; `None` for every record.
        kind: Option<BlockKind>,
        /// Begin after this one.
        after: Option<LaneName>,
        /// How many at most.
        limit: usize,
    },
}

/// One lane of one seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// Its record; a lane with nothing but a state has an empty one.
    pub record: LaneRecord,
    /// Its state, if it was asked for.
    pub state: Option<Versioned>,
    /// The first ids of its siding, ascending.
    pub siding: Vec<EventId>,
}

/// A value with the number of its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// Grows by one with every change, from 1.
    pub version: u64,
    /// The value.
    pub bytes: Bytes,
}
