//! A simulated disk that tells a test of every call before it is made, so that the test can count calls, hold one
//! up while something else happens, or let it fail. Does nothing of its own to the calls.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::SimulatedDisk;
use crate::file::disk::{Disk, DiskFile};

/// A call that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `create`
    Create,
    /// `open`
    Open,
    /// `rename`, with the old name
    Rename,
    /// `remove` or `remove_dir`
    Remove,
    /// `sync_dir`
    SyncDir,
    /// `size`
    Size,
    /// `free`
    Free,
    /// `read_at`
    Read,
    /// `write_at`
    Write,
    /// `sync_data`
    Sync,
    /// `set_len`
    SetLen,
}

type Watcher = dyn Fn(Call, &Path) -> io::Result<()> + Send + Sync;

/// A simulated disk with somebody who watches; clones are the same disk with the same watcher.
#[derive(Clone)]
pub struct WatchedDisk {
    inner: SimulatedDisk,
    watcher: Arc<RwLock<Arc<Watcher>>>,
}

impl fmt::Debug for WatchedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedDisk").field(&self.inner).finish()
    }
}

impl WatchedDisk {
    /// Nobody watches yet.
    pub fn new(inner: SimulatedDisk) -> WatchedDisk {
        WatchedDisk { inner, watcher: Arc::new(RwLock::new(Arc::new(|_, _| Ok(())))) }
    }

    /// From now on this is asked before every call, with the name that the file had when it was opened. An error
    /// is the answer of the call, which is then not made.
    pub fn watch(&self, watcher: impl Fn(Call, &Path) -> io::Result<()> + Send + Sync + 'static) {
        *self.watcher.write() = Arc::new(watcher);
    }

    fn ask(&self, call: Call, path: &Path) -> io::Result<()> {
        let watcher = Arc::clone(&self.watcher.read());
        watcher(call, path)
    }

    fn file(&self, path: &Path, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(WatchedFile { disk: self.clone(), path: path.to_owned(), inner: file })
    }
}

impl Disk for WatchedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.ask(Call::Create, path)?;
        self.inner.create(path).map(|file| self.file(path, file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.ask(Call::Open, path)?;
        self.inner.open(path).map(|file| self.file(path, file))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ask(Call::Rename, from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask(Call::Remove, path)?;
        self.inner.remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.ask(Call::Remove, path)?;
        self.inner.remove_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.ask(Call::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        self.ask(Call::Size, path)?;
        self.inner.size(path)
    }

    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        self.ask(Call::Free, dir)?;
        self.inner.free(dir)
    }
}

#[derive(Debug)]
struct WatchedFile {
    disk: WatchedDisk,
    path: PathBuf,
    inner: Arc<dyn DiskFile>,
}

impl DiskFile for WatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.ask(Call::Read, &self.path)?;
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.ask(Call::Write, &self.path)?;
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.ask(Call::Sync, &self.path)?;
        self.inner.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.ask(Call::SetLen, &self.path)?;
        self.inner.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
}
