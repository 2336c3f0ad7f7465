//! Disk space of a folder, as the file system counts it.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Failure;

/// Bytes of one block in the count of a file.
const BLOCK_BYTES: u64 = 512;

/// What the files below a folder take, in MiB. A file that goes while it is looked at takes nothing.
pub(crate) fn folder_mib(folder: &Path) -> Result<f64, Failure> {
    Ok(folder_bytes(folder)? as f64 / (1 << 20) as f64)
}

fn folder_bytes(folder: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(found) if found.is_dir() => folder_bytes(&entry.path())?,
            Ok(found) => found.blocks() * BLOCK_BYTES,
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_below_count() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), vec![1; 3 << 20]).unwrap();
        let mib = folder_mib(folder.path()).unwrap();
        assert!((3.0..3.5).contains(&mib), "{mib}");
    }
}
