//! Which segments hold events and job ends of a shard: those that take frames or have no footer yet in full, the sealed
//! ones by the tables of their footers.
//!
//! It has a lock of its own. The write thread adds a frame when it is durable, readers copy a few entries out; nobody
//! reads a file here.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use laneway_core::{EventId, Shard, Timestamp};
use parking_lot::RwLock;

use super::contents::{Entry, FrameContents, SegmentContents, offset_since, run_of};
use super::footer::SegmentTable;
use crate::file::log::Position;

/// How many runs of an open segment one look copies out.
const RUNS_AT_ONCE: usize = 256;

/// All segments.
#[derive(Debug, Default)]
pub(crate) struct Directory(RwLock<Segments>);

#[derive(Debug, Default)]
struct Segments {
    /// A segment is shared only while its footer is written, and then it takes no more frames.
    open: BTreeMap<u64, Arc<SegmentContents>>,
    sealed: BTreeMap<u64, Arc<SegmentTable>>,
    /// Which sealed segments have something of a shard, ascending.
    of_shard: HashMap<Shard, SerialLists>,
    /// Counts the changes of the sealed segments.
    version: u64,
}

#[derive(Debug, Default)]
struct SerialLists {
    events: Vec<u64>,
    ends: Vec<u64>,
}

/// Where runs of a shard are to be read on.
#[derive(Debug)]
pub(crate) enum RunSource {
    /// In a sealed segment: its footer knows where.
    Sealed(Arc<SegmentTable>),
    /// In an open one, at these places.
    Open(u64, Vec<Entry>),
}

/// Where the end of a job may be.
#[derive(Debug)]
pub(crate) struct EndSources {
    pub(crate) open: Option<(u64, Entry)>,
    /// Newest first.
    pub(crate) sealed: Vec<Arc<SegmentTable>>,
}

impl Directory {
    /// Takes up a frame that is durable.
    pub(crate) fn add(&self, position: Position, time: Timestamp, frame: &FrameContents) {
        let offset = u32::try_from(position.offset).expect("segments are at most 1 GiB");
        let mut segments = self.0.write();
        let contents = segments.open.entry(position.serial).or_default();
        Arc::make_mut(contents).add(offset, time, frame);
    }

    /// Takes up a segment that has no frame yet.
    pub(crate) fn add_segment(&self, serial: u64) {
        self.0.write().open.entry(serial).or_default();
    }

    /// Where the event with this id is, or the first one after it.
    pub(crate) fn runs(&self, shard: Shard, id: EventId) -> Option<RunSource> {
        let segments = self.0.read();
        if let Some(lists) = segments.of_shard.get(&shard) {
            let at = lists.events.partition_point(|serial| segments.last_event(*serial, shard) < id);
            if let Some(serial) = lists.events.get(at) {
                return Some(RunSource::Sealed(Arc::clone(&segments.sealed[serial])));
            }
        }
        segments.open.iter().find_map(|(serial, contents)| {
            let found = contents.shards.get(&shard).filter(|found| found.last >= id)?;
            let from = run_of(&found.runs, id);
            let runs: Vec<Entry> = found.runs[from..].iter().take(RUNS_AT_ONCE).copied().collect();
            (!runs.is_empty()).then_some(RunSource::Open(*serial, runs))
        })
    }

    /// The first segment with events of the shard that may be of this time or later. The runs of an open one begin where
    /// such events may be.
    pub(crate) fn runs_since(&self, shard: Shard, time: Timestamp) -> Option<RunSource> {
        let segments = self.0.read();
        if let Some(lists) = segments.of_shard.get(&shard) {
            let is_old = |serial: &u64| segments.sealed[serial].ended < time;
            if let Some(serial) = lists.events.get(lists.events.partition_point(is_old)) {
                return Some(RunSource::Sealed(Arc::clone(&segments.sealed[serial])));
            }
        }
        segments.open.iter().filter(|(_, contents)| contents.ended >= time).find_map(|(serial, contents)| {
            let runs = &contents.shards.get(&shard)?.runs;
            let offset = offset_since(&contents.times, time);
            let from = runs.partition_point(|run| run.frame < offset);
            runs.get(from).map(|run| RunSource::Open(*serial, vec![*run]))
        })
    }

