//! Backup: a consistent copy of the folder, made while work goes on.
//!
//! The index is copied first, as of a fresh checkpoint, and the log after it, up to what is durable then: a store
//! opened on the copy replays the difference. The copy has an incarnation of its own, because whoever works on it
//! goes on from an older moment: shards are adopted, ids jump, and holders of old fences are refused.

use std::path::Path;

use laneway_core::{Incarnation, Result, StoreError};

use super::checkpoint::Checkpointer;
use super::disk::Disk;
use super::index::{CheckpointWrite, Index, Patience};
use super::seam;
use super::store::{FileStore, Shared};

/// How much is copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Bytes copied.
    pub bytes: u64,
    /// Log segments copied.
    pub segments: usize,
    /// The incarnation of the copy.
    pub incarnation: Incarnation,
}

impl FileStore {
    /// Copies the store into an empty folder while it goes on working. The copy holds everything that was
    /// acknowledged before the call.
    ///
    /// Refuses: a folder that has files already.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<Backup> {
        let shared = self.shared();
        let to = to.as_ref();
        super::open::create_dir(shared.disk.as_ref(), to)?;
        let names = shared.disk.list(to).map_err(|error| failed("list", to, &error))?;
        if let Some(name) = names.first() {
            return Err(StoreError::Down { reason: format!("{} is not empty: it has {name}", to.display()) });
        }
        self.checkpoint()?;
        self.inner.checkpointer.hold(|| copy_all(shared, &self.inner.checkpointer, to))
    }
}

/// Copies everything; no checkpoint runs and no segment is given back meanwhile.
fn copy_all(shared: &Shared, checkpointer: &Checkpointer, to: &Path) -> Result<Backup> {
    let (disk, from) = (shared.disk.as_ref(), shared.dir.as_path());
    let mut bytes = copy(disk, from, to, "index.redb", u64::MAX)?;
    for folder in ["contents", "log"] {
        super::open::create_dir(disk, &to.join(folder))?;
    }
    for serial in shared.footers.serials()? {
        bytes += copy(disk, from, to, &format!("contents/{serial:020}.idx"), u64::MAX)?;
    }
    // Segments given back a moment ago may lose their names any time; none are given back from now on.
    let mut segments = shared.log.segments();
    segments.retain(|segment| !segment.released);
    for segment in &segments {
        bytes += copy(disk, from, to, &format!("log/{:020}.seg", segment.serial), segment.end)?;
    }
    for folder in ["contents", "log", ""] {
        let folder = to.join(folder);
        disk.sync_dir(&folder).map_err(|error| failed("sync", &folder, &error))?;
    }
    let incarnation = Incarnation(seam::random_u128());
    rename_life(disk, to, checkpointer, incarnation)?;
    Ok(Backup { bytes, segments: segments.len(), incarnation })
}

/// Gives the copy an incarnation of its own.
fn rename_life(
    disk: &dyn Disk,
    to: &Path,
    checkpointer: &Checkpointer,
    incarnation: Incarnation,
) -> Result<()> {
    let index = Index::open(disk, to, COPY_BYTES, Patience::new(false))?;
    let meta = index.meta()?.ok_or_else(|| StoreError::Corrupt {
        what: format!("{}: the copied index has no checkpoint", to.display()),
    })?;
    checkpointer.check_store(&meta)?;
    index.write(&super::index::Meta { incarnation, ..meta }, &CheckpointWrite::default())
}

fn copy(disk: &dyn Disk, from: &Path, to: &Path, name: &str, end: u64) -> Result<u64> {
    let (from, to) = (from.join(name), to.join(name));
    let source = disk.open(&from).map_err(|error| failed("open", &from, &error))?;
    let target = disk.create(&to).map_err(|error| failed("create", &to, &error))?;
    let end = source.len().map_err(|error| failed("read", &from, &error))?.min(end);
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < end {
        let wanted = usize::try_from(end - offset).unwrap_or(COPY_BYTES).min(COPY_BYTES);
        let read =
            source.read_at(&mut buffer[..wanted], offset).map_err(|error| failed("read", &from, &error))?;
        if read == 0 {
            return Err(StoreError::Corrupt {
                what: format!("{} ends at {offset}, not at {end}", from.display()),
            });
        }
        target.write_at(&buffer[..read], offset).map_err(|error| failed("write", &to, &error))?;
        offset += read as u64;
    }
    target.sync_data().map_err(|error| failed("sync", &to, &error))?;
    Ok(end)
}

fn failed(action: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Down { reason: format!("could not {action} {}: {error}", path.display()) }
}
