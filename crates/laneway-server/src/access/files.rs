//! Reads files that hold keys or tokens, if nobody else can.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::secret::Secret;

/// Longest file of keys or tokens in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// What a file must not allow: anything to others, and writing to its group. A group that may read is a usual way to
/// hand a key to a service.
const FORBIDDEN: u32 = 0o027;

/// Why a file of keys or tokens is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Others can read or change it.
    #[error(
        "{}: others may read or change it (mode {mode:04o}), and it holds secrets; allow it to its owner only: chmod 600 {}",
        path.display(), path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is no file of keys or tokens.
    #[error("{}: {wrong}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        wrong: String,
    },
}

/// The text of a file that only its owner, and maybe its group, can read.
pub(crate) fn read_private(path: &Path) -> Result<Secret, FileError> {
    let unreadable = |source| FileError::Unreadable { path: path.to_owned(), source };
    let wrong = |wrong: String| FileError::Wrong { path: path.to_owned(), wrong };
    // The mode is asked of what was opened: the name may mean another file a moment later.
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    let mode = about.permissions().mode() & 0o777;
    if mode & FORBIDDEN != 0 {
        return Err(FileError::Open { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => wrong("is no text".to_owned()),
        _ => unreadable(error),
    })?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("is longer than {FILE_BYTES_MAX} bytes")));
    }
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_command_that_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, "text").unwrap();
        for (mode, good) in
            [(0o600, true), (0o400, true), (0o640, true), (0o644, false), (0o620, false), (0o601, false)]
        {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match read_private(&path) {
                Ok(text) => assert!(good && text.reveal() == "text", "{mode:o}"),
                Err(error) => assert!(!good && error.to_string().contains("chmod 600"), "{mode:o}: {error}"),
            }
        }
        assert!(read_private(&folder.path().join("none")).unwrap_err().to_string().contains("cannot read"));
    }
}
