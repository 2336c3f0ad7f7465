//! The steps of a verification: lock, index, log from its first frame, then what both say of the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_core::{Result, StoreError};

use super::finding::{Finding, FindingKind, Place};
use super::overlay::{Overlay, ReadOnly};
use super::report::VerifyReport;
use super::stand;
use super::walk::Walk;
use crate::file::disk::Disk;
use crate::file::index::{Index, Meta, Patience};
use crate::file::lock::DirectoryLock;
use crate::file::log::{Log, LogError, Mark, Opened, Replay};
use crate::file::options::{Background, FileOptions};
use crate::file::state::{FileState, Footers};

/// Reads the store in a folder whole and reports what is wrong with it.
///
/// All frames and their checksums, every record, the chain of every lane, the footers, the index with its
/// checksums, and whether index and log fit together. A `prev` below the trim or in a segment that is no more is
/// no gap. Damage of the log ends the walk there: what lies behind it is not read, as it would not be at a start.
///
/// Changes no byte of the folder but the text in `LOCK`, which it holds meanwhile, and opens no other file for writing.
/// Memory grows with the number of lanes that have events in the log, about a hundred bytes for each.
///
/// Refuses: a folder without a store (`NotFound`), one that is in use or cannot be read (`Down`).
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// use laneway_embedded::FileStore;
/// use laneway_embedded::file::verify;
/// FileStore::open(folder.path()).unwrap().close().unwrap();
/// let report = verify(folder.path()).unwrap();
/// assert!(report.is_clean(), "{report}");
/// ```
pub fn verify(dir: impl AsRef<Path>) -> Result<VerifyReport> {
    let dir = dir.as_ref();
    check_exists(&ReadOnly, dir)?;
    let _lock =
        DirectoryLock::acquire(dir).map_err(|error| StoreError::Down { reason: error.to_string() })?;
    verify_on(Arc::new(ReadOnly), dir)
}

/// As [`verify`], on another disk, such as a simulated one. There is no lock on the folder.
pub fn verify_on(disk: Arc<dyn Disk>, dir: impl AsRef<Path>) -> Result<VerifyReport> {
    let dir = dir.as_ref();
    check_exists(disk.as_ref(), dir)?;
    let disk: Arc<dyn Disk> = Arc::new(Overlay::over(disk));
    let mut report = VerifyReport::default();
    let (meta, state) = match read_index(disk.as_ref(), dir) {
        Ok(found) => found,
        Err(StoreError::Corrupt { what }) => {
            let place = Place { file: PathBuf::from("index.redb"), offset: 0 };
            report.add(Finding::new(FindingKind::Damage, what).at(place));
            (None, None)
        }
        Err(error) => return Err(error),
    };
    read_log(disk, dir, meta, state, &mut report)?;
    Ok(report)
}

fn check_exists(disk: &dyn Disk, dir: &Path) -> Result<()> {
    match disk.list(&dir.join("log")) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(StoreError::NotFound { what: format!("store in {}", dir.display()) })
        }
        Err(error) => Err(StoreError::Down { reason: format!("could not read {}: {error}", dir.display()) }),
    }
}

/// The last checkpoint, and the state as of it.
fn read_index(disk: &dyn Disk, dir: &Path) -> Result<(Option<Meta>, Option<FileState>)> {
    let options = FileOptions::default();
    let index = Index::open(disk, dir, options.index_cache_bytes, Patience::new(false))?;
    let Some(meta) = index.meta()? else {
        return Ok((None, Some(FileState::new(laneway_core::Incarnation(0), options.tail_cache))));
    };
    let snapshot = index.snapshot()?;
    snapshot.check()?;
    let mut state = FileState::new(meta.incarnation, options.tail_cache);
    state.load(&snapshot)?;
    Ok((Some(meta), Some(state)))
}

fn read_log(
    disk: Arc<dyn Disk>,
    dir: &Path,
    meta: Option<Meta>,
    state: Option<FileState>,
    report: &mut VerifyReport,
) -> Result<()> {
    let options = FileOptions { background: Background::Manual, ..FileOptions::default() }.log_options();
    let footers = meta.map(|meta| Footers::open(Arc::clone(&disk), dir, meta.store)).transpose()?;
    let range = Replay { from: None, must_reach: meta.map(|meta| meta.mark.position) };
    let mut walk = Walk::new(report, meta.map_or(1, |meta| meta.mark.number), state, footers.as_ref());
    let opened = Log::open(disk, dir, options, range, &mut |frame| walk.frame(&frame));
    walk.end_segment();
    let Walk { chains, state, stashed, time, .. } = walk;
    report.lanes = chains.lane_count();
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            report.add(damage(dir, error)?);
            return Ok(());
        }
    };
    report.segments = opened.log.segments().len() as u64;
    report.torn_bytes = opened.recovered.cut.as_ref().map_or(0, |cut| cut.bytes);
    if let Some(finding) = check_identity(&opened, meta) {
        report.add(finding);
    }
    let Some(mut state) = state else { return Ok(()) };
    let checked = state
        .load_kept()
        .and_then(|()| stand::check(&state, &chains, report))
        .and_then(|()| stand::check_results(&state, time, stashed, report));
    match checked {
        Err(StoreError::Corrupt { what }) => {
            report.add(Finding::new(FindingKind::Damage, what));
            Ok(())
        }
        result => result,
    }
}

/// What the log says is wrong with it; anything else than its bytes is no finding but an error.
fn damage(dir: &Path, error: LogError) -> Result<Finding> {
    let (file, offset, what) = match error {
        LogError::Corrupt { file, offset, what } => {
            (file, offset, format!("{what}; what follows was not read"))
        }
        LogError::Newer { ref file, .. } => (file.clone(), 0, error.to_string()),
        other => return Err(StoreError::Down { reason: other.to_string() }),
    };
    let file = file.strip_prefix(dir).map_or_else(|_| file.clone(), Path::to_path_buf);
    Ok(Finding::new(FindingKind::Damage, what).at(Place { file, offset }))
}

/// Log and index must be of one store, and a log without its beginning needs its index.
fn check_identity(opened: &Opened, meta: Option<Meta>) -> Option<Finding> {
    let what = match meta {
        Some(meta) if meta.mark != Mark::START && meta.store != opened.log.store_id() => {
            "the index belongs to another store than the log beside it"
        }
        None if opened.log.segments().first().is_some_and(|first| first.first_frame != 1) => {
            "the index is missing, and the log alone no longer holds everything"
        }
        _ => return None,
    };
    Some(Finding::new(FindingKind::Mismatch, what).at(Place { file: PathBuf::from("index.redb"), offset: 0 }))
}
