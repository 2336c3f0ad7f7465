//! Opening a folder: lock, index, log from the last checkpoint on, contents of the segments, threads.

use std::path::Path;
use std::sync::Arc;

use laneway_core::{Clock, Incarnation, Result, StoreError, SystemClock};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, watch};

use super::checkpoint::Checkpointer;
use super::disk::{Disk, RealDisk};
use super::group::{Durable, Pipeline, WriteThread};
use super::index::{CheckpointWrite, Index, Meta, Patience};
use super::lock::DirectoryLock;
use super::log::{Log, LogError, LogReader, Mark, Opened, Position, Replay};
use super::marks::RecentMarks;
use super::options::{Background, FileOptions};
use super::seam;
use super::state::{Archive, Directory, FileState, Footers, SegmentTable, contents_of, read_error};
use super::store::{Base, FILE_READERS, FileStore, Shared};
use crate::clock::{ClockMark, StoreClock};
use crate::wakeups::LocalWakeups;

/// How much of the log is read at a time.
const SCAN_BYTES: usize = 1 << 20;
/// An index up to this many values is checked whole before work begins; a larger one while work goes on.
const CHECK_AT_OPEN: u64 = 200_000;

impl FileStore {
    /// Opens or creates a store in a folder, with default settings and the machine's clock.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use laneway_embedded::FileStore;
    /// let store = FileStore::open(folder.path()).unwrap();
    /// let second = FileStore::open(folder.path());
    /// assert!(second.unwrap_err().to_string().contains("in use"));
    /// store.close().unwrap();
    /// ```
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(dir, FileOptions::default(), Arc::new(SystemClock))
    }

    /// As [`FileStore::open`], with settings and a clock.
    pub fn open_with(dir: impl AsRef<Path>, options: FileOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let (dir, disk) = (dir.as_ref(), RealDisk);
        create_dir(&disk, dir)?;
        let lock =
            DirectoryLock::acquire(dir).map_err(|error| StoreError::Down { reason: error.to_string() })?;
        open(Arc::new(disk), dir, options, clock, Some(lock))
    }

    /// Opens a store on another disk, such as a simulated one. There is no lock on the folder.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        dir: impl AsRef<Path>,
        options: FileOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        create_dir(disk.as_ref(), dir.as_ref())?;
        open(disk, dir.as_ref(), options, clock, None)
    }
}

pub(super) fn create_dir(disk: &dyn Disk, dir: &Path) -> Result<()> {
    disk.create_dir(dir)
        .map_err(|error| StoreError::Down { reason: format!("could not create {}: {error}", dir.display()) })
}

/// The error of opening the log.
fn open_error(error: LogError) -> StoreError {
    match error {
        LogError::Full { .. } | LogError::Poisoned(_) => StoreError::Down { reason: error.to_string() },
        other => read_error(other),
    }
}

