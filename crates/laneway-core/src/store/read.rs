//! Read: events of one shard, in order.

use std::time::Duration;

use super::lanes::Versioned;
use crate::event::Event;
use crate::ids::{EventId, ProcessorId, Shard};
use crate::key::Key;

/// One page to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Where.
    pub shard: Shard,
    /// Which events.
    pub from: ReadFrom,
    /// How many at most.
    pub limit: usize,
    /// How many bytes of events at most, and as many of states; a page has at least one event if there is one.
    pub bytes: usize,
    /// Whose request number, and whose states, to answer with.
    pub processor: Option<ProcessorId>,
    /// Whether to add the processor's states of the page's keys.
    pub states: bool,
}

/// Which events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// Those after this id.
    After(EventId),
    /// These, ascending; ids that never were are left out.
    Ids(Vec<EventId>),
}

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The events, ascending by id.
    pub entries: Vec<Entry>,
    /// Last id of the shard.
    pub head: EventId,
    /// Highest request number of the processor asked for.
    pub request_no: u64,
    /// How long until a scheduled draft is due; zero when one is.
    pub next_due: Option<Duration>,
    /// States of the page's keys, if asked for.
    pub states: Vec<(Key, Versioned)>,
}

/// One event of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The event.
    Event(Event),
    /// Latest mode: it is not its lane's newest.
    Superseded {
        /// The event.
        id: EventId,
        /// Its lane's newest at this moment.
        winner: EventId,
        /// Its lane.
        key: Key,
        /// The job that hangs on it, which must be told.
        job: Option<crate::event::JobMark>,
    },
}

impl Entry {
    /// Id of the event.
    pub fn id(&self) -> EventId {
        match self {
            Self::Event(event) => event.id,
            Self::Superseded { id, .. } => *id,
        }
    }
}
