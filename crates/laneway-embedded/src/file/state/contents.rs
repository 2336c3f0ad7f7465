//! Where in a segment the events and job ends of each shard lie.
//!
//! There is no entry per event: a shard has one place per [`CHUNK_BYTES`] of log, and a reader walks from there.
//! Only of the newest frames each shard knows every one: whoever submitted an event asks for it shortly afterwards.
//! Ends of jobs are read at random, so each has an entry, kept in memory until the segment is sealed and in the
//! segment's footer afterwards.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use laneway_core::{EventId, Shard, Timestamp};

use crate::file::log::Position;

/// How much of the log lies between two places of a shard: what a reader may have to walk.
const CHUNK_BYTES: u32 = 128 << 10;
/// How many of the newest frames of a shard are known one by one.
const NEWEST_FRAMES: usize = 32;

/// The end of a job: frame offset in the segment, and the record's offset in the frame's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndPlace {
    pub(crate) id: EventId,
    pub(crate) frame: u32,
    pub(crate) at: u32,
}

/// What one frame adds to its segment.
#[derive(Debug, Default)]
pub(crate) struct FrameContents {
    /// Shard, first and last id of each run of events.
    pub(crate) runs: Vec<(Shard, EventId, EventId)>,
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

/// One shard in one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardContents {
    /// First id and frame offset, one per chunk; empty if the segment has no event of the shard.
    pub(crate) places: Vec<(EventId, u32)>,
    /// Last id in the segment.
    pub(crate) last: EventId,
    /// Ends of jobs, by id.
    pub(crate) ends: Vec<EndPlace>,
}

impl ShardContents {
    pub(crate) fn first(&self) -> Option<EventId> {
        self.places.first().map(|(id, _)| *id)
    }

    /// The frame offset to walk from to find this id.
    pub(crate) fn place(&self, id: EventId) -> Option<u32> {
        let after = self.places.partition_point(|(first, _)| *first <= id);
        after.checked_sub(1).map(|at| self.places[at].1)
    }

    /// Ends come nearly in order of ids, so the place is near the back.
    fn insert_end(&mut self, end: EndPlace) {
        let at = self.ends.iter().rposition(|found| found.id < end.id).map_or(0, |at| at + 1);
        self.ends.insert(at, end);
    }
}

/// One segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentContents {
    pub(crate) shards: BTreeMap<Shard, ShardContents>,
    /// Time and offset of the first frame of each chunk.
    pub(crate) times: Vec<(Timestamp, u32)>,
    /// When the last job end in it may go.
    pub(crate) keep_until: Timestamp,
}

impl SegmentContents {
    /// Takes up the frame at this offset, written at this time.
    pub(crate) fn add(&mut self, offset: u32, time: Timestamp, frame: &FrameContents) {
        if self.times.last().is_none_or(|(_, start)| offset - start >= CHUNK_BYTES) {
            self.times.push((time, offset));
        }
        let chunk = self.times.last().map_or(0, |(_, start)| *start);
        for (shard, first, last) in &frame.runs {
            let contents = self.shards.entry(*shard).or_default();
            if contents.places.last().is_none_or(|(_, place)| *place < chunk) {
                contents.places.push((*first, offset));
            }
            contents.last = *last;
        }
        for ends in frame.ends.chunk_by(|(one, ..), (other, ..)| one == other) {
            let contents = self.shards.entry(ends[0].0).or_default();
            ends.iter()
                .for_each(|(_, id, at)| contents.insert_end(EndPlace { id: *id, frame: offset, at: *at }));
        }
        self.keep_until = self.keep_until.max(frame.keep_until);
    }

    /// What stays in memory after sealing.
    pub(crate) fn summary(&self) -> Summary {
        let shards = self.shards.iter().map(|(shard, contents)| {
            let ends =
                contents.ends.first().zip(contents.ends.last()).map(|(first, last)| (first.id, last.id));
            (*shard, ShardSummary { events: contents.first().map(|first| (first, contents.last)), ends })
        });
        let began = self.times.first().map_or(Timestamp(0), |(time, _)| *time);
        Summary { shards: shards.collect(), began, keep_until: self.keep_until }
    }
}

/// One shard in a sealed segment: first and last ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShardSummary {
    pub(crate) events: Option<(EventId, EventId)>,
    pub(crate) ends: Option<(EventId, EventId)>,
}

/// A sealed segment, in as little memory as finding things in it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) shards: HashMap<Shard, ShardSummary>,
    pub(crate) began: Timestamp,
    pub(crate) keep_until: Timestamp,
}

