//! Finding out what the log holds after a crash, a power cut or a clean close.
//!
//! Reads the headers of all segments and the frames from the replay mark on. The naive rule, "the log ends
//! at the first bad frame", turns a flipped bit into a silently shorter history. Here a bad frame is a torn
//! tail only if nothing valid follows: no later frame in its segment, no later segment, no clean close and
//! no checkpoint behind it. Everything else is damage and is refused.
//!
//! Changes nothing it reads. A torn tail stays where it is and is made void by the header of the next
//! segment, so recovering twice gives the same. The last frame, whose sync nobody may have seen succeed, is
//! written again with the same bytes and synced: after a failed sync the system may show bytes that
//! never reached the disk.

use std::path::{Path, PathBuf};

use super::closed;
use super::error::{LogError, io_error};
use super::frame::{self, FrameBuffer, Invalid};
use super::header::{self, Header};
use super::open::Replay;
use super::options::Options;
use super::position::{Frame, Mark, Position};
use super::scan::{READ_BYTES, find_after, read_batch};
use super::segment::{self, Segment};
use super::spares::Leftovers;
use crate::file::disk::{Disk, DiskFile};

/// What opening the log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Whether the log was closed in order.
    pub clean: bool,
    /// A torn tail that was cut, if there was one.
    pub cut: Option<Cut>,
    /// Where the log ends.
    pub end: Mark,
    /// The oldest segment kept; `None` for a new log.
    pub oldest_serial: Option<u64>,
    /// Frames visited.
    pub frames: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// A torn tail: bytes of frames that were begun and never acknowledged as durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file with the torn tail.
    pub file: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// How long it is, as far as that can be seen.
    pub bytes: u64,
}

/// All that opening needs.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) segments: Vec<Segment>,
    pub(super) leftovers: Leftovers,
    pub(super) store_id: Option<u128>,
    pub(super) closed_mark: bool,
    pub(super) recovered: Recovered,
}

/// A segment file with a valid header.
struct Entry {
    header: Header,
    path: PathBuf,
    len: u64,
    /// Where its frames end, if the next segment says so.
    end: Option<u64>,
}

pub(super) fn recover(
    disk: &dyn Disk,
    dir: &Path,
    options: &Options,
    replay: Replay,
    visit: &mut dyn FnMut(Frame) -> Result<(), LogError>,
) -> Result<Found, LogError> {
    let mut leftovers = Leftovers::default();
    let mut serials = Vec::new();
    let names = disk.list(dir).map_err(io_error("list", dir))?;
    for name in names {
        match segment::serial_of(&name) {
            Some(serial) => serials.push(serial),
            None => {
                leftovers.sort_in(disk, dir, &name, options).map_err(io_error("inspect", &dir.join(&name)))?
            }
        }
    }
    serials.sort_unstable();
    let entries = read_headers(disk, dir, &serials)?;
    let mark = closed::read(disk, dir)?;
    check_mark(dir, &entries, mark)?;
    let start = check_start(dir, &entries, replay)?;
    // The mark only speaks about the end if it names the last segment.
    let last_serial = entries.last().map(|entry| entry.header.serial);
    let clean_end = mark.map(|(_, end)| end).filter(|end| Some(end.position.serial) == last_serial);
    let mut scan = Scan { disk, clean_end, visit, next: start, frames: 0, bytes: 0, last: None };
    let mut cut = None;
    for entry in entries.iter().filter(|entry| entry.header.serial >= start.position.serial) {
        cut = scan.segment(entry)?;
    }
    let end = scan.next;
    check_reach(dir, &entries, end, replay)?;
    let (frames, bytes) = (scan.frames, scan.bytes);
    if clean_end.is_none()
        && let Some(last) = entries.last()
    {
        scan.settle_tail(dir, last)?;
    }
    if let Some(cut) = &cut {
        tracing::warn!(file = %cut.file.display(), offset = cut.offset, bytes = cut.bytes, "cut a torn tail of the log");
    }
    let recovered = Recovered {
        clean: clean_end.is_some() || entries.is_empty(),
        cut,
        end,
        oldest_serial: serials.first().copied(),
        frames,
        bytes,
    };
    let segments = entries.iter().map(|entry| known(entry, end)).collect();
    let store_id = entries.first().map(|entry| entry.header.store_id);
    Ok(Found { segments, leftovers, store_id, closed_mark: mark.is_some(), recovered })
}

fn known(entry: &Entry, end: Mark) -> Segment {
    let end = entry.end.unwrap_or(end.position.offset);
    let header = &entry.header;
    let segment = Segment::new(header.key(), header.first_frame, header.growing, end, entry.len);
    segment.seal();
    segment
}