fn open(
    disk: Arc<dyn Disk>,
    dir: &Path,
    options: FileOptions,
    clock: Arc<dyn Clock>,
    lock: Option<DirectoryLock>,
) -> Result<FileStore> {
    options.check()?;
    let patience = Patience::new(options.background == Background::Threads);
    let index = Index::open(disk.as_ref(), dir, options.index_cache_bytes, Arc::clone(&patience))?;
    let meta = index.meta()?;
    let incarnation = meta.map_or_else(|| Incarnation(seam::random_u128()), |meta| meta.incarnation);
    let mut state = FileState::new(incarnation, options.tail_cache);
    if meta.is_some() {
        state.load(&index.snapshot()?)?;
    }
    let opened = replay(Arc::clone(&disk), dir, &options, meta, &mut state)?;
    let store = check_identity(&opened, meta)?;
    let base = Base {
        index: begin(&index, meta, store, incarnation)?,
        end: meta.map_or(Mark::START, |meta| meta.mark),
    };
    if meta.is_none() {
        state.rows.rebase(Some(Arc::clone(&base.index)));
        state.tails.attach(Arc::clone(&base.index))?;
    }
    let footers = Arc::new(Footers::open(Arc::clone(&disk), dir, store)?);
    let directory = Arc::new(read_directory(&opened, &footers)?);
    let archive = Archive::new(opened.reader.clone(), Arc::clone(&footers), directory);
    state.end = opened.writer.end();
    state.load_kept()?;
    state.finish_load(archive.clone());
    state.check_complete()?;
    state.note_expiries()?;
    let clock = StoreClock::resume(clock, state.clock_mark, options.clock_settle);
    // The next checkpoint writes down how far the clock is trusted, also if nothing is logged before it.
    state.clock_mark = clock.mark(clock.now());
    let published = Arc::clone(&state.published);
    let replayed = opened.recovered.bytes;
    let tails_in_memory = state.tails.complete();
    let shared = Arc::new(Shared {
        dir: dir.to_owned(),
        disk,
        incarnation,
        clock,
        state: RwLock::new(state),
        pipeline: Pipeline::default(),
        durable: watch::Sender::new(Durable::default()),
        wakeups: LocalWakeups::default(),
        log: opened.log,
        reader: opened.reader,
        footers,
        archive,
        file_readers: Arc::new(Semaphore::new(FILE_READERS)),
        published,
        recent_marks: RecentMarks::default(),
        base: Mutex::new(base),
        patience,
        tails_in_memory,
        log_bytes: replayed.into(),
        checkpoint: Mutex::default(),
        checkpoint_called: parking_lot::Condvar::new(),
        checkpointed: tokio::sync::Notify::new(),
        options,
    });
    let checkpointer = Arc::new(Checkpointer::new(index, store, incarnation));
    start(shared, checkpointer, opened.writer, lock)
}

/// Replays the log from the checkpoint on.
fn replay(
    disk: Arc<dyn Disk>,
    dir: &Path,
    options: &FileOptions,
    meta: Option<Meta>,
    state: &mut FileState,
) -> Result<Opened> {
    let mut clock_mark = meta.map_or_else(ClockMark::default, |meta| meta.clock);
    let range = Replay { from: meta.map(|meta| meta.mark), must_reach: meta.map(|meta| meta.mark.position) };
    let visit = &mut |frame: super::log::Frame| {
        clock_mark = clock_mark.at(frame.stamp.calendar, frame.stamp.steady);
        state.replay(&frame)
    };
    let opened = Log::open(disk, dir, options.log_options(), range, visit).map_err(open_error)?;
    state.clock_mark = clock_mark;
    Ok(opened)
}

/// The log and the index must be of one store, and a log without its beginning needs its index.
fn check_identity(opened: &Opened, meta: Option<Meta>) -> Result<u128> {
    let store = opened.log.store_id();
    match meta {
        Some(meta) if meta.mark != Mark::START && meta.store != store => Err(StoreError::Corrupt {
            what: "index.redb belongs to another store than the log beside it; restore both from one backup"
                .to_owned(),
        }),
        None if opened.log.segments().first().is_some_and(|first| first.first_frame != 1) => {
            let what =
                "index.redb is missing, and the log alone no longer holds everything; restore a backup";
            Err(StoreError::Corrupt { what: what.to_owned() })
        }
        _ => Ok(store),
    }
}

/// The index as of its last checkpoint; a new one gets an empty first one, which fixes the store's names.
fn begin(
    index: &Index,
    meta: Option<Meta>,
    store: u128,
    incarnation: Incarnation,
) -> Result<Arc<super::index::Snapshot>> {
    if meta.is_none_or(|meta| meta.store != store) {
        let clock = meta.map_or_else(ClockMark::default, |meta| meta.clock);
        index.write(&Meta { store, incarnation, mark: Mark::START, clock }, &CheckpointWrite::default())?;
    }
    index.snapshot()
}

/// What all segments hold: from their footers, and for those that have none from the segments themselves.
fn read_directory(opened: &Opened, footers: &Footers) -> Result<Directory> {
    let directory = Directory::default();
    let segments = opened.log.segments();
    let with_footer = footers.serials()?;
    for serial in
        with_footer.iter().filter(|serial| segments.iter().all(|segment| segment.serial != **serial))
    {
        footers.remove(*serial)?;
    }
    // Only a run of the oldest segments may be sealed: the rest is looked up in the open ones.
    let mut all_sealed = true;
    for (at, segment) in segments.iter().enumerate() {
        let last = at + 1 == segments.len();
        all_sealed &= !last && with_footer.binary_search(&segment.serial).is_ok();
        let table = if all_sealed { read_footer(opened, footers, segment.serial) } else { None };
        all_sealed &= table.is_some();
        match table {
            Some(table) => drop(directory.seal(table)),
            None => scan_segment(&opened.reader, segment.serial, &directory)?,
        }
    }
    Ok(directory)
}