/// All segments: the open ones in full, the sealed ones in summary.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) open: BTreeMap<u64, SegmentContents>,
    pub(crate) sealed: BTreeMap<u64, Summary>,
    newest: Newest,
}

/// The newest frames of each shard in the newest segment: first id and offset.
#[derive(Debug, Default)]
struct Newest {
    serial: u64,
    frames: HashMap<Shard, VecDeque<(EventId, u32)>>,
}

impl Newest {
    fn add(&mut self, serial: u64, offset: u32, frame: &FrameContents) {
        if self.serial != serial {
            *self = Self { serial, frames: HashMap::new() };
        }
        for (shard, first, _) in &frame.runs {
            let frames = self.frames.entry(*shard).or_default();
            // A frame may have several runs of a shard: it begins with the first.
            if frames.back().is_some_and(|(_, known)| *known == offset) {
                continue;
            }
            if frames.len() == NEWEST_FRAMES {
                frames.pop_front();
            }
            frames.push_back((*first, offset));
        }
    }

    /// The frame that has this id, if it is one of these and not beyond the last.
    fn place(&self, shard: Shard, id: EventId) -> Option<Position> {
        let frames = self.frames.get(&shard)?;
        let at = frames.partition_point(|(first, _)| *first <= id).checked_sub(1)?;
        Some(Position { serial: self.serial, offset: u64::from(frames[at].1) })
    }
}

/// Where to look for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Walk from here.
    At(Position),
    /// Ask the footer of this segment.
    Footer(u64),
}

impl Contents {
    /// Takes up a frame.
    pub(crate) fn add(&mut self, position: Position, time: Timestamp, frame: &FrameContents) {
        let offset = u32::try_from(position.offset).expect("segments are at most 1 GiB");
        self.open.entry(position.serial).or_default().add(offset, time, frame);
        self.newest.add(position.serial, offset, frame);
    }

    /// Where the event with this id is, or the first one after it.
    pub(crate) fn event(&self, shard: Shard, id: EventId) -> Option<Place> {
        if let Some(found) = self.newest.place(shard, id)
            && let Some(open) = self.open.get(&found.serial)
            && open.shards.get(&shard).is_some_and(|contents| contents.last >= id)
        {
            return Some(Place::At(found));
        }
        let sealed = self.sealed.iter().filter_map(|(serial, summary)| {
            let (_, last) = summary.shards.get(&shard)?.events?;
            (last >= id).then_some(*serial)
        });
        if let Some(serial) = sealed.min() {
            return Some(Place::Footer(serial));
        }
        self.open.iter().find_map(|(serial, contents)| {
            let found =
                contents.shards.get(&shard).filter(|found| found.last >= id && found.first().is_some())?;
            let offset = found.place(id).or_else(|| found.places.first().map(|(_, offset)| *offset))?;
            Some(Place::At(Position { serial: *serial, offset: u64::from(offset) }))
        })
    }

    /// Where frames of this time or later begin; walk from there. `None` if all are older.
    pub(crate) fn since(&self, time: Timestamp) -> Option<Place> {
        let open = self.open.iter().rev().find_map(|(serial, contents)| {
            let after = contents.times.partition_point(|(began, _)| *began < time);
            let offset = contents.times.get(after.checked_sub(1)?)?.1;
            Some(Place::At(Position { serial: *serial, offset: u64::from(offset) }))
        });
        let sealed = || self.sealed.iter().rev().find(|(_, summary)| summary.began < time);
        let first = || self.sealed.keys().next().or(self.open.keys().next()).copied();
        open.or_else(|| sealed().map(|(serial, _)| Place::Footer(*serial)))
            .or_else(|| first().map(|serial| Place::At(Position { serial, offset: 0 })))
    }

    /// Segments that may hold the end of this job, newest first. An open one answers at once.
    pub(crate) fn job_end(&self, shard: Shard, id: EventId) -> JobEndPlaces {
        let open = self.open.iter().rev().find_map(|(serial, contents)| {
            let ends = &contents.shards.get(&shard)?.ends;
            let at = ends.binary_search_by_key(&id, |end| end.id).ok()?;
            Some((*serial, ends[at]))
        });
        let sealed = self.sealed.iter().rev().filter(|(_, summary)| {
            let ends = summary.shards.get(&shard).and_then(|found| found.ends);
            ends.is_some_and(|(first, last)| (first..=last).contains(&id))
        });
        JobEndPlaces { open, sealed: sealed.map(|(serial, _)| *serial).collect() }
    }

