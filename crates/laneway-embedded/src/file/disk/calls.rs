//! The calls the store makes to a file system, and what it relies on.
//!
//! Only what is needed to keep bytes safe is here: no permissions, no times, no links. Locking of the
//! folder is not part of the seam, because a lock only means something in a real folder.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file system as the store sees it.
///
/// Creating, renaming and removing names is durable only after [`Disk::sync_dir`] of the folder.
pub trait Disk: Send + Sync + Debug {
    /// Creates a file that does not exist yet, for reading and writing, readable by its owner only.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a folder and its parents, open to the owner only; durable on return. An existing one is left alone.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// The names of all files in a folder, in no particular order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Gives a file another name, replacing the file of that name; or a folder, if that name is free or an empty folder.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name. Open handles of the file stay usable.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes all earlier changes of names in the folder durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Whether a file of this name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// The length of a file in bytes.
    fn size(&self, path: &Path) -> io::Result<u64>;

    /// The bytes that are free for files in a folder; none if the disk cannot tell. Others may take them at any time.
    fn free(&self, dir: &Path) -> io::Result<Option<u64>>;
}

/// An open file, usable from several threads at once.
#[expect(clippy::len_without_is_empty, reason = "an empty file means nothing special to the store")]
pub trait DiskFile: Send + Sync + Debug {
    /// Fills the buffer from `offset` on; answers fewer bytes only where the file ends.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes at `offset`; after an error any part of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes all earlier writes and the length durable. After an error nothing is known about them, and a
    /// second call may claim success without having written anything.
    fn sync_data(&self) -> io::Result<()>;

    /// Cuts or extends the file; what is added reads as zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
}