/// The footer of a segment, unless it has to be made again.
fn read_footer(opened: &Opened, footers: &Footers, serial: u64) -> Option<SegmentTable> {
    match footers.table(serial) {
        Ok(Some(table)) if Some(table.seed) == opened.log.seed(serial) => Some(table),
        Ok(None) => {
            tracing::info!(serial, "footer was written by a release before and is made again");
            None
        }
        Ok(Some(_)) => {
            tracing::warn!(serial, "footer is of another life of its segment and is made again");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "footer is made again from its segment");
            None
        }
    }
}

fn scan_segment(reader: &LogReader, serial: u64, directory: &Directory) -> Result<()> {
    directory.add_segment(serial);
    let mut position = Position { serial, offset: super::log::FIRST_FRAME };
    loop {
        let frames = reader.frames_from(position, SCAN_BYTES).map_err(read_error)?;
        let Some(last) = frames.last() else { return Ok(()) };
        position = last.end().position;
        for frame in &frames {
            if frame.position.serial != serial {
                return Ok(());
            }
            let time = laneway_core::Timestamp(frame.stamp.calendar);
            directory.add(frame.position, time, &contents_of(frame).map_err(read_error)?);
        }
    }
}

fn start(
    shared: Arc<Shared>,
    checkpointer: Arc<Checkpointer>,
    writer: super::log::LogWriter,
    lock: Option<DirectoryLock>,
) -> Result<FileStore> {
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        seam::spawn(name, work)
            .map_err(|error| StoreError::Down { reason: format!("could not start {name}: {error}") })
    };
    let index = Arc::clone(&shared.base.lock().index);
    let large = index.value_count()? > CHECK_AT_OPEN;
    if !large {
        index.check()?;
    }
    let write = WriteThread::new(Arc::clone(&shared), writer);
    let mut threads = vec![spawn("laneway-write", Box::new(move || write.run()))?];
    if shared.options.background == Background::Threads {
        let (shared, checkpointer) = (Arc::clone(&shared), Arc::clone(&checkpointer));
        threads.push(spawn("laneway-checkpoint", Box::new(move || checkpointer.serve(&shared)))?);
    }
    if large {
        let shared = Arc::clone(&shared);
        threads.push(spawn("laneway-check", Box::new(move || check_index(&shared, &index)))?);
    }
    Ok(FileStore::new(shared, checkpointer, threads, lock))
}

/// Reads the whole index once while work goes on; a damaged one stops the store.
fn check_index(shared: &Shared, index: &super::index::Snapshot) {
    if let Err(error) = index.check_until(|| shared.checkpoint.lock().stop) {
        tracing::error!(%error, "index is damaged; store stops taking work");
        shared.pipeline.close(&error.to_string());
        shared.checkpointed.notify_waiters();
    }
}

/// Puts the state back to what is durable: the last checkpoint and the frames after it.
pub(super) fn reload(shared: &Shared, state: &mut FileState) -> Result<()> {
    let base = shared.base.lock().clone();
    let mut durable = FileState::new(state.incarnation, shared.options.tail_cache);
    durable.load(&base.index)?;
    let mut position = base.end.position;
    loop {
        let frames = shared.reader.frames_from(position, SCAN_BYTES).map_err(read_error)?;
        let Some(last) = frames.last() else { break };
        position = last.end().position;
        for frame in &frames {
            durable.replay(frame).map_err(read_error)?;
        }
    }
    durable.published = Arc::clone(&shared.published);
    // Whoever has seen the group that failed waits for a number that never comes, and is told so.
    durable.groups = shared.durable.borrow().groups;
    (durable.end, durable.clock_mark) = (state.end, state.clock_mark);
    durable.load_kept()?;
    durable.finish_load(shared.archive.clone());
    durable.note_expiries()?;
    *state = durable;
    Ok(())
}
