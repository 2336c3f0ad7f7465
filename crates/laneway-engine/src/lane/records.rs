//! Which lanes of a seat have a record in its store, as far as that fits into memory.
//!
//! The owner is the only writer of records, so what it once knew stays true. Without this every page would have to be
//! asked for, lane by lane, as soon as one lane is blocked.

use std::collections::BTreeSet;

use laneway_core::{BlockKind, LaneName, LaneRecord};

/// Names kept at most. Beyond it lanes are looked up in the store.
pub(crate) const KNOWN_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Records {
    /// All of them; `None` when there were too many.
    known: Option<BTreeSet<LaneName>>,
    /// Those that are held up, for the meters alone.
    held_up: BTreeSet<LaneName>,
}

impl Records {
    /// `names`: all that there are, or `None` when they are too many. `held_up`: those of them that are.
    pub(crate) fn new(names: Option<BTreeSet<LaneName>>, held_up: BTreeSet<LaneName>) -> Self {
        Self { known: names.filter(|names| names.len() <= KNOWN_MAX), held_up }
    }

    /// No lane has a record.
    pub(crate) fn none() -> Self {
        Self::new(Some(BTreeSet::new()), BTreeSet::new())
    }

    /// Notes whether the record of a lane says that it is held up.
    pub(crate) fn note(&mut self, lane: &LaneName, record: Option<&LaneRecord>) {
        if !record.is_some_and(is_held_up) {
            self.held_up.remove(lane);
        } else if self.held_up.len() <= KNOWN_MAX && !self.held_up.contains(lane) {
            self.held_up.insert(lane.clone());
        }
    }

    /// Lanes that are held up; one more than are kept when they are too many.
    pub(crate) fn held_up(&self) -> usize {
        if self.known.is_some() { self.held_up.len() } else { KNOWN_MAX + 1 }
    }

    /// Whether no lane has a record.
    pub(crate) fn are_none(&self) -> bool {
        self.known.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Whether the lane may have a record.
    pub(crate) fn may_have(&self, lane: &LaneName) -> bool {
        self.known.as_ref().is_none_or(|known| !known.is_empty() && known.contains(lane))
    }

    pub(crate) fn insert(&mut self, lane: &LaneName) {
        let Some(known) = &mut self.known else { return };
        if !known.contains(lane) {
            known.insert(lane.clone());
        }
        if known.len() > KNOWN_MAX {
            self.known = None;
        }
    }

    pub(crate) fn remove(&mut self, lane: &LaneName) {
        if let Some(known) = &mut self.known {
            known.remove(lane);
        }
    }
}

/// Whether a lane stands still: its head neither runs nor may start.
pub(crate) fn is_held_up(record: &LaneRecord) -> bool {
    let kind = record.block.as_ref().map(laneway_core::Block::kind);
    matches!(
        kind,
        Some(
            BlockKind::Retry | BlockKind::Hold | BlockKind::Paused | BlockKind::Parked | BlockKind::Diverting
        )
    )
}
