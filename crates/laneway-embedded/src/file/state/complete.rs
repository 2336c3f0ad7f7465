//! Whether the log still holds every event that was not trimmed.
//!
//! Segments are given back from the oldest on, so a log that begins too late looks whole by itself: only what the
//! shards say of themselves tells that its beginning is missing.

use laneway_core::{EventId, Result, ShardInfo, StoreError};

use super::FileState;

impl FileState {
    /// Refuses a log from which the oldest segments were lost.
    pub(crate) fn check_complete(&self) -> Result<()> {
        for (shard, info) in &self.shards {
            let wanted = first_wanted(info, self.kept_of(*shard).events);
            let first = self.archive().directory().first_event(*shard);
            if wanted <= info.head && first.is_none_or(|first| first > wanted) {
                let found =
                    first.map_or_else(|| "none is there".to_owned(), |first| format!("the first is {first}"));
                let what = format!(
                    "log: events of shard {shard} must begin with {wanted}, but {found}: segments are missing; \
                     restore a backup"
                );
                return Err(StoreError::Corrupt { what });
            }
        }
        Ok(())
    }
}

/// The oldest event that is neither trimmed nor kept aside; ids that were never given are passed over.
fn first_wanted(info: &ShardInfo, kept: EventId) -> EventId {
    let mut wanted = info.trimmed.max(kept).next().max(info.first_id);
    while let Some((_, last)) = info.gaps.iter().find(|(first, last)| (*first..=*last).contains(&wanted)) {
        wanted = last.next();
    }
    wanted
}
