//! Settings of the file store: plain data, checked as a whole.

use std::time::Duration;

use laneway_core::{CLOCK_SETTLE, Refusal, Result};

use super::log;

/// Smallest segment: room for a call with one event or value of the largest size, for every promotion, and for a trim
/// of a shard with twenty processors. A call that may need more, such as an append of a thousand drafts with dedup
/// ids or a definition for thousands of partitions, is refused with the bytes it may need and the limit.
const SEGMENT_BYTES_MIN: u64 = 3 << 19;

pub use super::log::SyncMode;

/// Settings of the file store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// When an append is answered. Default [`SyncMode::Always`].
    pub sync: SyncMode,
    /// Length of a log segment; also bounds what one call may carry. Default 64 MiB.
    pub segment_bytes: u64,
    /// Longest time between two checkpoints while something changes. Default 5 s.
    pub checkpoint_every: Duration,
    /// Most log bytes between two checkpoints: what a start after a crash replays. Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// Log bytes since the last checkpoint at which appends wait for one. Default 512 MiB.
    pub backlog_bytes: u64,
    /// Lane ends kept in memory, beside those that change between two checkpoints. Default 1,000,000.
    pub tail_cache: usize,
    /// Memory for pages of the index. Default 64 MiB.
    pub index_cache_bytes: usize,
    /// Memory for the newest frames, which readers take without touching a file. Default 16 MiB.
    pub recent_bytes: usize,
    /// How long the wall clock must agree with the steady clock, after a jump of more than a minute or a reboot, before
    /// the store believes it and deletes data by its age. Default 10 min.
    pub clock_settle: Duration,
    /// Who runs the background work. Default [`Background::Threads`].
    pub background: Background,
}

/// Who runs checkpoints and prepares segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the store.
    Threads,
    /// Nobody, until [`crate::file::FileStore::checkpoint`] is called: for tests that count every disk call.
    Manual,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            sync: SyncMode::Always,
            segment_bytes: 64 << 20,
            checkpoint_every: Duration::from_secs(5),
            checkpoint_bytes: 256 << 20,
            backlog_bytes: 512 << 20,
            tail_cache: 1_000_000,
            index_cache_bytes: 64 << 20,
            recent_bytes: 16 << 20,
            clock_settle: CLOCK_SETTLE,
            background: Background::Threads,
        }
    }
}

impl FileOptions {
    pub(super) fn check(&self) -> Result<()> {
        if self.segment_bytes < SEGMENT_BYTES_MIN {
            let limit = format!("at least {SEGMENT_BYTES_MIN}");
            return Err(Refusal::new("segment_bytes", self.segment_bytes.to_string(), limit).into());
        }
        if self.backlog_bytes < self.checkpoint_bytes {
            let limit = format!("at least checkpoint_bytes, {}", self.checkpoint_bytes);
            return Err(Refusal::new("backlog_bytes", self.backlog_bytes.to_string(), limit).into());
        }
        Ok(())
    }

    pub(super) fn log_options(&self) -> log::Options {
        log::Options {
            segment_bytes: self.segment_bytes,
            recent_bytes: self.recent_bytes,
            sync: self.sync,
            upkeep: match self.background {
                Background::Threads => log::Upkeep::Thread,
                Background::Manual => log::Upkeep::Caller,
            },
            ..log::Options::default()
        }
    }
}
