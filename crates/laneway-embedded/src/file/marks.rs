//! What makes jobs of events: a commit that ends jobs needs it before it takes the state's lock.
//!
//! Whoever ends jobs has read their events shortly before, so what such a read saw is remembered for a while; the rest
//! is looked up in the log.

use std::collections::VecDeque;

use hashbrown::HashMap;
use laneway_core::{Event, EventId, JobMark, Result, Shard, StreamId};
use parking_lot::Mutex;

use super::state::{Reach, from_files, in_memory};
use super::store::Shared;

/// Jobs remembered per shard: those read and not ended yet, unless very many run at once.
const MARKS_PER_SHARD: usize = 1_024;

/// The jobs among the events that were read last, by shard, ascending.
#[derive(Debug, Default)]
pub(crate) struct RecentMarks(Mutex<HashMap<Shard, VecDeque<(EventId, JobMark)>>>);

impl RecentMarks {
    /// Remembers the jobs among events that were read. One that was read before is not remembered again.
    pub(super) fn put(&self, shard: Shard, events: &[Event]) {
        let mut jobs: Vec<_> = events.iter().filter_map(|event| Some((event.id, event.job?))).collect();
        if jobs.is_empty() {
            return;
        }
        let mut shards = self.0.lock();
        let marks = shards.entry(shard).or_default();
        let last = marks.back().map_or(EventId(0), |(id, _)| *id);
        jobs.retain(|(id, _)| *id > last);
        jobs.drain(..jobs.len().saturating_sub(MARKS_PER_SHARD));
        let over = (marks.len() + jobs.len()).saturating_sub(MARKS_PER_SHARD);
        marks.drain(..over);
        // No more room than is ever used: a long page would leave its own behind in every shard.
        marks.reserve_exact(jobs.len());
        marks.extend(jobs);
    }

    #[cfg(test)]
    pub(super) fn room(&self, shard: Shard) -> usize {
        self.0.lock().get(&shard).map_or(0, VecDeque::capacity)
    }

    /// Forgets a stream that is no more.
    pub(super) fn forget(&self, stream: StreamId) {
        self.0.lock().retain(|shard, _| shard.stream != stream);
    }

    /// Moves the ids that are known from `ids`, which ascend, to `marks`.
    fn take_known(&self, shard: Shard, ids: &mut Vec<EventId>, marks: &mut Vec<(EventId, JobMark)>) {
        let shards = self.0.lock();
        let Some(known) = shards.get(&shard) else { return };
        ids.retain(|id| match known.binary_search_by_key(id, |(id, _)| *id) {
            Ok(at) => {
                marks.push(known[at]);
                false
            }
            Err(_) => true,
        });
    }
}

/// Looks up what makes jobs of these events, before the state's lock is taken. Trimmed events have no open jobs; the
/// rules say what is wrong with a commit that ends one.
pub(super) async fn job_marks(
    shared: &Shared,
    shard: Shard,
    mut ids: Vec<EventId>,
) -> Result<Vec<(EventId, JobMark)>> {
    ids.sort_unstable();
    ids.dedup();
    let mut marks = Vec::with_capacity(ids.len());
    shared.recent_marks.take_known(shard, &mut ids, &mut marks);
    if !ids.is_empty() {
        let found = match in_memory(shared.archive.job_marks(shard, &ids, Reach::Memory))? {
            Some(found) => found,
            None => {
                let archive = shared.archive.clone();
                shared.read_files(move || from_files(archive.job_marks(shard, &ids, Reach::Files))).await?
            }
        };
        marks.extend(found);
        marks.sort_unstable_by_key(|(id, _)| *id);
    }
    Ok(marks)
}
