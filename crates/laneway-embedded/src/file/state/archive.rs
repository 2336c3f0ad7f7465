//! Durable events and job ends, found by id in the log.
//!
//! A reader touches the frames that hold what it wants and no others. Whether it may read files is its own choice
//! ([`Reach`]): nothing that holds the state's lock, and nothing on a thread of the runtime, reads one.

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_core::{Event, EventId, JobMark, Result, Shard, StoreError, Timestamp};

use super::contents::{Entry, offset_since};
use super::directory::{Directory, RunSource};
use super::footer::{Footers, SegmentTable};
use super::records::{EventsSection, RecordReader};
use crate::file::log::{Frame, LogError, LogReader, Position};
use crate::machine::StoredEnd;
use crate::machine::codec::Malformed;

/// How much is read at a time when the next frame wanted is near.
const AHEAD_BYTES: usize = 256 << 10;
/// How much is read of a frame whose length is not known.
const FRAME_BYTES: usize = 4 << 10;

/// How far a look-up may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The newest frames, and those read a short while ago.
    Memory,
    /// The files too.
    Files,
}

/// Why something was not found.
#[derive(Debug)]
pub(crate) enum FindError {
    /// It takes a file to tell.
    NotInMemory,
    /// A segment went meanwhile: look again.
    Moved,
    Store(StoreError),
}

impl From<StoreError> for FindError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<LogError> for FindError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Released { .. } => Self::Moved,
            error => Self::Store(read_error(error)),
        }
    }
}

pub(crate) type Found<T> = std::result::Result<T, FindError>;

/// The error of a read as callers of the store see it.
pub(crate) fn read_error(error: LogError) -> StoreError {
    match error {
        LogError::Io { action, path, source } => {
            StoreError::Down { reason: format!("could not {action} {}: {source}", path.display()) }
        }
        other => StoreError::Corrupt { what: other.to_string() },
    }
}

fn malformed(frame: &Frame, at: usize) -> FindError {
    FindError::Store(read_error(frame.corrupt(at, "a record of a valid frame makes no sense")))
}

/// Finds events and job ends. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    reader: LogReader,
    footers: Arc<Footers>,
    directory: Arc<Directory>,
}

impl Archive {
    pub(crate) fn new(reader: LogReader, footers: Arc<Footers>, directory: Arc<Directory>) -> Self {
        Self { reader, footers, directory }
    }