    /// The newest sealed segment, zero if there is none. Segments are sealed in order, and nothing joins a sealed one.
    pub(crate) fn newest_sealed(&self) -> u64 {
        self.0.read().sealed.last_key_value().map_or(0, |(serial, _)| *serial)
    }

    /// Segments that may hold the end of this job, without sealed ones up to `searched`. An open one answers at once.
    pub(crate) fn job_end(&self, shard: Shard, id: EventId, searched: u64) -> EndSources {
        let segments = self.0.read();
        let open = segments.open.iter().rev().find_map(|(serial, contents)| {
            contents.shards.get(&shard)?.ends.get(id).map(|end| (*serial, end))
        });
        let unsearched = segments.sealed_ends(shard).take_while(|table| table.serial > searched);
        let sealed = unsearched.filter(|table| {
            let ends = table.shard(shard).map(|found| found.ends);
            ends.is_some_and(|ends| (ends.first..=ends.last).contains(&id))
        });
        EndSources { open, sealed: sealed.collect() }
    }

    /// Ends of jobs after an id in the open segments, and the sealed segments that may have some.
    pub(crate) fn job_ends(
        &self,
        shard: Shard,
        after: EventId,
        limit: usize,
    ) -> (Vec<(u64, Entry)>, Vec<Arc<SegmentTable>>) {
        let segments = self.0.read();
        let mut open = Vec::new();
        for (serial, contents) in &segments.open {
            let ends = contents.shards.get(&shard).map(|found| found.ends.after(after, limit));
            open.extend(ends.unwrap_or_default().into_iter().map(|end| (*serial, end)));
        }
        let sealed = segments.sealed_ends(shard);
        let sealed = sealed.filter(|table| table.shard(shard).is_some_and(|found| found.ends.last > after));
        (open, sealed.collect())
    }

    /// The oldest event of a shard.
    pub(crate) fn first_event(&self, shard: Shard) -> Option<EventId> {
        match self.runs(shard, EventId(0))? {
            RunSource::Sealed(table) => Some(table.shard(shard)?.runs.first),
            RunSource::Open(_, runs) => runs.first().map(|run| run.id),
        }
    }

    /// Counts the changes of the sealed segments: what was found in them may have moved when it differs.
    pub(crate) fn version(&self) -> u64 {
        self.0.read().version
    }

    /// The oldest segment without a footer, if it lies before this serial.
    pub(crate) fn first_open(&self, before: u64) -> Option<(u64, Arc<SegmentContents>)> {
        let segments = self.0.read();
        let (serial, contents) = segments.open.first_key_value().filter(|(serial, _)| **serial < before)?;
        Some((*serial, Arc::clone(contents)))
    }

    /// A segment has a footer now. Answers what it was known by before, to be dropped without the lock.
    pub(crate) fn seal(&self, table: SegmentTable) -> Option<Arc<SegmentContents>> {
        let mut segments = self.0.write();
        let open = segments.open.remove(&table.serial);
        for found in &table.shards {
            let lists = segments.of_shard.entry(found.shard).or_default();
            if !found.runs.is_empty() {
                insert(&mut lists.events, table.serial);
            }
            if !found.ends.is_empty() {
                insert(&mut lists.ends, table.serial);
            }
        }
        segments.sealed.insert(table.serial, Arc::new(table));
        segments.version += 1;
        open
    }

    /// All sealed segments, oldest first.
    pub(crate) fn sealed(&self) -> Vec<Arc<SegmentTable>> {
        self.0.read().sealed.values().cloned().collect()
    }

