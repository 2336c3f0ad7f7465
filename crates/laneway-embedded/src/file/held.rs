//! Reports what keeps the oldest log segment from being deleted.

use laneway_core::store::{Held, HeldBy};
use laneway_core::{EventId, Result, StoreError};

use super::state::{Seen, ShardTable};
use super::store::Shared;
use crate::machine::{self, Now, View};

/// The most partitions to report.
const NAMED_MAX: usize = 16;

/// Returns the partitions that still need the oldest sealed segment.
pub(super) async fn held(shared: &Shared) -> Result<Vec<Held>> {
    let Some(oldest) = shared.archive.directory().sealed().into_iter().next() else { return Ok(Vec::new()) };
    let segments = shared.log.segments();
    let bytes =
        segments.iter().filter(|segment| segment.serial >= oldest.serial).map(|segment| segment.end).sum();
    let mut held = Vec::new();
    for found in &oldest.shards {
        let reads_results = |now: Now| oldest.keep_until.0 > 0 && oldest.keep_until >= now.expiry;
        let by = shared.observe(|state, now| holder(state, now, found, reads_results(now))).await?;
        held.extend(by.map(|(event, by)| Held { shard: found.shard, event, by, bytes }));
        if held.len() == NAMED_MAX {
            break;
        }
    }
    Ok(held)
}

/// Returns the event of a shard that needs the segment, and why.
fn holder(
    state: &Seen<'_>,
    now: Now,
    found: &ShardTable,
    reads_results: bool,
) -> Result<Option<(EventId, HeldBy)>> {
    let Some(trimmed) = state.shard(found.shard).map(|info| info.trimmed) else { return Ok(None) };
    if !found.runs.is_empty() && found.runs.last > trimmed {
        let by = match machine::trim::held(state, now, found.shard) {
            // The stream was removed meanwhile.
            Err(StoreError::NotFound { .. }) => None,
            by => by?,
        };
        return Ok(by.filter(|(event, _)| *event <= found.runs.last));
    }
    let by_results = reads_results && !found.ends.is_empty();
    Ok(by_results.then_some((trimmed, HeldBy::Results)))
}
