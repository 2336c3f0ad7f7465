//! Finding events and job ends in the log: a place from the contents, then a walk over frames.

use laneway_core::{Event, EventId, JobMark, Result, Shard, StoreError, Timestamp};

use super::contents::{EndPlace, Place};
use super::file_state::FileState;
use super::footer::Footers;
use super::records::RecordReader;
use crate::file::log::{Frame, LogError, LogReader, Position};
use crate::machine::StoredEnd;
use crate::machine::codec::Malformed;

/// How much of the log a walk reads at a time.
const WALK_BYTES: usize = 256 << 10;
/// How much a walk for one event reads first; twice as much every next time. Mostly the first frame has it.
const FIRST_BYTES: usize = 4 << 10;
/// From how far ahead it is better to look an id up than to walk on.
pub(crate) const FAR_IDS: u64 = 4096;

/// The error of a read as callers of the store see it.
pub(crate) fn read_error(error: LogError) -> StoreError {
    match error {
        LogError::Io { action, path, source } => {
            StoreError::Down { reason: format!("could not {action} {}: {source}", path.display()) }
        }
        other => StoreError::Corrupt { what: other.to_string() },
    }
}

fn senseless(frame: &Frame) -> StoreError {
    read_error(frame.corrupt(0, "a record of a valid frame makes no sense"))
}

/// The frame from which to walk for an id.
pub(crate) fn resolve(
    footers: &Footers,
    place: Place,
    shard: Shard,
    id: EventId,
) -> Result<Option<Position>> {
    let serial = match place {
        Place::At(position) => return Ok(Some(position)),
        Place::Footer(serial) => serial,
    };
    let footer = match footers.get(serial) {
        // A trim was faster: whoever asked looks again.
        Err(_) if !footers.has(serial) => return Err(StoreError::Trimmed { shard, first: EventId(0) }),
        footer => footer?,
    };
    let Some(contents) = footer.contents.shards.get(&shard) else { return Ok(None) };
    let offset = contents.place(id).or_else(|| contents.places.first().map(|(_, offset)| *offset));
    Ok(offset.map(|offset| Position { serial, offset: u64::from(offset) }))
}

/// How far a walk will go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// To one event, which is near.
    Near,
    /// Through many.
    Long,
}

/// Walks frames from a place on until `visit` says that it is done.
fn walk(
    reader: &LogReader,
    from: Position,
    shard: Shard,
    how: Walk,
    mut visit: impl FnMut(&Frame) -> Result<bool>,
) -> Result<()> {
    let mut position = from;
    let mut bytes = if how == Walk::Near { FIRST_BYTES } else { WALK_BYTES };
    loop {
        let frames = match reader.frames_from(position, bytes) {
            Ok(frames) => frames,
            // A trim was faster than this walk: whoever asked looks again and learns where the shard begins now.
            Err(LogError::Released { .. }) => return Err(StoreError::Trimmed { shard, first: EventId(0) }),
            Err(error) => return Err(read_error(error)),
        };
        let Some(last) = frames.last() else { return Ok(()) };
        position = last.end().position;
        bytes = (2 * bytes).min(WALK_BYTES);
        for frame in &frames {
            if visit(frame)? {
                return Ok(());
            }
        }
    }
}