    /// A sealed segment is given back.
    pub(crate) fn remove(&self, serial: u64) {
        let mut segments = self.0.write();
        let Some(table) = segments.sealed.remove(&serial) else { return };
        for found in &table.shards {
            let Some(lists) = segments.of_shard.get_mut(&found.shard) else { continue };
            remove(&mut lists.events, serial);
            remove(&mut lists.ends, serial);
            if lists.events.is_empty() && lists.ends.is_empty() {
                segments.of_shard.remove(&found.shard);
            }
        }
        segments.version += 1;
    }
}

impl Segments {
    /// Last event of a shard in a sealed segment that has some.
    fn last_event(&self, serial: u64, shard: Shard) -> EventId {
        self.sealed[&serial].shard(shard).map_or(EventId(0), |found| found.runs.last)
    }

    /// Sealed segments with ends of jobs of a shard, newest first.
    fn sealed_ends(&self, shard: Shard) -> impl Iterator<Item = Arc<SegmentTable>> {
        let serials = self.of_shard.get(&shard).map(|lists| &lists.ends[..]).unwrap_or_default();
        serials.iter().rev().map(|serial| Arc::clone(&self.sealed[serial]))
    }
}

fn insert(serials: &mut Vec<u64>, serial: u64) {
    if let Err(at) = serials.binary_search(&serial) {
        serials.insert(at, serial);
    }
}

fn remove(serials: &mut Vec<u64>, serial: u64) {
    if let Ok(at) = serials.binary_search(&serial) {
        serials.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::{Partition, StreamId};

    use super::super::contents::Run;
    use super::*;
    use crate::file::disk::RealDisk;
    use crate::file::state::Footers;

    const SHARD: Shard = Shard { stream: StreamId(1), partition: Partition(0) };
    const OTHER: Shard = Shard { stream: StreamId(2), partition: Partition(0) };

    fn frame(shard: Shard, first: u64, last: u64) -> FrameContents {
        let run = Run { shard, first: EventId(first), last: EventId(last), at: 7 };
        FrameContents { runs: vec![run], ..FrameContents::default() }
    }

    /// Serial of the segment in which an id is looked for.
    fn serial(source: Option<RunSource>) -> Option<u64> {
        source.map(|source| match source {
            RunSource::Sealed(table) => table.serial,
            RunSource::Open(serial, _) => serial,
        })
    }

    #[test]
    fn only_segments_of_the_shard_are_looked_at_and_they_are_found_by_id_and_time() {
        let folder = tempfile::tempdir().unwrap();
        let footers = Footers::open(Arc::new(RealDisk), folder.path(), 9).unwrap();
        let directory = Directory::default();
        let add = |serial, time, frame: &FrameContents| {
            directory.add(Position { serial, offset: 4096 }, Timestamp(time), frame);
        };
        for number in 1..=9 {
            add(number, number * 10, &frame(OTHER, number, number));
        }
        add(1, 10, &frame(SHARD, 1, 4));
        add(5, 50, &frame(SHARD, 5, 8));
        add(9, 90, &frame(SHARD, 9, 9));
        let check = || {
            let found = [0, 1, 4, 5, 8, 9, 10].map(|id| serial(directory.runs(SHARD, EventId(id))));
            assert_eq!(found, [Some(1), Some(1), Some(1), Some(5), Some(5), Some(9), None]);
            let since = [0, 11, 50, 51, 91].map(|time| serial(directory.runs_since(SHARD, Timestamp(time))));
            assert_eq!(since, [Some(1), Some(5), Some(5), Some(9), None]);
            assert_eq!(directory.first_event(SHARD), Some(EventId(1)));
        };
        check();
        while let Some((serial, contents)) = directory.first_open(9) {
            drop(directory.seal(footers.write(serial, 0, &contents).unwrap()));
        }
        check();
        for serial in 1..=4 {
            directory.remove(serial);
        }
        assert_eq!(directory.first_event(SHARD), Some(EventId(5)));
        assert_eq!(serial(directory.runs(SHARD, EventId(2))), Some(5));
        assert_eq!(directory.version(), 8 + 4);
    }
}
