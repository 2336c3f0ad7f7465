//! Empties the folder of a store, and only that.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// What a store keeps in its folder.
const OURS: [&str; 4] = ["LOCK", "contents", "index.redb", "log"];
const LOCK: &str = "LOCK";

/// Why a folder was not emptied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("{} is not the folder of a store: it has {found:?}; nothing was removed", folder.display())]
    Foreign { folder: PathBuf, found: String },
    #[error("{} is in use by another process; nothing was removed", folder.display())]
    InUse { folder: PathBuf },
    #[error("cannot empty {}", folder.display())]
    Io {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Removes what a store keeps in a folder. One that is not there is empty; one that has anything else is refused whole.
pub(crate) fn empty_folder(folder: &Path) -> Result<(), FolderError> {
    let fail = |source| FolderError::Io { folder: folder.to_owned(), source };
    let foreign = |found: String| FolderError::Foreign { folder: folder.to_owned(), found };
    let kind = match folder.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        kind => kind.map_err(fail)?,
    };
    if !kind.is_dir() {
        return Err(foreign("no folder, but a file or a link".to_owned()));
    }
    let mut names = Vec::new();
    for entry in folder.read_dir().map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        if !OURS.iter().any(|ours| name == *ours) {
            return Err(foreign(name.to_string_lossy().into_owned()));
        }
        names.push(name);
    }
    if names.is_empty() {
        return Ok(());
    }
    let _lock = lock(folder)?;
    for name in names.into_iter().filter(|name| name != LOCK) {
        let path = folder.join(name);
        let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        removed.map_err(fail)?;
    }
    Ok(())
}

/// The lock that a store holds while it is open.
fn lock(folder: &Path) -> Result<File, FolderError> {
    let fail = |source| FolderError::Io { folder: folder.to_owned(), source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(folder.join(LOCK)).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::InUse { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(fail(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_folder_of_a_store_is_emptied() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("store");
        empty_folder(&folder).unwrap();
        std::fs::create_dir_all(folder.join("log")).unwrap();
        std::fs::write(folder.join("log/1.seg"), "x").unwrap();
        std::fs::write(folder.join("letters.txt"), "dear").unwrap();
        let refused = empty_folder(&folder).unwrap_err().to_string();
        assert!(refused.contains("letters.txt") && folder.join("log/1.seg").exists(), "{refused}");
        std::fs::remove_file(folder.join("letters.txt")).unwrap();
        empty_folder(&folder).unwrap();
        assert!(!folder.join("log").exists());
    }

    #[test]
    fn a_store_that_is_open_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let _held = lock(folder.path()).unwrap();
        assert!(matches!(empty_folder(folder.path()), Err(FolderError::InUse { .. })));
    }
}