/// Calls `visit` for the events of a shard from `from` on, in order, with the place of their frame, until it
/// says that it has enough.
pub(crate) fn events_from(
    reader: &LogReader,
    from: Position,
    shard: Shard,
    how: Walk,
    mut visit: impl FnMut(Event, Position) -> bool,
) -> Result<()> {
    walk(reader, from, shard, how, |frame| {
        let mut records = RecordReader::new(frame.body.clone());
        while let Some(section) = records.next_events(shard).map_err(|Malformed| senseless(frame))? {
            for event in section.events() {
                if visit(event.map_err(|Malformed| senseless(frame))?, frame.position) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    })
}

/// Adds what makes jobs of these ids, which ascend, walking from a place on. Stops when the next id is far ahead,
/// and answers how many ids it dealt with and where it stopped.
pub(crate) fn job_marks(
    reader: &LogReader,
    from: Position,
    shard: Shard,
    ids: &[EventId],
    marks: &mut Vec<(EventId, JobMark)>,
) -> Result<(usize, Option<(EventId, Position)>)> {
    let (mut done, mut stopped) = (0, None);
    walk(reader, from, shard, Walk::Long, |frame| {
        let mut records = RecordReader::new(frame.body.clone());
        while let Some(section) = records.next_events(shard).map_err(|Malformed| senseless(frame))? {
            for mark in section.marks() {
                let (id, job) = mark.map_err(|Malformed| senseless(frame))?;
                while ids.get(done).is_some_and(|wanted| *wanted < id) {
                    done += 1;
                }
                let Some(wanted) = ids.get(done) else { return Ok(true) };
                if *wanted == id {
                    marks.extend(job.map(|job| (id, job)));
                    stopped = Some((id, frame.position));
                } else if wanted.0 - id.0 > FAR_IDS {
                    return Ok(true);
                }
            }
        }
        Ok(done >= ids.len())
    })?;
    let reached = stopped.map_or(0, |(id, _)| ids.partition_point(|wanted| *wanted <= id));
    Ok((done.max(reached), stopped))
}

/// One event.
pub(super) fn event(state: &FileState, shard: Shard, id: EventId) -> Result<Option<Event>> {
    let Some(place) = state.contents.event(shard, id) else { return Ok(None) };
    let Some(from) = resolve(state.footers(), place, shard, id)? else { return Ok(None) };
    let mut found = None;
    events_from(state.reader(), from, shard, Walk::Near, |event, _| {
        let reached = event.id >= id;
        found = (event.id == id).then_some(event);
        reached
    })?;
    Ok(found)
}

/// The first event of a shard that joined at this time or later.
pub(super) fn first_since(state: &FileState, shard: Shard, time: Timestamp) -> Result<Option<EventId>> {
    let from = match state.contents.since(time) {
        None => Position::START,
        Some(Place::At(position)) => position,
        Some(Place::Footer(serial)) => {
            let times = &state.footers().get(serial)?.contents.times;
            let chunk = times.partition_point(|(began, _)| *began < time).saturating_sub(1);
            Position { serial, offset: times.get(chunk).map_or(0, |(_, offset)| u64::from(*offset)) }
        }
    };
    let Some(info) = state.shards.get(&shard) else { return Ok(None) };
    let (trimmed, head) = (info.trimmed, info.head);
    // Nothing of an idle shard is young enough: no need to walk over everybody else's events.
    if info.time < time || trimmed >= head {
        return Ok(None);
    }
    let mut found = None;
    let from = if from.offset == 0 { Position::START } else { from };
    events_from(state.reader(), from, shard, Walk::Long, |event, _| {
        let matches = event.time >= time && event.id > trimmed;
        found = matches.then_some(event.id);
        matches || event.id >= head
    })?;
    // Events of a group that is not durable yet are the newest of all.
    let durable = state.published.head(shard).unwrap_or(trimmed);
    Ok(found.or((head > durable).then(|| durable.next())))
}

fn read_end(reader: &LogReader, serial: u64, place: EndPlace) -> Result<StoredEnd> {
    let position = Position { serial, offset: u64::from(place.frame) };
    let frame = reader.read_at(position).map_err(read_error)?;
    let stored =
        RecordReader::job_end(&frame.body, place.at as usize).map_err(|Malformed| senseless(&frame))?;
    if stored.end.id != place.id {
        return Err(read_error(frame.corrupt(place.at as usize, "another job's end lies here")));
    }
    Ok(stored)
}

/// The end of a job.
pub(super) fn job_end(state: &FileState, shard: Shard, id: EventId) -> Result<Option<StoredEnd>> {
    let places = state.contents.job_end(shard, id);
    if let Some((serial, place)) = places.open {
        return read_end(state.reader(), serial, place).map(Some);
    }
    for serial in places.sealed {
        if let Some(place) = state.footers().get(serial)?.job_end(shard, id)? {
            return read_end(state.reader(), serial, place).map(Some);
        }
    }
    Ok(None)
}

/// Ends of jobs after an id, by id.
pub(super) fn job_ends(
    state: &FileState,
    shard: Shard,
    after: EventId,
    limit: usize,
) -> Result<Vec<StoredEnd>> {
    let (mut places, sealed) = state.contents.job_ends(shard, after, limit);
    for serial in sealed {
        let found = state.footers().get(serial)?.job_ends(shard, after, limit)?;
        places.extend(found.into_iter().map(|place| (serial, place)));
    }
    places.sort_by_key(|(_, place)| place.id);
    places.truncate(limit);
    places.into_iter().map(|(serial, place)| read_end(state.reader(), serial, place)).collect()
}
