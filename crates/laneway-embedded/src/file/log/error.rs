//! What can go wrong in the log, by what the caller does next.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An error of the log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Nothing was written and the log is healthy: refuse new work, settle what runs with
    /// [`Space::Reserve`](super::Space::Reserve), try again later.
    #[error("disk full: no prepared space for a frame of {needed} bytes in {}; free space and repeat", dir.display())]
    Full {
        /// Bytes of the frame.
        needed: u64,
        /// The log's folder.
        dir: PathBuf,
    },
    /// The log accepts nothing more in this process. Whether the call that met the error took effect is
    /// unknown until the next open; reading still works.
    #[error("{0}")]
    Poisoned(Arc<Poison>),
    /// Stored bytes are not what was written: do not start, restore or repair.
    #[error("corrupt log: {} at offset {offset}: {what}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where in it.
        offset: u64,
        /// What was expected and found.
        what: String,
    },
    /// Written by a newer release: use that release.
    #[error("{}: format version {found} is newer than {supported}, the newest this release can read", file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        supported: u32,
    },
    /// The frame can never be written: make it smaller.
    #[error("frame body of {size} bytes is larger than {limit}, the most that fits into a segment")]
    TooLarge {
        /// Length of the body.
        size: usize,
        /// The longest body allowed.
        limit: usize,
    },
    /// The frame asked for was given back with its segment.
    #[error("segment {serial} was released; the oldest one kept is {oldest}")]
    Released {
        /// The segment asked for.
        serial: u64,
        /// The oldest segment kept.
        oldest: u64,
    },
    /// Settings out of bounds.
    #[error("log options: {what}")]
    Options {
        /// Every setting that is wrong.
        what: String,
    },
    /// The file system refused a call that put no acknowledged frame at risk.
    #[error("could not {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The answer of the system.
        #[source]
        source: io::Error,
    },
}

/// Why the log stopped accepting frames.
#[derive(Debug, thiserror::Error)]
#[error(
    "log stopped: could not {action} {}: {error}; everything acknowledged before is safe and readable, \
     whether the last write took effect is decided at the next start: check the disk, then restart",
    path.display()
)]
pub struct Poison {
    /// What was tried when the first error came.
    pub action: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// The first error.
    pub error: io::Error,
}

/// Names action and path of a failed call.
pub(super) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> LogError {
    move |source| LogError::Io { action, path: path.to_owned(), source }
}

/// Whether the system said that there is no space left.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
