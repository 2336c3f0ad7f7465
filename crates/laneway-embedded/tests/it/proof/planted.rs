//! Planted bugs on the side of the disk: the proofs must catch both, or they prove nothing.

use std::io;
use std::path::Path;
use std::sync::Arc;

use futures::executor::block_on;
use laneway_embedded::SyncMode;
use laneway_embedded::file::disk::simulated::{Fault, SimulatedDisk};
use laneway_embedded::file::disk::{Disk, DiskFile};

use super::lives::{Lives, Tally, Way, Wrap};
use super::print;

/// What is wrong with the syncs of a disk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bug {
    /// A sync claims success without being made.
    AckBeforeSync,
    /// A sync that failed is made again, and that answer counts.
    RetryAfterSyncError,
}

#[derive(Debug)]
struct Buggy<T: ?Sized> {
    bug: Bug,
    inner: Arc<T>,
}

impl Buggy<dyn Disk> {
    fn file(&self, file: io::Result<Arc<dyn DiskFile>>) -> io::Result<Arc<dyn DiskFile>> {
        file.map(|inner| Arc::new(Buggy { bug: self.bug, inner }) as Arc<dyn DiskFile>)
    }
}

impl Disk for Buggy<dyn Disk> {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.file(self.inner.create(path))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.file(self.inner.open(path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        self.inner.size(path)
    }

    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        self.inner.free(dir)
    }
}

impl DiskFile for Buggy<dyn DiskFile> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.bug {
            Bug::AckBeforeSync => Ok(()),
            Bug::RetryAfterSyncError => self.inner.sync_data().or_else(|_| self.inner.sync_data()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
}

pub(super) fn buggy(bug: Bug, disk: SimulatedDisk) -> Arc<dyn Disk> {
    Arc::new(Buggy { bug, inner: Arc::new(disk) as Arc<dyn Disk> })
}

fn way(seed: u64, wrap: Wrap) -> Way {
    Way { seed, actors: 2, together: false, sync: SyncMode::Always, wrap }
}

/// How many of these disks show the bug by a violation.
fn caught(seeds: std::ops::Range<u64>, mut run: impl FnMut(u64) -> Result<(), String>) -> usize {
    seeds.filter(|seed| run(*seed).is_err()).count()
}

#[test]
fn ack_before_sync_is_caught_by_power_cuts() {
    let found = caught(0..5, |seed| {
        let mut lives = Lives::begin(way(seed, |disk| buggy(Bug::AckBeforeSync, disk)));
        lives.run(12, &mut Tally::default())
    });
    print(&format!("planted bug, ack before sync: caught on {found} of 5 disks"));
    assert!(found > 0, "the power cuts do not see an acknowledgement before its sync");
}

/// One failed sync, some more work, one power cut.
fn fail_a_sync(seed: u64, wrap: Wrap) -> Result<(), String> {
    let mut lives = Lives::begin(way(seed, wrap));
    let store = lives.open().map_err(|error| error.to_string())?;
    lives.disk.fail_nth(lives.rng.u64(1..20), Fault::SyncError);
    block_on(lives.work(&store, 12))?;
    lives.disk.power_off_at(1);
    drop(store);
    lives.disk.clear_faults();
    lives.disk.power_cut(&mut lives.rng);
    lives.recover(&mut Tally::default())
}

#[test]
fn retry_after_a_sync_error_is_caught_by_failing_syncs() {
    let found = caught(0..20, |seed| fail_a_sync(seed, |disk| buggy(Bug::RetryAfterSyncError, disk)));
    print(&format!("planted bug, retry after a sync error: caught on {found} of 20 disks"));
    assert!(found > 0, "failing syncs do not show a repeated sync");
    let honest = caught(0..20, |seed| fail_a_sync(seed, |disk| Arc::new(disk)));
    assert_eq!(honest, 0, "the same without the bug");
}