/// Reads all headers and checks that they follow each other without a gap.
fn read_headers(disk: &dyn Disk, dir: &Path, serials: &[u64]) -> Result<Vec<Entry>, LogError> {
    let mut entries: Vec<Entry> = Vec::with_capacity(serials.len());
    for &serial in serials {
        let path = dir.join(segment::file_name(serial));
        let file = disk.open(&path).map_err(io_error("open", &path))?;
        let len = file.len().map_err(io_error("measure", &path))?;
        let mut bytes = vec![0; header::BYTES];
        let count = file.read_at(&mut bytes, 0).map_err(io_error("read", &path))?;
        let header = Header::decode(&bytes[..count], &path, serial)?;
        if let Some(previous) = entries.last_mut() {
            follow(previous, &header, &path)?;
        }
        entries.push(Entry { header, path, len, end: None });
    }
    Ok(entries)
}

/// Checks one link of the chain of segments and takes over the end of the earlier one.
fn follow(previous: &mut Entry, header: &Header, path: &Path) -> Result<(), LogError> {
    let corrupt = |file: &Path, offset: u64, what: String| {
        Err(LogError::Corrupt { file: file.to_owned(), offset, what })
    };
    if header.store_id != previous.header.store_id {
        return corrupt(path, 16, "belongs to another store than the segment before it".to_owned());
    }
    if header.previous_serial != previous.header.serial {
        let (expected, found) = (header.previous_serial, previous.header.serial);
        return corrupt(
            path,
            56,
            format!("follows segment {expected}, but the one before it here is {found}"),
        );
    }
    if header.first_frame < previous.header.first_frame || header.previous_end < header::BYTES as u64 {
        return corrupt(path, 40, "its frames do not follow those of the segment before it".to_owned());
    }
    if previous.len < header.previous_end {
        let what = format!("the file ends here, but its frames reach to {}", header.previous_end);
        return corrupt(&previous.path, previous.len, what);
    }
    previous.end = Some(header.previous_end);
    Ok(())
}

/// A mark of a clean close must speak about this log and not reach beyond it.
fn check_mark(dir: &Path, entries: &[Entry], mark: Option<(u128, Mark)>) -> Result<(), LogError> {
    let Some((store_id, end)) = mark else { return Ok(()) };
    let corrupt = |what: String| Err(LogError::Corrupt { file: closed::path(dir), offset: 0, what });
    let Some(last) = entries.last() else {
        return corrupt(format!("the log was closed at {:?}, but no segment is there", end.position));
    };
    if last.header.store_id != store_id {
        return corrupt("the mark of the clean close belongs to another store".to_owned());
    }
    if last.header.serial < end.position.serial {
        let found = last.header.serial;
        return corrupt(format!(
            "the log was closed in segment {}, but the last one is {found}",
            end.position.serial
        ));
    }
    Ok(())
}

/// Where replay begins, once it is sure that this place exists.
fn check_start(dir: &Path, entries: &[Entry], replay: Replay) -> Result<Mark, LogError> {
    let missing = |position: Position, what: String| {
        Err(LogError::Corrupt {
            file: dir.join(segment::file_name(position.serial)),
            offset: position.offset,
            what,
        })
    };
    let Some(first) = entries.first() else {
        return match replay.from.filter(|mark| *mark != Mark::START) {
            Some(mark) => {
                missing(mark.position, "replay begins here, but the log has no segments".to_owned())
            }
            None => Ok(Mark::START),
        };
    };
    let oldest = Mark {
        position: Position { serial: first.header.serial, offset: header::BYTES as u64 },
        number: first.header.first_frame,
    };
    let Some(from) = replay.from else { return Ok(oldest) };
    if from.position == Position::START {
        if first.header.previous_serial != 0 {
            let what =
                format!("replay begins at the first segment, but the oldest one is {}", first.header.serial);
            return missing(Position { serial: 1, offset: 0 }, what);
        }
        return Ok(oldest);
    }
    let Some(entry) = entries.iter().find(|entry| entry.header.serial == from.position.serial) else {
        return missing(from.position, "replay begins in this segment, but it is not there".to_owned());
    };
    let end = entry.end.unwrap_or(entry.len);
    if from.position.offset > end {
        return missing(from.position, format!("replay begins here, but the segment ends at {end}"));
    }
    Ok(from)
}

/// The log must reach every place that is known to be durable.
fn check_reach(dir: &Path, entries: &[Entry], end: Mark, replay: Replay) -> Result<(), LogError> {
    let Some(place) = replay.must_reach else { return Ok(()) };
    let segment_end =
        entries.iter().find(|entry| entry.header.serial == place.serial).and_then(|entry| entry.end);
    if place <= end.position && segment_end.is_none_or(|end| place.offset <= end) {
        return Ok(());
    }
    let reached = segment_end.map_or(end.position, |offset| Position { offset, ..place });
    Err(LogError::Corrupt {
        file: dir.join(segment::file_name(reached.serial)),
        offset: reached.offset,
        what: format!(
            "the log ends here, but a checkpoint reaches to segment {} offset {}: acknowledged frames are missing",
            place.serial, place.offset
        ),
    })
}

