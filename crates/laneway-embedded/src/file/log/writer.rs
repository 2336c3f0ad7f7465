//! The commit path: one frame, one write, one sync.
//!
//! Frames go into the current segment; when one does not fit, or a zero-filled segment has become ready
//! while the current file still grows, the next segment takes over. Its header is durable before its
//! name, and its name before its first frame, so a segment with a broken header is always damage.
//!
//! After an error of a write or a sync nothing is known about what the disk holds, and asking again would
//! only hide it (a second sync can succeed because the system has dropped the data). So the writer stops
//! for good and the next open decides. The one exception is a disk that is full before anything was taken.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::closed;
use super::error::{LogError, Poison, is_full};
use super::frame::{self, FrameBuffer};
use super::header::{self, Header};
use super::open::Shared;
use super::options::SyncMode;
use super::position::{Frame, Mark, Position, Stamp};
use super::recent::Chunks;
use super::segment::Segment;
use super::spares::{RESERVE, Spare, Taken};
use crate::file::disk::DiskFile;
use crate::file::seam;

/// Which space a frame may use when the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// New work: refused when only the reserve is left.
    Ordinary,
    /// Settling of running work: may use the reserve.
    Reserve,
}

/// The only writer of a log.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
    current: Option<Current>,
    end: Mark,
    /// A mark of a clean close lies in the folder and is void from the next segment on.
    closed_mark: bool,
    /// Frames were written since the last sync.
    unsynced: bool,
    poison: Option<Arc<Poison>>,
    chunks: Chunks,
    thread: Option<JoinHandle<()>>,
}

/// The segment that takes frames.
#[derive(Debug)]
struct Current {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    offset: u64,
    reserve: bool,
}

/// A file on its way to become the current segment.
struct Candidate {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    growing: bool,
    reserve: bool,
}

impl LogWriter {
    pub(super) fn new(shared: Arc<Shared>, closed_mark: bool, thread: Option<JoinHandle<()>>) -> LogWriter {
        let end = *shared.end.lock();
        let chunks = Chunks::default();
        LogWriter { shared, current: None, end, closed_mark, unsynced: false, poison: None, chunks, thread }
    }

    /// Appends one frame and makes it durable; the buffer keeps its body.
    ///
    /// Refuses: `Full` and `TooLarge` with nothing written; `Poisoned` when the outcome is unknown or the
    /// writer had stopped before.
    pub fn write(
        &mut self,
        frame: &mut FrameBuffer,
        stamp: Stamp,
        space: Space,
    ) -> Result<Position, LogError> {
        self.refuse_if_poisoned()?;
        let limit = self.shared.options.body_len_max();
        if frame.body_len() > limit {
            return Err(LogError::TooLarge { size: frame.body_len(), limit });
        }
        let total = frame::total_len(frame.body_len()) as u64;
        self.make_room(total, space)?;
        match self.put(frame, stamp) {
            // A file that grows can meet the full disk in the write itself; the reserve is still there.
            Err(LogError::Full { .. }) if space == Space::Reserve && self.shared.spares.ready() > 0 => {
                self.rotate(total, true)?;
                self.put(frame, stamp)
            }
            result => result,
        }
    }

    /// Bytes left for such frames in the current segment, which are sure to be there on a full disk too.
    pub fn room(&self, space: Space) -> u64 {
        let open = |current: &&Current| space == Space::Reserve || !current.reserve;
        let current = self.current.as_ref().filter(|current| !current.segment.growing).filter(open);
        current.map_or(0, |current| self.shared.options.segment_bytes.saturating_sub(current.offset))
    }

