//! Lets redb use the store's disk seam, so that tests can fail its calls too.
//!
//! redb refuses everything after a failed write. A full disk is no reason for that: the write waits until there is
//! room again, and only the checkpoint waits with it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use redb::StorageBackend;

use crate::file::disk::DiskFile;

/// How long a write rests before it asks a full disk again.
const REST: Duration = Duration::from_millis(100);

/// How long writes to a full disk are tried again.
#[derive(Debug)]
pub(crate) struct Patience {
    over: Mutex<bool>,
    ended: Condvar,
}

impl Patience {
    /// Waits until [`Patience::end`], or not at all.
    pub(crate) fn new(waits: bool) -> Arc<Self> {
        Arc::new(Self { over: Mutex::new(!waits), ended: Condvar::new() })
    }

    /// From now on a full disk is an error.
    pub(crate) fn end(&self) {
        *self.over.lock() = true;
        self.ended.notify_all();
    }

    /// Rests; false when patience is over.
    fn rest(&self) -> bool {
        let mut over = self.over.lock();
        if !*over {
            self.ended.wait_for(&mut over, REST);
        }
        !*over
    }
}

/// A file of the disk seam as redb wants it.
#[derive(Debug)]
pub(super) struct Storage {
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) patience: Arc<Patience>,
}

impl Storage {
    fn until_there_is_room(&self, write: impl Fn() -> io::Result<()>) -> io::Result<()> {
        loop {
            match write() {
                Err(error) if error.kind() == io::ErrorKind::StorageFull && self.patience.rest() => {}
                result => return result,
            }
        }
    }
}

impl StorageBackend for Storage {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let read = self.file.read_at(out, offset)?;
        if read == out.len() {
            return Ok(());
        }
        let what = format!("index file ends at {}, wanted {} bytes at {offset}", offset + read as u64, out.len());
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, what))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.until_there_is_room(|| self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.until_there_is_room(|| self.file.write_at(data, offset))
    }
}