/// The walk over the frames.
struct Scan<'a> {
    disk: &'a dyn Disk,
    clean_end: Option<Mark>,
    visit: &'a mut dyn FnMut(Frame) -> Result<(), LogError>,
    /// Where the next frame is expected, and its number.
    next: Mark,
    frames: u64,
    bytes: u64,
    last: Option<Frame>,
}

impl Scan<'_> {
    /// Visits the frames of one segment and finds its end.
    fn segment(&mut self, entry: &Entry) -> Result<Option<Cut>, LogError> {
        let serial = entry.header.serial;
        if self.next.position.serial != serial {
            self.next.position = Position { serial, offset: header::BYTES as u64 };
            if entry.header.first_frame != self.next.number {
                let (found, expected) = (entry.header.first_frame, self.next.number);
                let what = format!("begins with frame {found}, but {expected} comes next");
                return Err(LogError::Corrupt { file: entry.path.clone(), offset: 40, what });
            }
        }
        let file = self.disk.open(&entry.path).map_err(io_error("open", &entry.path))?;
        let end = entry.end.unwrap_or(entry.len);
        let stop = self.frames(file.as_ref(), entry, end)?;
        let offset = self.next.position.offset;
        if entry.end.is_some() {
            return if offset == end { Ok(None) } else { Err(self.missing(entry, end)) };
        }
        if let Some(clean) = self.clean_end {
            return if clean == self.next {
                Ok(None)
            } else {
                Err(self.missing(entry, clean.position.offset))
            };
        }
        self.torn_tail(file.as_ref(), entry, stop)
    }

    fn missing(&self, entry: &Entry, end: u64) -> LogError {
        let offset = self.next.position.offset;
        let what =
            format!("no valid frame {} here, but the segment's frames reach to {end}", self.next.number);
        LogError::Corrupt { file: entry.path.clone(), offset, what }
    }

    fn frames(&mut self, file: &dyn DiskFile, entry: &Entry, end: u64) -> Result<Option<Invalid>, LogError> {
        let key = entry.header.key();
        loop {
            let offset = self.next.position.offset;
            let batch =
                read_batch(file, key, offset, end, READ_BYTES).map_err(io_error("read", &entry.path))?;
            for frame in batch.frames {
                if frame.number != self.next.number {
                    let (found, expected) = (frame.number, self.next.number);
                    let what = format!("frame {found} is where {expected} comes next");
                    return Err(LogError::Corrupt {
                        file: entry.path.clone(),
                        offset: frame.position.offset,
                        what,
                    });
                }
                self.next = frame.end();
                self.frames += 1;
                self.bytes += frame.body.len() as u64;
                self.last = Some(frame.clone());
                (self.visit)(frame)?;
            }
            if batch.stop.is_some() || self.next.position.offset >= end {
                return Ok(batch.stop);
            }
        }
    }

    /// The frames of the last segment stop here: decides between the end of the log and damage.
    fn torn_tail(
        &self,
        file: &dyn DiskFile,
        entry: &Entry,
        stop: Option<Invalid>,
    ) -> Result<Option<Cut>, LogError> {
        let key = entry.header.key();
        let offset = self.next.position.offset;
        let mut torn_end = match stop {
            // A frame of this segment was begun here.
            Some(Invalid::Checksum) => offset + frame::HEADER_BYTES as u64,
            Some(Invalid::Short(need)) => (offset + need as u64).min(entry.len),
            Some(Invalid::Foreign) | None => offset,
        };
        if entry.header.growing {
            torn_end = entry.len;
        }
        let mut search = offset;
        while let Some(later) = find_after(file, key, search, entry.len, self.next.number)
            .map_err(io_error("read", &entry.path))?
        {
            if !entry.header.unsynced {
                let what = format!(
                    "no valid frame {} here, but a later one, {}, follows at offset {}",
                    self.next.number, later.number, later.position.offset
                );
                return Err(LogError::Corrupt { file: entry.path.clone(), offset, what });
            }
            // Without syncs the system writes in any order, so a hole is what a power cut leaves.
            search = later.end().position.offset - frame::ALIGNMENT as u64;
            torn_end = torn_end.max(later.end().position.offset);
        }
        let bytes = torn_end - offset;
        Ok((bytes > 0).then(|| Cut { file: entry.path.clone(), offset, bytes }))
    }

    /// Makes what was found durable before anybody builds on it.
    fn settle_tail(&self, dir: &Path, entry: &Entry) -> Result<(), LogError> {
        let file = self.disk.open(&entry.path).map_err(io_error("open", &entry.path))?;
        if let Some(last) = self.last.as_ref().filter(|last| last.position.serial == entry.header.serial) {
            let mut buffer = FrameBuffer::with_capacity(last.body.len());
            buffer.body_mut().extend_from_slice(&last.body);
            let sealed = buffer.seal(entry.header.key(), last.number, last.stamp);
            file.write_at(sealed.bytes(), last.position.offset).map_err(io_error("settle", &entry.path))?;
        }
        file.sync_data().map_err(io_error("sync", &entry.path))?;
        self.disk.sync_dir(dir).map_err(io_error("sync folder", dir))
    }
}