    pub(crate) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The events of a shard from an id on.
    pub(crate) fn events(&self, shard: Shard, from: EventId, reach: Reach) -> EventWalk<'_> {
        EventWalk {
            archive: self,
            shard,
            reach,
            next: from,
            places: VecDeque::new(),
            section: None,
            frame: None,
        }
    }

    /// Looks as often as segments go meanwhile.
    pub(crate) fn settled<T>(&self, look: impl Fn() -> Found<T>) -> Found<T> {
        loop {
            let version = self.directory.version();
            match look() {
                Err(FindError::Moved | FindError::Store(_)) if self.directory.version() != version => {}
                Err(FindError::Moved) => {
                    let what = "the log does not have what its footers say: records of events are missing";
                    return Err(FindError::Store(StoreError::Corrupt { what: what.to_owned() }));
                }
                found => return found,
            }
        }
    }

    /// One event.
    pub(crate) fn event(&self, shard: Shard, id: EventId, reach: Reach) -> Found<Option<Event>> {
        self.settled(|| {
            let mut walk = self.events(shard, id, reach);
            Ok(walk.next()?.filter(|event| event.id == id))
        })
    }

    /// The first event behind `trimmed` that joined at this time or later.
    pub(crate) fn first_since(
        &self,
        shard: Shard,
        time: Timestamp,
        trimmed: EventId,
        reach: Reach,
    ) -> Found<Option<EventId>> {
        self.settled(|| {
            let Some(source) = self.directory.runs_since(shard, time) else { return Ok(None) };
            let mut walk = self.events(shard, trimmed.next(), reach);
            walk.begin_since(source, time)?;
            // The few events before that time lie in one stretch of the log.
            while let Some(event) = walk.next()? {
                if event.time >= time {
                    return Ok(Some(event.id));
                }
            }
            Ok(None)
        })
    }

    /// The end of a job. Sealed segments up to `searched` are known not to have it.
    pub(crate) fn job_end(
        &self,
        shard: Shard,
        id: EventId,
        searched: u64,
        reach: Reach,
    ) -> Found<Option<StoredEnd>> {
        self.settled(|| {
            let sources = self.directory.job_end(shard, id, searched);
            if let Some((serial, place)) = sources.open {
                return self.read_end(serial, place, reach).map(Some);
            }
            for table in sources.sealed {
                if reach == Reach::Memory {
                    return Err(FindError::NotInMemory);
                }
                if let Some(place) = self.footers.job_end(&table, shard, id)? {
                    return self.read_end(table.serial, place, reach).map(Some);
                }
            }
            Ok(None)
        })
    }

    /// Ends of jobs after an id, by id.
    pub(crate) fn job_ends(
        &self,
        shard: Shard,
        after: EventId,
        limit: usize,
        reach: Reach,
    ) -> Found<Vec<StoredEnd>> {
        self.settled(|| {
            let (mut places, sealed) = self.directory.job_ends(shard, after, limit);
            if !sealed.is_empty() && reach == Reach::Memory {
                return Err(FindError::NotInMemory);
            }
            for table in sealed {
                let found = self.footers.job_ends(&table, shard, after, limit)?;
                places.extend(found.into_iter().map(|place| (table.serial, place)));
            }
            places.sort_by_key(|(_, place)| place.id);
            places.truncate(limit);
            places.into_iter().map(|(serial, place)| self.read_end(serial, place, reach)).collect()
        })
    }

    /// Ends of jobs in one sealed segment after an id, by id.
    pub(crate) fn ends_in(
        &self,
        table: &SegmentTable,
        shard: Shard,
        after: EventId,
        limit: usize,
    ) -> Found<Vec<StoredEnd>> {
        let places = self.footers.job_ends(table, shard, after, limit)?;
        places.into_iter().map(|place| self.read_end(table.serial, place, Reach::Files)).collect()
    }

    /// What makes jobs of these events, which ascend. Events that are not there are left out.
    pub(crate) fn job_marks(
        &self,
        shard: Shard,
        ids: &[EventId],
        reach: Reach,
    ) -> Found<Vec<(EventId, JobMark)>> {
        self.settled(|| {
            let mut marks = Vec::with_capacity(ids.len());
            let Some(first) = ids.first() else { return Ok(marks) };
            let mut walk = self.events(shard, *first, reach);
            for id in ids {
                walk.seek(*id);
                let found = walk.next_mark()?.filter(|(found, _)| found == id);
                marks.extend(found.and_then(|(id, job)| Some((id, job?))));
            }
            Ok(marks)
        })
    }

    fn frame(&self, position: Position, ahead: usize, reach: Reach) -> Found<Frame> {
        if let Some(frame) = self.reader.frame_in_memory(position) {
            return Ok(frame);
        }
        match reach {
            Reach::Memory => Err(FindError::NotInMemory),
            Reach::Files => Ok(self.reader.read_at(position, ahead)?),
        }
    }

    fn read_end(&self, serial: u64, place: Entry, reach: Reach) -> Found<StoredEnd> {
        let position = Position { serial, offset: u64::from(place.frame) };
        let frame = self.frame(position, FRAME_BYTES, reach)?;
        let at = place.at as usize;
        let stored = RecordReader::job_end(&frame.body, at).map_err(|Malformed| malformed(&frame, at))?;
        if stored.end.id != place.id {
            return Err(FindError::Store(read_error(frame.corrupt(at, "another job's end lies here"))));
        }
        Ok(stored.detached())
    }
}

/// The events of one shard in order, read from the frames that hold some.
pub(crate) struct EventWalk<'a> {
    archive: &'a Archive,
    shard: Shard,
    reach: Reach,
    /// The smallest id that is still wanted.
    next: EventId,
    /// Records that come next, with the first id of each.
    places: VecDeque<(u64, Entry)>,
    /// The record that is being read, and its frame.
    section: Option<EventsSection>,
    frame: Option<Frame>,
}

