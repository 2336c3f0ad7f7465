//! Backup: a consistent copy of the folder, made while work goes on.
//!
//! The index is copied first, as of a fresh checkpoint and value by value, and the log after it, up to what is durable
//! then: a store opened on the copy replays the difference. Appends and checkpoints go on meanwhile; only segments are not
//! given back before the copy is made. The copy has an incarnation of its own, because whoever works on it
//! goes on from an older moment: shards are adopted, ids jump, and holders of old fences are refused.
//!
//! Invariant: a folder has the name that was asked for only if it holds the whole copy, durably.

use std::path::{Path, PathBuf};

use laneway_core::{Incarnation, Result, StoreError};

use super::disk::Disk;
use super::index::{Index, Meta, Patience, Snapshot};
use super::seam;
use super::store::{FileStore, Shared};

/// How much is copied at a time.
const COPY_BYTES: usize = 1 << 20;
/// How much is copied between two syncs.
const SYNC_BYTES: u64 = 8 << 20;

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
    /// Copies the store into a new folder while it goes on working. The copy holds everything that was acknowledged
    /// before the call.
    ///
    /// The folder appears under its name when the copy is complete and durable; until then it has a name of its own that
    /// ends in `.partial`. If the copy fails, nothing is left. If the process dies, the `.partial` folder is left: it is
    /// not a backup, remove it.
    ///
    /// Refuses: a folder that has files already.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<Backup> {
        self.backup_while(to, || true)
    }

    /// Copies as [`backup`](Self::backup) does, for as long as `go_on` answers true; it is asked once per MiB or so. After
    /// a false the call fails and nothing is left.
    pub fn backup_while(&self, to: impl AsRef<Path>, go_on: impl Fn() -> bool) -> Result<Backup> {
        let shared = self.shared();
        let (disk, to) = (shared.disk.as_ref(), to.as_ref());
        let partial = partial_name(to)?;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        super::open::create_dir(disk, parent)?;
        check_free(disk, to)?;
        let check = || if go_on() { Ok(()) } else { Err(stopped(to)) };
        let copied = self.copy_to(&partial, &check).and_then(|backup| {
            check()?;
            disk.rename(&partial, to).map_err(|error| failed("create", to, &error))?;
            Ok(backup)
        });
        match copied {
            Ok(backup) => {
                disk.sync_dir(parent).map_err(|error| failed("sync", parent, &error))?;
                Ok(backup)
            }
            Err(error) => Err(remove_partial(disk, &partial, error)),
        }
    }

    /// How many bytes a backup made now would have, roughly: what is appended until its end is not counted.
    pub fn backup_bytes(&self) -> Result<u64> {
        let shared = self.shared();
        let index = shared.dir.join("index.redb");
        let index = shared.disk.size(&index).map_err(|error| failed("read", &index, &error))?;
        let segments = shared.log.segments();
        let kept = segments.iter().filter(|segment| !segment.released);
        Ok(index + kept.map(|segment| segment.end).sum::<u64>())
    }

    fn copy_to(&self, to: &Path, check: &dyn Fn() -> Result<()>) -> Result<Backup> {
        let shared = self.shared();
        super::open::create_dir(shared.disk.as_ref(), to)?;
        self.checkpoint()?;
        // Nothing is given back from here on, so everything the copied index speaks of stays in the log.
        let _pinned = shared.log.pin();
        let (meta, snapshot) = self.inner.checkpointer.current()?;
        copy_all(shared, &meta, &snapshot, to, check)
    }
}

/// The name that a copy has until it is complete: no two copies share one.
fn partial_name(to: &Path) -> Result<PathBuf> {
    let name = to.file_name().ok_or_else(|| StoreError::Down {
        reason: format!("{} does not name a folder to create", to.display()),
    })?;
    Ok(to.with_file_name(format!("{}.{:016x}.partial", name.to_string_lossy(), seam::random_u64())))
}

/// Refuses a target that has files already.
fn check_free(disk: &dyn Disk, to: &Path) -> Result<()> {
    let names = match disk.list(to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        names => names.map_err(|error| failed("list", to, &error))?,
    };
    match names.first() {
        Some(name) => {
            Err(StoreError::Down { reason: format!("{} is not empty: it has {name}", to.display()) })
        }
        None => Ok(()),
    }
}

/// Removes what there is of a copy that failed, and answers why it failed.
fn remove_partial(disk: &dyn Disk, partial: &Path, error: StoreError) -> StoreError {
    let removed = [partial.join("log"), partial.to_owned()].iter().try_for_each(|folder| {
        let names = match disk.list(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            names => names?,
        };
        names.iter().try_for_each(|name| disk.remove(&folder.join(name)))?;
        disk.remove_dir(folder)
    });
    match removed {
        Ok(()) => error,
        Err(left) => StoreError::Down {
            reason: format!("{error}; could not remove {}, which is not a backup: {left}", partial.display()),
        },
    }
}

/// Copies everything while checkpoints and appends go on.
fn copy_all(
    shared: &Shared,
    meta: &Meta,
    snapshot: &Snapshot,
    to: &Path,
    check: &dyn Fn() -> Result<()>,
) -> Result<Backup> {
    let (disk, from) = (shared.disk.as_ref(), shared.dir.as_path());
    let incarnation = Incarnation(seam::random_u128());
    {
        let index = Index::open(disk, to, COPY_BYTES, Patience::new(false))?;
        snapshot.copy_into(&index, &Meta { incarnation, ..*meta }, check)?;
    }
    let index = to.join("index.redb");
    let mut bytes = disk.size(&index).map_err(|error| failed("read", &index, &error))?;
    super::open::create_dir(disk, &to.join("log"))?;
    // Segments released before the checkpoint are not needed and may disappear at any time. Replay of the copy starts in
    // the checkpoint's segment, so copy that one and all later ones, even if they have been released since: the pin keeps
    // their files. Opening the copy rebuilds the footers.
    let mut segments = shared.log.segments();
    segments.retain(|segment| !segment.released || segment.serial >= meta.mark.position.serial);
    for segment in &segments {
        bytes += copy(disk, from, to, &format!("log/{:020}.seg", segment.serial), segment.end, check)?;
    }
    for folder in ["log", ""] {
        let folder = to.join(folder);
        disk.sync_dir(&folder).map_err(|error| failed("sync", &folder, &error))?;
    }
    Ok(Backup { bytes, segments: segments.len(), incarnation })
}

fn copy(
    disk: &dyn Disk,
    from: &Path,
    to: &Path,
    name: &str,
    end: u64,
    check: &dyn Fn() -> Result<()>,
) -> Result<u64> {
    let (from, to) = (from.join(name), to.join(name));
    let source = disk.open(&from).map_err(|error| failed("open", &from, &error))?;
    let target = disk.create(&to).map_err(|error| failed("create", &to, &error))?;
    let end = source.len().map_err(|error| failed("read", &from, &error))?.min(end);
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < end {
        check()?;
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
        // A little at a time: a flood of writes would hold up the syncs of the log.
        if offset.is_multiple_of(SYNC_BYTES) {
            target.sync_data().map_err(|error| failed("sync", &to, &error))?;
        }
    }
    target.sync_data().map_err(|error| failed("sync", &to, &error))?;
    Ok(end)
}

fn stopped(to: &Path) -> StoreError {
    StoreError::Down { reason: format!("the backup to {} was stopped before its end", to.display()) }
}

fn failed(action: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Down { reason: format!("could not {action} {}: {error}", path.display()) }
}
