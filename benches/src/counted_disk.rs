//! The machine's disk with counters, so that syncs, log bytes and checkpoints of the store are seen from outside.
//!
//! Adds a few counter updates to each call of the store's disk seam and nothing else; the calls are those of
//! the real disk.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use laneway_embedded::file::disk::{Disk, DiskFile, RealDisk};

use crate::seam;

/// How often an idle disk is looked at, and how many looks without a change make it quiet.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const QUIET_LOOKS: u32 = 5;

/// The real disk, counting.
#[derive(Debug, Default)]
pub(crate) struct CountedDisk {
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    log_syncs: AtomicU64,
    log_bytes: AtomicU64,
    fill_bytes: AtomicU64,
    index_syncs: AtomicU64,
    index_bytes: AtomicU64,
}

/// What was written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskCounts {
    /// Syncs that made frames durable.
    pub(crate) log_syncs: u64,
    /// Bytes of frames.
    pub(crate) log_bytes: u64,
    /// Zeros written ahead.
    pub(crate) fill_bytes: u64,
    /// Syncs of the index.
    pub(crate) index_syncs: u64,
    /// Bytes of the index.
    pub(crate) index_bytes: u64,
}

impl CountedDisk {
    pub(crate) fn counts(&self) -> DiskCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        DiskCounts {
            log_syncs: read(&counters.log_syncs),
            log_bytes: read(&counters.log_bytes),
            fill_bytes: read(&counters.fill_bytes),
            index_syncs: read(&counters.index_syncs),
            index_bytes: read(&counters.index_bytes),
        }
    }

    /// Waits until nothing was written for a moment, so that preparation does not run into a measurement.
    pub(crate) fn wait_until_quiet(&self, at_most: Duration) {
        let start = seam::now();
        let (mut last, mut looks) = (self.counts(), 0);
        while looks < QUIET_LOOKS && seam::now().duration_since(start) < at_most {
            seam::rest(LOOK_EVERY);
            let counts = self.counts();
            looks = if counts == last { looks + 1 } else { 0 };
            last = counts;
        }
    }

    fn wrap(&self, path: &Path, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let is_index = path.extension().is_some_and(|extension| extension == "redb");
        let counters = Arc::clone(&self.counters);
        Arc::new(CountedFile { file, is_index, has_frames: AtomicBool::new(false), counters })
    }
}

impl Disk for CountedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, RealDisk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, RealDisk.open(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealDisk.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealDisk.exists(path)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        RealDisk.size(path)
    }

    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        RealDisk.free(dir)
    }
}

#[derive(Debug)]
struct CountedFile {
    file: Arc<dyn DiskFile>,
    is_index: bool,
    /// Something other than zeros was written since the last sync.
    has_frames: AtomicBool,
    counters: Arc<Counters>,
}

impl CountedFile {
    /// A frame begins with its length and checksum, so eight zero bytes begin none: they are a segment being
    /// prepared.
    fn counter_of(&self, bytes: &[u8]) -> &AtomicU64 {
        if self.is_index {
            return &self.counters.index_bytes;
        }
        if bytes.iter().take(8).all(|byte| *byte == 0) {
            return &self.counters.fill_bytes;
        }
        self.has_frames.store(true, Ordering::Relaxed);
        &self.counters.log_bytes
    }
}

impl DiskFile for CountedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.counter_of(bytes).fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.is_index {
            self.counters.index_syncs.fetch_add(1, Ordering::Relaxed);
        } else if self.has_frames.swap(false, Ordering::Relaxed) {
            self.counters.log_syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_zeros_and_the_index_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CountedDisk::default();
        let segment = disk.create(&folder.path().join("1.seg")).unwrap();
        segment.write_at(&[0; 64], 0).unwrap();
        segment.sync_data().unwrap();
        assert_eq!(disk.counts(), DiskCounts { fill_bytes: 64, ..DiskCounts::default() });
        segment.write_at(&[1; 16], 0).unwrap();
        segment.sync_data().unwrap();
        let index = disk.create(&folder.path().join("index.redb")).unwrap();
        index.write_at(&[0; 8], 0).unwrap();
        index.sync_data().unwrap();
        let expected =
            DiskCounts { log_syncs: 1, log_bytes: 16, fill_bytes: 64, index_syncs: 1, index_bytes: 8 };
        assert_eq!(disk.counts(), expected);
    }
}