impl EventWalk<'_> {
    /// The event that was answered last, with this id, is wanted again.
    pub(crate) fn back_to(&mut self, id: EventId) {
        *self = self.archive.events(self.shard, id, self.reach);
    }

    /// Goes on with this id or the first one after it.
    pub(crate) fn seek(&mut self, id: EventId) {
        self.next = self.next.max(id);
        // The record at hand is of no use if the next one begins at or before the id.
        while self.places.front().is_some_and(|(_, place)| place.id <= id) {
            self.section = None;
            // Whether the last known record reaches that far is not known here: the directory knows.
            if self.places.len() == 1 {
                self.places.clear();
                return;
            }
            if self.places[1].1.id > id {
                return;
            }
            self.places.pop_front();
        }
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Found<Option<Event>> {
        self.next_anywhere(EventsSection::next_event, |event| event.id)
    }

    /// Id of the next event and what makes it a job.
    fn next_mark(&mut self) -> Found<Option<(EventId, Option<JobMark>)>> {
        self.next_anywhere(EventsSection::next_mark, |(id, _)| *id)
    }

    fn next_anywhere<T>(
        &mut self,
        decode: impl Fn(&mut EventsSection) -> std::result::Result<Option<T>, Malformed>,
        id: impl Fn(&T) -> EventId,
    ) -> Found<Option<T>> {
        if let Some(item) = self.next_item(&decode, &id)? {
            return Ok(Some(item));
        }
        if !self.find_places()? {
            return Ok(None);
        }
        // The directory answers records that reach this far, unless they went meanwhile.
        self.next_item(&decode, &id)?.map(Some).ok_or(FindError::Moved)
    }

    fn next_item<T>(
        &mut self,
        decode: impl Fn(&mut EventsSection) -> std::result::Result<Option<T>, Malformed>,
        id: impl Fn(&T) -> EventId,
    ) -> Found<Option<T>> {
        loop {
            while let Some(section) = &mut self.section {
                let item = decode(section).map_err(|Malformed| self.unreadable())?;
                match item {
                    Some(item) if id(&item) >= self.next => {
                        self.next = id(&item).next();
                        return Ok(Some(item));
                    }
                    Some(_) => {}
                    None => self.section = None,
                }
            }
            let Some((serial, place)) = self.places.pop_front() else { return Ok(None) };
            self.open(serial, place)?;
        }
    }

    fn unreadable(&self) -> FindError {
        self.frame.as_ref().map_or(FindError::Moved, |frame| malformed(frame, 0))
    }

    fn open(&mut self, serial: u64, place: Entry) -> Found<()> {
        let position = Position { serial, offset: u64::from(place.frame) };
        if self.frame.as_ref().is_none_or(|frame| frame.position != position) {
            let near = |(next, after): &(u64, Entry)| {
                *next == serial && ((after.frame - place.frame) as usize) < AHEAD_BYTES
            };
            let ahead = if self.places.front().is_some_and(near) { AHEAD_BYTES } else { FRAME_BYTES };
            self.frame = Some(self.archive.frame(position, ahead, self.reach)?);
        }
        let Some(frame) = &self.frame else { return Err(FindError::Moved) };
        let (at, next) = (place.at as usize, self.next);
        let section = RecordReader::events_at(&frame.body, at, self.shard).and_then(|mut section| {
            if place.id < next {
                section.skip_to(next)?;
            }
            Ok(section)
        });
        self.section = Some(section.map_err(|Malformed| malformed(frame, at))?);
        Ok(())
    }

    /// Asks where the next records are; false if there are none.
    fn find_places(&mut self) -> Found<bool> {
        let Some(source) = self.archive.directory.runs(self.shard, self.next) else { return Ok(false) };
        let (serial, runs) = match source {
            RunSource::Open(serial, runs) => (serial, runs),
            RunSource::Sealed(_) if self.reach == Reach::Memory => return Err(FindError::NotInMemory),
            RunSource::Sealed(table) => {
                (table.serial, self.archive.footers.runs(&table, self.shard, self.next)?)
            }
        };
        self.places.extend(runs.into_iter().map(|run| (serial, run)));
        Ok(!self.places.is_empty())
    }

    /// Begins where events of this time or later may be, in the first segment that may have some.
    fn begin_since(&mut self, source: RunSource, time: Timestamp) -> Found<()> {
        let first = match source {
            RunSource::Open(_, runs) => runs.first().map(|run| run.id),
            RunSource::Sealed(_) if self.reach == Reach::Memory => return Err(FindError::NotInMemory),
            RunSource::Sealed(table) => {
                let offset = offset_since(&table.times, time);
                let runs = self.archive.footers.runs_at(&table, self.shard, offset)?;
                // All its events are older: the next one of the shard lies in a later segment.
                let behind = table.shard(self.shard).map(|found| found.runs.last.next());
                runs.first().map(|run| run.id).or(behind)
            }
        };
        self.next = self.next.max(first.unwrap_or_default());
        Ok(())
    }
}

/// Waits for nothing and reads no file.
pub(crate) fn in_memory<T>(found: Found<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(FindError::NotInMemory | FindError::Moved) => Ok(None),
        Err(FindError::Store(error)) => Err(error),
    }
}

/// What a look-up that reads files came to.
pub(crate) fn from_files<T>(found: Found<T>) -> Result<T> {
    found.map_err(|error| match error {
        FindError::Store(error) => error,
        FindError::NotInMemory | FindError::Moved => {
            StoreError::Down { reason: "a look-up in the files of the log did not end".to_owned() }
        }
    })
}