    /// Ends of jobs after an id in the open segments, and the sealed segments that may have some.
    pub(crate) fn job_ends(
        &self,
        shard: Shard,
        after: EventId,
        limit: usize,
    ) -> (Vec<(u64, EndPlace)>, Vec<u64>) {
        let mut open = Vec::new();
        for (serial, contents) in &self.open {
            let ends = contents.shards.get(&shard).map(|found| &found.ends[..]).unwrap_or_default();
            let from = ends.partition_point(|end| end.id <= after);
            open.extend(ends[from..].iter().take(limit).map(|end| (*serial, *end)));
        }
        let sealed = self.sealed.iter().filter(|(_, summary)| {
            let ends = summary.shards.get(&shard).and_then(|found| found.ends);
            ends.is_some_and(|(_, last)| last > after)
        });
        (open, sealed.map(|(serial, _)| *serial).collect())
    }
}

/// Where the end of a job may be.
#[derive(Debug)]
pub(crate) struct JobEndPlaces {
    pub(crate) open: Option<(u64, EndPlace)>,
    pub(crate) sealed: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use laneway_core::{Partition, StreamId};

    use super::*;

    const SHARD: Shard = Shard { stream: StreamId(1), partition: Partition(0) };

    fn frame(first: u64, last: u64, ends: &[u64]) -> FrameContents {
        FrameContents {
            runs: vec![(SHARD, EventId(first), EventId(last))],
            ends: ends.iter().map(|id| (SHARD, EventId(*id), 7)).collect(),
            keep_until: Timestamp(last),
        }
    }

    #[test]
    fn an_id_is_looked_for_from_the_last_place_at_or_before_it() {
        let mut contents = Contents::default();
        for (index, first) in [1u64, 11, 21].into_iter().enumerate() {
            let offset = 4096 + index as u64 * u64::from(CHUNK_BYTES);
            contents.add(Position { serial: 1, offset }, Timestamp(first), &frame(first, first + 9, &[]));
        }
        contents.add(Position { serial: 2, offset: 4096 }, Timestamp(31), &frame(31, 40, &[]));
        let place = |id| match contents.event(SHARD, EventId(id)) {
            Some(Place::At(position)) => Some((position.serial, position.offset)),
            _ => None,
        };
        let chunk = u64::from(CHUNK_BYTES);
        assert_eq!(place(1), Some((1, 4096)));
        assert_eq!(place(20), Some((1, 4096 + chunk)));
        assert_eq!(place(30), Some((1, 4096 + 2 * chunk)));
        assert_eq!(place(31), Some((2, 4096)));
        assert_eq!(place(41), None);
    }

    #[test]
    fn newest_frames_are_known_one_by_one_in_bounded_room() {
        let mut contents = Contents::default();
        let frames = 3 * NEWEST_FRAMES as u64;
        for number in 0..frames {
            let mut frame = frame(10 * number + 1, 10 * number + 4, &[]);
            // The shard comes back in the same frame.
            frame.runs.push((SHARD, EventId(10 * number + 5), EventId(10 * number + 10)));
            contents.add(Position { serial: 1, offset: 4096 + number }, Timestamp(1), &frame);
        }
        let place = |contents: &Contents, id| contents.event(SHARD, EventId(id));
        let at = |serial, number| Some(Place::At(Position { serial, offset: 4096 + number }));
        assert_eq!(place(&contents, 10 * frames), at(1, frames - 1));
        assert_eq!(place(&contents, 10 * frames - 19), at(1, frames - 2));
        assert_eq!(place(&contents, 10 * frames + 1), None);
        assert_eq!(place(&contents, 15), at(1, 0), "an older one is walked to from the place of its chunk");
        assert_eq!(contents.newest.frames[&SHARD].len(), NEWEST_FRAMES);
        let next = frame(10 * frames + 1, 10 * frames + 9, &[]);
        contents.add(Position { serial: 2, offset: 4096 }, Timestamp(2), &next);
        assert_eq!(place(&contents, 10 * frames + 9), at(2, 0));
        assert_eq!(place(&contents, 10 * frames), at(1, 0), "of the newest segment only");
    }

    #[test]
    fn ends_are_found_by_id_whatever_their_order() {
        let mut contents = SegmentContents::default();
        contents.add(4096, Timestamp(1), &frame(1, 9, &[5, 3, 9, 1]));
        let ids: Vec<u64> = contents.shards[&SHARD].ends.iter().map(|end| end.id.0).collect();
        assert_eq!(ids, [1, 3, 5, 9]);
    }
}