    /// Makes everything written so far durable; needed only with [`SyncMode::Os`].
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.refuse_if_poisoned()?;
        if !self.unsynced {
            return Ok(());
        }
        let Some(current) = &self.current else { return Ok(()) };
        let (synced, serial) = (current.file.sync_data(), current.segment.key.serial);
        synced.map_err(|error| self.poison("sync", self.shared.table.path(serial), error))?;
        self.unsynced = false;
        Ok(())
    }

    /// The end of the log: where the next frame will go, or the end of the last segment.
    pub fn end(&self) -> Mark {
        self.end
    }

    /// Why the writer has stopped, if it has.
    pub fn poisoned(&self) -> Option<&Arc<Poison>> {
        self.poison.as_ref()
    }

    /// The longest body a frame may have.
    pub fn body_len_max(&self) -> usize {
        self.shared.options.body_len_max()
    }

    /// Lets the upkeep try again at once after a full disk.
    pub fn poke_spares(&self) {
        self.shared.spares.poke();
    }

    /// Ends the log in order: from now on any missing or damaged frame is noticed, also at the end.
    ///
    /// On an error the log is as after a crash: nothing acknowledged is lost.
    pub fn close(mut self) -> Result<(), LogError> {
        self.stop_upkeep();
        self.refuse_if_poisoned()?;
        self.sync()?;
        if self.current.is_none() && (self.closed_mark || self.end == Mark::START) {
            return Ok(());
        }
        closed::write(self.shared.disk.as_ref(), &self.shared.dir, self.shared.store_id, self.end)
    }

    fn refuse_if_poisoned(&self) -> Result<(), LogError> {
        self.poison.as_ref().map_or(Ok(()), |poison| Err(LogError::Poisoned(Arc::clone(poison))))
    }

    /// Sees to it that the current segment may take a frame of this length.
    fn make_room(&mut self, total: u64, space: Space) -> Result<(), LogError> {
        let ready = self.shared.spares.ready();
        let limit = self.shared.options.segment_bytes;
        let Some(current) = self.current.as_mut().filter(|current| current.offset + total <= limit) else {
            return self.rotate_for(total, space);
        };
        if ready >= RESERVE {
            current.reserve = false;
        }
        let better = current.segment.growing && ready > RESERVE;
        let barred = current.reserve && space == Space::Ordinary;
        if better || barred { self.rotate_for(total, space) } else { Ok(()) }
    }

    fn rotate_for(&mut self, total: u64, space: Space) -> Result<(), LogError> {
        match self.rotate(total, false) {
            Err(LogError::Full { .. }) if space == Space::Reserve => self.rotate(total, true),
            result => result,
        }
    }

    /// Begins the next segment.
    fn rotate(&mut self, total: u64, reserve_too: bool) -> Result<(), LogError> {
        self.sync()?;
        let candidate = match self.shared.spares.take(reserve_too) {
            Taken::Spare { spare, reserve } => {
                Candidate { path: spare.path, file: spare.file, growing: false, reserve }
            }
            Taken::Full if !reserve_too => return Err(self.full(total)),
            Taken::Full => self.grow(total, true)?,
            Taken::Grow => self.grow(total, false)?,
        };
        let header = Header {
            store_id: self.shared.store_id,
            serial: self.end.position.serial + 1,
            first_frame: self.end.number,
            salt: seam::random_u64(),
            previous_serial: self.end.position.serial,
            previous_end: self.end.position.offset,
            growing: candidate.growing,
            unsynced: self.shared.options.sync == SyncMode::Os,
        };
        self.write_header(&candidate, &header, total)?;
        self.name_segment(&candidate, &header, total)?;
        self.install(candidate, &header);
        Ok(())
    }

    /// A new file that will grow with its frames.
    fn grow(&mut self, total: u64, reserve: bool) -> Result<Candidate, LogError> {
        let path = self.shared.spares.temporary_path();
        let created = self.shared.disk.create(&path);
        match created {
            Ok(file) => Ok(Candidate { path, file, growing: true, reserve }),
            Err(error) if is_full(&error) => Err(self.full(total)),
            Err(error) => Err(self.poison("create", path, error)),
        }
    }

    fn write_header(&mut self, candidate: &Candidate, header: &Header, total: u64) -> Result<(), LogError> {
        let written = candidate.file.write_at(&header.encode(), 0);
        match written.and_then(|()| candidate.file.sync_data()) {
            Ok(()) => Ok(()),
            Err(error) if is_full(&error) => {
                // Nothing of value is in the file, and a file whose sync failed is not used again.
                self.shared.spares.discard(candidate.path.clone());
                Err(self.full(total))
            }
            Err(error) => Err(self.poison("write the header of", candidate.path.clone(), error)),
        }
    }

    fn name_segment(&mut self, candidate: &Candidate, header: &Header, total: u64) -> Result<(), LogError> {
        let path = self.shared.table.path(header.serial);
        match self.shared.disk.rename(&candidate.path, &path) {
            Ok(()) => {}
            Err(error) if is_full(&error) => {
                let (path, file) = (candidate.path.clone(), Arc::clone(&candidate.file));
                if candidate.growing {
                    self.shared.spares.discard(path);
                } else {
                    self.shared.spares.put_back(Spare { path, file });
                }
                return Err(self.full(total));
            }
            Err(error) => return Err(self.poison("rename", candidate.path.clone(), error)),
        }
        if self.closed_mark {
            let mark = closed::path(&self.shared.dir);
            let removed = self.shared.disk.remove(&mark);
            removed.map_err(|error| self.poison("remove", mark, error))?;
            self.closed_mark = false;
        }
        let synced = self.shared.disk.sync_dir(&self.shared.dir);
        synced.map_err(|error| self.poison("sync folder", self.shared.dir.clone(), error))
    }

    fn install(&mut self, candidate: Candidate, header: &Header) {
        let offset = header::BYTES as u64;
        let file_bytes = if candidate.growing { offset } else { self.shared.options.segment_bytes };
        let segment =
            Arc::new(Segment::new(header.key(), header.first_frame, candidate.growing, offset, file_bytes));
        self.shared.table.insert(Arc::clone(&segment));
        self.shared.table.keep_file(header.serial, Arc::clone(&candidate.file));
        // Sealed only now, so that a reader at its end always finds the segment after it.
        if let Some(sealed) = self.current.take() {
            sealed.segment.seal();
        }
        let Candidate { file, reserve, .. } = candidate;
        self.current = Some(Current { segment, file, offset, reserve });
        self.end.position = Position { serial: header.serial, offset };
        *self.shared.end.lock() = self.end;
        // The segment before may have been released while it was the newest one.
        self.shared.spares.wake();
    }

    /// Writes and syncs the frame at the end of the current segment, which has room for it.
    fn put(&mut self, frame: &mut FrameBuffer, stamp: Stamp) -> Result<Position, LogError> {
        let current = self.current.as_mut().expect("make_room leaves a current segment");
        let position = Position { serial: current.segment.key.serial, offset: current.offset };
        let number = self.end.number;
        let sealed = frame.seal(current.segment.key, number, stamp);
        let total = sealed.bytes().len() as u64;
        if let Err(error) = current.file.write_at(sealed.bytes(), current.offset) {
            let path = self.shared.table.path(position.serial);
            if !is_full(&error) {
                return Err(self.poison("write to", path, error));
            }
            // What was begun is overwritten by the next frame; a file that grows gives its space back.
            let cut = if current.segment.growing { current.file.set_len(current.offset) } else { Ok(()) };
            return Err(match cut {
                Ok(()) => self.full(total),
                Err(error) => self.poison("cut back", path, error),
            });
        }
        self.unsynced = true;
        if self.shared.options.sync == SyncMode::Always {
            if let Err(error) = current.file.sync_data() {
                return Err(self.poison("sync", self.shared.table.path(position.serial), error));
            }
            self.unsynced = false;
        }
        current.offset += total;
        // The end moves before the frame is put into memory: a reader that got it there may ask on from its end.
        current.segment.advance(current.offset);
        if self.shared.recent.keeps(sealed.body().len()) {
            let body = self.chunks.copy(sealed.body());
            self.shared.recent.push(Frame { position, number, stamp, body }, &mut self.chunks);
        } else {
            self.shared.recent.clear();
        }
        self.end = Mark { position: Position { offset: current.offset, ..position }, number: number + 1 };
        *self.shared.end.lock() = self.end;
        Ok(position)
    }

    fn full(&self, needed: u64) -> LogError {
        LogError::Full { needed, dir: self.shared.dir.clone() }
    }

    fn poison(&mut self, action: &'static str, path: PathBuf, error: io::Error) -> LogError {
        tracing::error!(action, path = %path.display(), %error, "log stopped after a failed write or sync");
        let poison = Arc::new(Poison { action, path, error });
        self.poison = Some(Arc::clone(&poison));
        self.shared.spares.stop();
        LogError::Poisoned(poison)
    }

    fn stop_upkeep(&mut self) {
        self.shared.spares.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the upkeep thread of the log panicked");
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.stop_upkeep();
    }
}
