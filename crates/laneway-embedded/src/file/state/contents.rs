//! Where the events and job ends of each shard lie in one segment that still takes frames or has no footer yet.
//!
//! Every record of events has an entry, and so has every end of a job. A reader of one shard therefore touches only the
//! frames that hold something of it, whatever the others write. The lists go into the segment's footer when it is sealed
//! (`footer`); all segments together are the `directory`.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use laneway_core::{EventId, Shard, Timestamp};

/// How much of the log lies between two noted times.
const TIME_BYTES: u32 = 128 << 10;

/// A place in a segment: the frame's offset in the file and the record's offset in the frame's body. For a run of events
/// `id` is its first id and `at` its record; for the end of a job `id` is its event and `at` the end itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: EventId,
    pub(crate) frame: u32,
    pub(crate) at: u32,
}

/// A record of events: its shard, its ids, and where it begins in the frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) shard: Shard,
    pub(crate) first: EventId,
    pub(crate) last: EventId,
    pub(crate) at: u32,
}

/// What one frame adds to its segment.
#[derive(Debug, Default)]
pub(crate) struct FrameContents {
    pub(crate) runs: Vec<Run>,
    /// Shard, id and body offset of each job end.
    pub(crate) ends: Vec<(Shard, EventId, u32)>,
    /// When the last of these ends may go.
    pub(crate) keep_until: Timestamp,
}

impl FrameContents {
    /// Forgets everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let Self { runs, ends, keep_until } = self;
        runs.clear();
        ends.clear();
        *keep_until = Timestamp(0);
    }
}

/// Ends of jobs by id. They come nearly in order; those that do not are kept apart, so that each costs the same
/// whatever the order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndList {
    in_order: Vec<Entry>,
    late: BTreeMap<EventId, Entry>,
}

impl EndList {
    fn insert(&mut self, end: Entry) {
        if self.in_order.last().is_none_or(|last| last.id < end.id) {
            self.in_order.push(end);
        } else {
            self.late.insert(end.id, end);
        }
    }

    pub(super) fn get(&self, id: EventId) -> Option<Entry> {
        let found = self.in_order.binary_search_by_key(&id, |end| end.id).map(|at| self.in_order[at]);
        found.ok().or_else(|| self.late.get(&id).copied())
    }

    /// The first so many after an id, by id.
    pub(super) fn after(&self, after: EventId, limit: usize) -> Vec<Entry> {
        let from = self.in_order.partition_point(|end| end.id <= after);
        let late = self.late.range(after.next()..).map(|(_, end)| *end).take(limit);
        let mut found: Vec<Entry> = self.in_order[from..].iter().take(limit).copied().chain(late).collect();
        found.sort_unstable_by_key(|end| end.id);
        found.truncate(limit);
        found
    }

    /// All of them, by id.
    pub(super) fn all(&self) -> Vec<Entry> {
        self.after(EventId(0), usize::MAX)
    }
}

/// One shard in one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardContents {
    /// Records of events, by first id; empty if the segment has no event of the shard.
    pub(crate) runs: Vec<Entry>,
    /// Last id in the segment.
    pub(crate) last: EventId,
    pub(crate) ends: EndList,
}

/// The first run to look at for an id: the last one that begins at or before it, or the first of all.
pub(super) fn run_of(runs: &[Entry], id: EventId) -> usize {
    runs.partition_point(|run| run.id <= id).saturating_sub(1)
}

/// One segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentContents {
    pub(crate) shards: HashMap<Shard, ShardContents>,
    /// Time and offset of the first frame of each stretch of [`TIME_BYTES`].
    pub(crate) times: Vec<(Timestamp, u32)>,
    /// Time of the last frame.
    pub(crate) ended: Timestamp,
    /// When the last job end in it may go.
    pub(crate) keep_until: Timestamp,
}

impl SegmentContents {
    /// Takes up the frame at this offset, written at this time.
    pub(crate) fn add(&mut self, offset: u32, time: Timestamp, frame: &FrameContents) {
        if self.times.last().is_none_or(|(_, start)| offset - start >= TIME_BYTES) {
            self.times.push((time, offset));
        }
        for run in &frame.runs {
            let contents = self.shards.entry(run.shard).or_default();
            contents.runs.push(Entry { id: run.first, frame: offset, at: run.at });
            contents.last = run.last;
        }
        for ends in frame.ends.chunk_by(|(one, ..), (other, ..)| one == other) {
            let contents = self.shards.entry(ends[0].0).or_default();
            ends.iter().for_each(|(_, id, at)| {
                contents.ends.insert(Entry { id: *id, frame: offset, at: *at });
            });
        }
        self.ended = time;
        self.keep_until = self.keep_until.max(frame.keep_until);
    }
}

/// The offset from which on frames may be of this time or later. Frames before it are older.
pub(super) fn offset_since(times: &[(Timestamp, u32)], time: Timestamp) -> u32 {
    let stretch = times.partition_point(|(began, _)| *began < time).saturating_sub(1);
    times.get(stretch).map_or(0, |(_, offset)| *offset)
}

#[cfg(test)]
mod tests {
    use laneway_core::{Partition, StreamId};

    use super::*;

    const SHARD: Shard = Shard { stream: StreamId(1), partition: Partition(0) };

    #[test]
    fn ends_are_found_by_id_whatever_their_order() {
        let mut contents = SegmentContents::default();
        let ends = [5, 3, 9, 1].map(|id| (SHARD, EventId(id), 7));
        contents.add(4096, Timestamp(1), &FrameContents { ends: ends.to_vec(), ..FrameContents::default() });
        let ends = &contents.shards[&SHARD].ends;
        let ids =
            |after, limit| ends.after(EventId(after), limit).iter().map(|end| end.id.0).collect::<Vec<_>>();
        assert_eq!(ids(0, 9), [1, 3, 5, 9]);
        assert_eq!(ids(1, 2), [3, 5]);
        assert!((1..=9).all(|id| ends.get(EventId(id)).is_some() == [1, 3, 5, 9].contains(&id)));
    }

    #[test]
    fn every_record_of_a_shard_has_its_place() {
        let mut contents = SegmentContents::default();
        for frame in 0..3u32 {
            let first = u64::from(frame) * 10 + 1;
            let run = |first, at| Run { shard: SHARD, first: EventId(first), last: EventId(first + 4), at };
            let runs = vec![run(first, 0), run(first + 5, 90)];
            let added = FrameContents { runs, ..FrameContents::default() };
            contents.add(4096 + frame * TIME_BYTES, Timestamp(u64::from(frame)), &added);
        }
        let found = &contents.shards[&SHARD];
        assert_eq!((found.runs[0].id, found.last), (EventId(1), EventId(30)));
        let place = |id| found.runs[run_of(&found.runs, EventId(id))];
        assert_eq!((place(5).frame, place(5).at), (4096, 0));
        assert_eq!((place(6).frame, place(6).at), (4096, 90));
        assert_eq!((place(30).frame, place(30).at), (4096 + 2 * TIME_BYTES, 90));
        assert_eq!(offset_since(&contents.times, Timestamp(2)), 4096 + TIME_BYTES);
        assert_eq!(offset_since(&contents.times, Timestamp(0)), 4096);
        assert_eq!(contents.ended, Timestamp(2));
    }
}
