//! Upkeep: prepares segments ahead of the writer and takes released ones back.
//!
//! A sync into blocks that exist is about three times cheaper than one that makes the file longer, so
//! segments are filled with zeros and synced before they are used, off the commit path, and used again
//! when they are released. One ready segment is the reserve: only settling may use it when the disk is full.
//!
//! Nothing here holds an acknowledged frame, so an error here stops the upkeep and never the log: the
//! writer goes on in files that grow.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::error::is_full;
use super::options::Options;
use super::segment::{Segment, Table};
use crate::file::disk::{Disk, DiskFile};

/// Ready segments that ordinary writes leave alone.
pub(super) const RESERVE: usize = 1;
/// Zeros per write call.
const FILL_BYTES: usize = 256 << 10;
/// Zeros per sync: small, so that a commit never waits behind a long flush.
const FILL_SYNC_BYTES: u64 = 4 << 20;
const SPARE_SUFFIX: &str = ".spare";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// How the upkeep stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparesStatus {
    /// Segments ready for use, the reserve included.
    pub ready: usize,
    /// Whether the last try to prepare one met a full disk.
    pub full: bool,
    /// Why the upkeep failed last, if not for want of space.
    pub failed: Option<String>,
}

/// A segment file ready for use.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn DiskFile>,
}

/// What the writer gets when it asks for the next segment.
#[derive(Debug)]
pub(super) enum Taken {
    /// A ready one; `reserve` if it was the last.
    Spare { spare: Spare, reserve: bool },
    /// None is ready, but there is no sign of a full disk: let a file grow.
    Grow,
    /// The disk is full and what is left is not for this write.
    Full,
}

#[derive(Debug)]
pub(super) struct Spares {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    table: Arc<Table>,
    segment_bytes: u64,
    wanted: usize,
    kept_max: usize,
    space_retry: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: Vec<Spare>,
    leftovers: Vec<PathBuf>,
    next_name: u64,
    full: bool,
    failed: Option<String>,
    /// Set after a failure or a full disk until a retry is due.
    resting: bool,
    /// A folder could not be synced: which names are durable is unknown, so none is changed any more.
    halted: bool,
    busy: bool,
    stop: bool,
}

enum Job {
    Discard(PathBuf),
    Take(Arc<Segment>),
    Prepare,
}

