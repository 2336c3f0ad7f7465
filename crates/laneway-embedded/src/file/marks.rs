//! What makes jobs of events: a commit that ends jobs needs it before it takes the state's lock.
//!
//! Whoever ends jobs has read their events shortly before, so what such a read saw is remembered for a while; the rest
//! is looked up in the log.

use std::collections::VecDeque;

use hashbrown::HashMap;
use laneway_core::{Event, EventId, JobMark, Result, Shard, StoreError, StreamId};
use parking_lot::Mutex;

use super::state::{job_marks as find_marks, resolve};
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

/// Looks up what makes jobs of these events, before the state's lock is taken.
pub(super) fn job_marks(
    shared: &Shared,
    shard: Shard,
    mut ids: Vec<EventId>,
) -> Result<Vec<(EventId, JobMark)>> {
    ids.sort_unstable();
    ids.dedup();
    let mut marks = Vec::with_capacity(ids.len());
    shared.recent_marks.take_known(shard, &mut ids, &mut marks);
    let mut rest = &ids[..];
    while let Some(first) = rest.first() {
        let start = match shared.commit_hints.nearest(shard, *first) {
            Some(hint) => Some(hint),
            None => {
                let place = shared.state.read().contents.event(shard, *first);
                match place.map_or(Ok(None), |place| resolve(&shared.footers, place, shard, *first)) {
                    Err(StoreError::Trimmed { .. }) => None,
                    start => start?,
                }
            }
        };
        let Some(start) = start else { break };
        let (done, stopped) = match find_marks(&shared.reader, start, shard, rest, &mut marks) {
            // Trimmed events have no open jobs; the rules say what is wrong with such a commit.
            Err(StoreError::Trimmed { .. }) => break,
            found => found?,
        };
        if let Some((id, position)) = stopped {
            shared.commit_hints.put(shard, id, position);
        }
        // An id that is not there at all must not hold up the others.
        rest = &rest[done.max(1)..];
    }
    marks.sort_unstable_by_key(|(id, _)| *id);
    Ok(marks)
}
