//! Promote: due drafts join their lanes.

use std::time::Duration;

use crate::ids::Shard;

/// Moves what is due in one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promote {
    /// Where.
    pub shard: Shard,
    /// How many at most.
    pub limit: usize,
}

/// What was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// How many left the schedule.
    pub moved: usize,
    /// How long until the next is due; zero when more are due now.
    pub next: Option<Duration>,
}