impl Spares {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        table: Arc<Table>,
        options: &Options,
        found: Leftovers,
    ) -> Spares {
        let state = State {
            ready: found.spares,
            leftovers: found.discard,
            next_name: found.next_name,
            ..State::default()
        };
        Spares {
            disk,
            dir,
            table,
            segment_bytes: options.segment_bytes,
            wanted: options.spares,
            kept_max: options.spares_max,
            space_retry: options.space_retry,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Notes a disk without room for the next segment before the first frame is asked for: what is accepted then must not
    /// take the reserve, or wait for room.
    pub(super) fn look_for_room(&self) {
        let is_short = self.ready() <= RESERVE && matches!(self.check_room(), Err(error) if is_full(&error));
        if is_short {
            tracing::warn!(dir = %self.dir.display(), "disk full: no further log segment can be prepared");
            self.state.lock().full = true;
        }
    }

    pub(super) fn ready(&self) -> usize {
        self.state.lock().ready.len()
    }

    pub(super) fn status(&self) -> SparesStatus {
        let state = self.state.lock();
        SparesStatus { ready: state.ready.len(), full: state.full, failed: state.failed.clone() }
    }

    /// Hands out a ready segment; the reserve only if `reserve_too`.
    pub(super) fn take(&self, reserve_too: bool) -> Taken {
        let mut state = self.state.lock();
        let available =
            if reserve_too { state.ready.len() } else { state.ready.len().saturating_sub(RESERVE) };
        if available > 0 {
            let spare = state.ready.remove(0);
            let reserve = state.ready.len() < RESERVE;
            drop(state);
            self.changed.notify_all();
            return Taken::Spare { spare, reserve };
        }
        if state.full { Taken::Full } else { Taken::Grow }
    }

    /// Gives back a segment that was taken and not used.
    pub(super) fn put_back(&self, spare: Spare) {
        self.state.lock().ready.insert(0, spare);
    }

    /// A file that is not needed and shall go.
    pub(super) fn discard(&self, path: PathBuf) {
        self.state.lock().leftovers.push(path);
        self.changed.notify_all();
    }

    /// Tries again now what a full disk or an error made wait.
    pub(super) fn poke(&self) {
        self.state.lock().resting = false;
        self.changed.notify_all();
    }

    /// Looks again whether a segment can be taken back.
    pub(super) fn wake(&self) {
        // Taking the lock first closes the gap between the thread's look at the table and its wait.
        drop(self.state.lock());
        self.changed.notify_all();
    }

    /// A name no other file has, for a file that will be renamed when it is complete.
    pub(super) fn temporary_path(&self) -> PathBuf {
        let mut state = self.state.lock();
        state.next_name += 1;
        self.dir.join(format!("{:020}{TEMPORARY_SUFFIX}", state.next_name))
    }

    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// The background thread: works, rests after a failure, ends when told to stop.
    pub(super) fn run(&self) {
        loop {
            if self.step() {
                continue;
            }
            let mut state = self.state.lock();
            if state.stop {
                return;
            }
            if state.resting {
                let timed_out = self.changed.wait_for(&mut state, self.space_retry).timed_out();
                state.resting &= !timed_out;
            } else if self.choose(&state).is_none() {
                self.changed.wait(&mut state);
            }
        }
    }

    /// Does one piece of work; false if there is none or it has to wait.
    pub(super) fn step(&self) -> bool {
        let mut state = self.state.lock();
        let Some(job) = self.choose(&state) else { return false };
        if let Job::Prepare | Job::Take(_) = job {
            state.next_name += 1;
        }
        let name = state.next_name;
        state.busy = true;
        drop(state);
        let result = match &job {
            Job::Discard(path) => self.remove(path).map(|()| None),
            Job::Take(segment) => self.take_back(segment, name),
            Job::Prepare => self.prepare(name),
        };
        self.conclude(job, result);
        true
    }

    /// Waits until there is nothing left to do, or until a failure makes the upkeep rest; false if that
    /// took longer than `limit`.
    pub(super) fn wait_idle(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        let busy = |state: &mut State| state.busy || self.choose(state).is_some();
        !self.changed.wait_while_for(&mut state, busy, limit).timed_out()
    }

    fn choose(&self, state: &State) -> Option<Job> {
        if state.stop || state.halted || state.resting || state.busy {
            return None;
        }
        if let Some(path) = state.leftovers.first() {
            return Some(Job::Discard(path.clone()));
        }
        if let Some(segment) = self.table.oldest_released() {
            return Some(Job::Take(segment));
        }
        (state.ready.len() < self.wanted).then_some(Job::Prepare)
    }

    fn conclude(&self, job: Job, result: io::Result<Option<Spare>>) {
        let mut state = self.state.lock();
        state.busy = false;
        match result {
            Ok(spare) => {
                if let Job::Discard(path) = job {
                    state.leftovers.retain(|leftover| *leftover != path);
                }
                if let Some(spare) = spare {
                    state.ready.push(spare);
                    state.full = false;
                    state.failed = None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted && state.stop => {}
            Err(error) if matches!(job, Job::Discard(_)) => {
                // It does no harm where it is, and the next open finds it again.
                let Job::Discard(path) = job else { unreachable!("just matched") };
                tracing::warn!(path = %path.display(), %error, "could not remove an unused file of the log");
                state.leftovers.retain(|leftover| *leftover != path);
            }
            Err(error) => {
                state.resting = true;
                if is_full(&error) {
                    tracing::warn!(dir = %self.dir.display(), "disk full: no further log segment can be prepared");
                    state.full = true;
                } else {
                    tracing::warn!(dir = %self.dir.display(), %error, "log upkeep failed and will try again");
                    state.failed = Some(error.to_string());
                }
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Makes a new ready segment, in small steps.
    fn prepare(&self, name: u64) -> io::Result<Option<Spare>> {
        self.check_room()?;
        let temporary = self.dir.join(format!("{name:020}{TEMPORARY_SUFFIX}"));
        let filled = self.fill(&temporary);
        let file = match filled {
            Ok(file) => file,
            Err(error) => {
                // Give the space back at once: others on this disk need it more than half a segment does.
                match self.disk.remove(&temporary) {
                    Ok(()) => {}
                    Err(left) if left.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => self.state.lock().leftovers.push(temporary),
                }
                return Err(error);
            }
        };
        let path = self.spare_path(name);
        self.disk.rename(&temporary, &path)?;
        Ok(Some(Spare { path, file }))
    }

    /// Refuses to begin a segment that the disk has no room for: neighbours on it would run out of space while it is filled.
    fn check_room(&self) -> io::Result<()> {
        match self.disk.free(&self.dir)? {
            Some(free) if free < self.segment_bytes => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn fill(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.create(path)?;
        let zeros = vec![0; FILL_BYTES];
        let mut at = 0;
        while at < self.segment_bytes {
            if self.state.lock().stop {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let len = (self.segment_bytes - at).min(FILL_BYTES as u64);
            file.write_at(&zeros[..usize::try_from(len).expect("at most FILL_BYTES")], at)?;
            at += len;
            if at.is_multiple_of(FILL_SYNC_BYTES) {
                file.sync_data()?;
            }
        }
        file.sync_data()?;
        Ok(file)
    }

    /// Turns the oldest segment, no longer needed, into a ready one, or removes it.
    ///
    /// Each removal is durable before the next one, so that a crash never leaves a gap in the log.
    fn take_back(&self, segment: &Arc<Segment>, name: u64) -> io::Result<Option<Spare>> {
        let serial = segment.key.serial;
        let path = self.table.path(serial);
        let useful = !segment.growing
            && self.state.lock().ready.len() < self.kept_max
            && self.disk.size(&path)? == self.segment_bytes;
        let file = if useful { Some(self.disk.open(&path)?) } else { None };
        self.table.remove(serial);
        let spare_path = self.spare_path(name);
        let gone = if useful { self.disk.rename(&path, &spare_path) } else { self.disk.remove(&path) };
        if let Err(error) = gone {
            self.table.insert(Arc::clone(segment));
            return Err(error);
        }
        if let Err(error) = self.disk.sync_dir(&self.dir) {
            self.state.lock().halted = true;
            return Err(error);
        }
        Ok(file.map(|file| Spare { path: spare_path, file }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn spare_path(&self, name: u64) -> PathBuf {
        self.dir.join(format!("{name:020}{SPARE_SUFFIX}"))
    }
}

/// Files found at open that are no part of the log.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    pub(super) spares: Vec<Spare>,
    discard: Vec<PathBuf>,
    next_name: u64,
}

impl Leftovers {
    /// Sorts in a file that is not a segment: a ready one is used, an unfinished one goes, and anything
    /// else is not ours.
    pub(super) fn sort_in(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        name: &str,
        options: &Options,
    ) -> io::Result<()> {
        let path = dir.join(name);
        if let Some(stem) = name.strip_suffix(TEMPORARY_SUFFIX) {
            self.number(stem);
            self.discard.push(path);
        } else if let Some(stem) = name.strip_suffix(SPARE_SUFFIX) {
            self.number(stem);
            if self.spares.len() < options.spares_max && disk.size(&path)? == options.segment_bytes {
                let file = disk.open(&path)?;
                self.spares.push(Spare { path, file });
            } else {
                self.discard.push(path);
            }
        }
        Ok(())
    }

    fn number(&mut self, digits: &str) {
        self.next_name = self.next_name.max(digits.parse().unwrap_or(0));
    }
}
