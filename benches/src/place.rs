//! Where the files of the durable rows go, and on what kind of file system that is.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Failure;

/// A folder for the files of this run, removed when dropped.
pub(crate) struct Place {
    folder: TempDir,
    /// Type of the file system as the kernel names it.
    pub(crate) filesystem: String,
}

impl Place {
    /// A fresh folder inside `dir`; without one, inside `target` of the current folder, or else where the system
    /// keeps temporary files.
    pub(crate) fn new(dir: Option<&Path>) -> Result<Self, Failure> {
        let parent = match dir {
            Some(dir) => {
                std::fs::create_dir_all(dir).map_err(|error| format!("--dir {}: {error}", dir.display()))?;
                dir.to_owned()
            }
            None if Path::new("target").is_dir() => PathBuf::from("target"),
            None => std::env::temp_dir(),
        };
        let folder = tempfile::Builder::new().prefix("laneway-bench-").tempdir_in(&parent)?;
        let filesystem = filesystem_of(&folder.path().canonicalize()?)?;
        Ok(Self { folder, filesystem })
    }

    /// A path inside the folder.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Removes what a row left behind, and lets the disk finish before the next row.
    pub(crate) fn clear(&self, name: &str) -> Result<(), Failure> {
        std::fs::remove_dir_all(self.join(name))?;
        rustix::fs::sync();
        Ok(())
    }
}

/// Type of the file system that holds an absolute path: that of the longest mount point above it.
fn filesystem_of(path: &Path) -> Result<String, Failure> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    Ok(type_in(&mounts, path).unwrap_or("unknown").to_owned())
}

fn type_in<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((Path::new(fields.next()?), fields.next()?))
    });
    let above = mounted.filter(|(point, _)| path.starts_with(point));
    // Of several mounts on one point the last one is what is seen.
    above.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_newest_mount_point_decides() {
        let mounts = "rootfs / rootfs rw 0 0\n/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n";
        assert_eq!(type_in(mounts, Path::new("/tmp/x")), Some("tmpfs"));
        assert_eq!(type_in(mounts, Path::new("/tmpx")), Some("ext4"));
        assert_eq!(type_in("", Path::new("/tmp")), None);
    }
}
