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

    fn is_over(&self) -> bool {
        *self.over.lock()
    }

    /// Waits a little, or until patience is over.
    fn rest(&self) {
        let mut over = self.over.lock();
        if !*over {
            self.ended.wait_for(&mut over, REST);
        }
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
            // Room may have come while this rested, so patience that ended then allows one more try.
            let patient = !self.patience.is_over();
            match write() {
                Err(error) if patient && error.kind() == io::ErrorKind::StorageFull => self.patience.rest(),
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
        let what =
            format!("index file ends at {}, wanted {} bytes at {offset}", offset + read as u64, out.len());
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;

    use super::*;
    use crate::file::disk::Disk;
    use crate::file::disk::simulated::SimulatedDisk;

    #[test]
    fn room_that_came_during_the_last_rest_is_used() {
        let disk = SimulatedDisk::new();
        disk.create_dir(Path::new("/d")).unwrap();
        let file = disk.create(Path::new("/d/index")).unwrap();
        let storage = Storage { file, patience: Patience::new(true) };
        let tries = Cell::new(0);
        let write = || {
            tries.set(tries.get() + 1);
            if tries.get() > 1 {
                return Ok(());
            }
            storage.patience.end();
            Err(io::ErrorKind::StorageFull.into())
        };
        storage.until_there_is_room(write).unwrap();
        assert_eq!(tries.get(), 2);
        let full = storage.until_there_is_room(|| Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(
            full.unwrap_err().kind(),
            io::ErrorKind::StorageFull,
            "without patience a full disk is an error"
        );
    }
}
