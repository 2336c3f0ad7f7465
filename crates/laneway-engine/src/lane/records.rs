//! Which lanes of a seat have a record in its store, as far as that fits into memory.
//!
//! The owner is the only writer of records, so what it once knew stays true. Without this every page would have to be
//! asked for, lane by lane, as soon as one lane is blocked.

use std::collections::BTreeSet;

use laneway_core::LaneName;

/// Names kept at most. Beyond it lanes are looked up in the store.
pub(crate) const KNOWN_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Records {
    /// All of them; `None` when there were too many.
    known: Option<BTreeSet<LaneName>>,
}

impl Records {
    /// `names`: all that there are, or `None` when they are too many.
    pub(crate) fn new(names: Option<BTreeSet<LaneName>>) -> Self {
        Self { known: names.filter(|names| names.len() <= KNOWN_MAX) }
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
