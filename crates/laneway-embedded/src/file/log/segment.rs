//! The segments this process knows: names, ends, and a few open files.
//!
//! Says which segment holds a position and how far it may be read. Does not read frames.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use super::error::{LogError, io_error};
use super::frame::SegmentKey;
use crate::file::disk::{Disk, DiskFile};

/// How many segment files stay open for readers; a backlog of any length must not use up descriptors.
const OPEN_FILES_MAX: usize = 32;
const SEGMENT_SUFFIX: &str = ".seg";

/// What [`Log::segments`](super::Log::segments) tells of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its serial.
    pub serial: u64,
    /// Number of its first frame; equal to that of the next segment when it holds none.
    pub first_frame: u64,
    /// Where its frames end.
    pub end: u64,
    /// Whether no frame will be added.
    pub sealed: bool,
    /// Whether it is no longer needed and will go as soon as it is the oldest.
    pub released: bool,
    /// Length of its file.
    pub file_bytes: u64,
}

/// A segment, shared by writer, readers and upkeep.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) key: SegmentKey,
    pub(super) first_frame: u64,
    pub(super) growing: bool,
    file_bytes: AtomicU64,
    end: AtomicU64,
    sealed: AtomicBool,
    released: AtomicBool,
}

impl Segment {
    pub(super) fn new(
        key: SegmentKey,
        first_frame: u64,
        growing: bool,
        end: u64,
        file_bytes: u64,
    ) -> Segment {
        let (end, file_bytes) = (AtomicU64::new(end), AtomicU64::new(file_bytes));
        let (sealed, released) = (AtomicBool::new(false), AtomicBool::new(false));
        Segment { key, first_frame, growing, file_bytes, end, sealed, released }
    }

    /// How far readers may go. Ask [`Segment::is_sealed`] before, so that a sealed end is the last one.
    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(super) fn advance(&self, end: u64) {
        self.end.store(end, Ordering::Release);
        self.file_bytes.fetch_max(end, Ordering::Relaxed);
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.sealed.load(Ordering::Acquire)
    }

    pub(super) fn seal(&self) {
        self.sealed.store(true, Ordering::Release);
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    fn info(&self) -> SegmentInfo {
        let sealed = self.is_sealed();
        SegmentInfo {
            serial: self.key.serial,
            first_frame: self.first_frame,
            end: self.end(),
            sealed,
            released: self.released.load(Ordering::Acquire),
            file_bytes: self.file_bytes(),
        }
    }
}

/// All segments of the log, by serial.
#[derive(Debug)]
pub(super) struct Table {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    segments: RwLock<BTreeMap<u64, Arc<Segment>>>,
    /// Most recently used last.
    files: Mutex<Vec<(u64, Arc<dyn DiskFile>)>>,
    /// How many copies are being made: no file goes meanwhile.
    pins: AtomicUsize,
}

impl Table {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: PathBuf, segments: Vec<Segment>) -> Table {
        let segments = segments.into_iter().map(|segment| (segment.key.serial, Arc::new(segment))).collect();
        let (segments, files) = (RwLock::new(segments), Mutex::new(Vec::new()));
        Table { disk, dir, segments, files, pins: AtomicUsize::new(0) }
    }

    pub(super) fn get(&self, serial: u64) -> Option<Arc<Segment>> {
        self.segments.read().get(&serial).cloned()
    }

    pub(super) fn first(&self) -> Option<Arc<Segment>> {
        self.segments.read().first_key_value().map(|(_, segment)| Arc::clone(segment))
    }

    /// The segment after this one.
    pub(super) fn next(&self, serial: u64) -> Option<Arc<Segment>> {
        self.segments.read().range(serial + 1..).next().map(|(_, segment)| Arc::clone(segment))
    }

    pub(super) fn insert(&self, segment: Arc<Segment>) {
        self.segments.write().insert(segment.key.serial, segment);
    }

    pub(super) fn remove(&self, serial: u64) {
        self.segments.write().remove(&serial);
        self.files.lock().retain(|(open, _)| *open != serial);
    }

    pub(super) fn list(&self) -> Vec<SegmentInfo> {
        self.segments.read().values().map(|segment| segment.info()).collect()
    }

    /// Marks a segment as no longer needed. The newest one stays in any case: it carries the serial and the
    /// frame number from which the log goes on.
    pub(super) fn release(&self, serial: u64) {
        if let Some(segment) = self.segments.read().get(&serial) {
            segment.released.store(true, Ordering::Release);
        }
    }

    /// Keeps every file until [`Table::unpin`].
    pub(super) fn pin(&self) {
        self.pins.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn unpin(&self) {
        self.pins.fetch_sub(1, Ordering::AcqRel);
    }

    /// The oldest segment, if it may go. Only the oldest ever goes, so that a gap always means a loss.
    pub(super) fn oldest_released(&self) -> Option<Arc<Segment>> {
        if self.pins.load(Ordering::Acquire) > 0 {
            return None;
        }
        let segments = self.segments.read();
        let (_, segment) = segments.first_key_value()?;
        let free = segments.len() > 1 && segment.is_sealed() && segment.released.load(Ordering::Acquire);
        free.then(|| Arc::clone(segment))
    }

    pub(super) fn released_error(&self, serial: u64) -> LogError {
        LogError::Released { serial, oldest: self.first().map_or(0, |segment| segment.key.serial) }
    }

    pub(super) fn path(&self, serial: u64) -> PathBuf {
        self.dir.join(file_name(serial))
    }

    /// An open file of the segment.
    pub(super) fn file(&self, serial: u64) -> Result<Arc<dyn DiskFile>, LogError> {
        if let Some(file) = self.cached(serial) {
            return Ok(file);
        }
        let path = self.path(serial);
        match self.disk.open(&path) {
            Ok(file) => {
                self.keep_file(serial, Arc::clone(&file));
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.get(serial).is_none() => {
                Err(self.released_error(serial))
            }
            Err(error) => Err(io_error("open", &path)(error)),
        }
    }

    /// Remembers an open file for readers.
    pub(super) fn keep_file(&self, serial: u64, file: Arc<dyn DiskFile>) {
        // A segment released meanwhile must not come back into the cache, or its file would never be freed.
        let segments = self.segments.read();
        if !segments.contains_key(&serial) {
            return;
        }
        let mut files = self.files.lock();
        files.retain(|(open, _)| *open != serial);
        if files.len() >= OPEN_FILES_MAX {
            files.remove(0);
        }
        files.push((serial, file));
    }

    fn cached(&self, serial: u64) -> Option<Arc<dyn DiskFile>> {
        let mut files = self.files.lock();
        let index = files.iter().position(|(open, _)| *open == serial)?;
        let entry = files.remove(index);
        let file = Arc::clone(&entry.1);
        files.push(entry);
        Some(file)
    }
}

/// The name of a segment's file.
pub(super) fn file_name(serial: u64) -> String {
    format!("{serial:020}{SEGMENT_SUFFIX}")
}

/// The serial in the name of a segment's file.
pub(super) fn serial_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
    let valid = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if valid { digits.parse().ok() } else { None }
}

/// The log's folder inside the store's folder.
pub(super) fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_serial_and_nothing_else_is_taken_for_one() {
        assert_eq!(file_name(42), "00000000000000000042.seg");
        assert_eq!(serial_of(&file_name(42)), Some(42));
        assert_eq!(serial_of(&file_name(u64::MAX)), Some(u64::MAX));
        for name in
            ["42.seg", "0000000000000000004x.seg", "00000000000000000042.tmp", "+0000000000000000042.seg"]
        {
            assert_eq!(serial_of(name), None, "{name}");
        }
    }
}
