//! A disk that reads a folder and keeps every write for itself, in memory.
//!
//! Opening a store writes: the index marks itself as open or repairs itself, the log settles its last frame. A
//! verification must see what a start would see and leave the folder as it is, so it works on this. Files are
//! opened for reading only; what is written is small, because nothing but opening happens.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::file::disk::{Disk, DiskFile, RealDisk};

const PAGE: u64 = 4096;

/// A folder below, memory above.
#[derive(Debug)]
pub(super) struct Overlay {
    below: Arc<dyn Disk>,
    files: Mutex<HashMap<PathBuf, Arc<OverlayFile>>>,
}

impl Overlay {
    pub(super) fn over(below: Arc<dyn Disk>) -> Self {
        Self { below, files: Mutex::default() }
    }

    fn unsupported(&self, action: &str, path: &Path) -> io::Error {
        let what = format!("{action} {}: a verification changes no name", path.display());
        io::Error::new(io::ErrorKind::Unsupported, what)
    }
}

impl Disk for Overlay {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        if self.exists(path)? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, path.display().to_string()));
        }
        let file = Arc::new(OverlayFile::new(None)?);
        self.files.lock().insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.files.lock().get(path) {
            return Ok(Arc::clone(file) as Arc<dyn DiskFile>);
        }
        let file = Arc::new(OverlayFile::new(Some(self.below.open(path)?))?);
        self.files.lock().insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn create_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        match self.below.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names,
        }
    }

    fn rename(&self, from: &Path, _to: &Path) -> io::Result<()> {
        Err(self.unsupported("rename", from))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Err(self.unsupported("remove", path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Err(self.unsupported("remove", path))
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.lock().contains_key(path) || self.below.exists(path)?)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        match self.files.lock().get(path) {
            Some(file) => file.len(),
            None => self.below.size(path),
        }
    }

    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        self.below.free(dir)
    }
}

/// The machine's files, opened for reading only.
#[derive(Debug)]
pub(super) struct ReadOnly;

impl ReadOnly {
    fn refuse<T>(path: &Path) -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, path.display().to_string()))
    }
}

impl Disk for ReadOnly {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Self::refuse(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(ReadOnlyFile(File::open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Self::refuse(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn rename(&self, from: &Path, _to: &Path) -> io::Result<()> {
        Self::refuse(from)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Self::refuse(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Self::refuse(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Self::refuse(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealDisk.exists(path)
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        RealDisk.size(path)
    }

    fn free(&self, dir: &Path) -> io::Result<Option<u64>> {
        RealDisk.free(dir)
    }
}

#[derive(Debug)]
struct ReadOnlyFile(File);

impl DiskFile for ReadOnlyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        ReadOnly::refuse(Path::new("file"))
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        ReadOnly::refuse(Path::new("file"))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// A file whose changes stay in memory, a page each.
#[derive(Debug)]
struct OverlayFile {
    below: Option<Arc<dyn DiskFile>>,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    pages: BTreeMap<u64, Vec<u8>>,
    len: u64,
    /// How much of the file below still counts: it was never cut below this.
    below_len: u64,
}

impl OverlayFile {
    fn new(below: Option<Arc<dyn DiskFile>>) -> io::Result<Self> {
        let len = below.as_ref().map_or(Ok(0), |file| file.len())?;
        Ok(Self { below, changes: Mutex::new(Changes { pages: BTreeMap::new(), len, below_len: len }) })
    }

    /// What the file below has here; zeros where it has nothing.
    fn read_below(&self, buffer: &mut [u8], offset: u64, below_len: u64) -> io::Result<()> {
        buffer.fill(0);
        let there = usize::try_from(below_len.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        if let Some(below) = &self.below {
            below.read_at(&mut buffer[..there], offset)?;
        }
        Ok(())
    }
}

impl DiskFile for OverlayFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let changes = self.changes.lock();
        let len = usize::try_from(changes.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..len];
        self.read_below(buffer, offset, changes.below_len)?;
        let end = offset + len as u64;
        for (page, bytes) in changes.pages.range(offset / PAGE..end.div_ceil(PAGE)) {
            let start = page * PAGE;
            let (from, to) = (start.max(offset), (start + PAGE).min(end));
            let part = |at: u64, base: u64| usize::try_from(at - base).expect("inside a page or buffer");
            buffer[part(from, offset)..part(to, offset)]
                .copy_from_slice(&bytes[part(from, start)..part(to, start)]);
        }
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut changes = self.changes.lock();
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (page, inside) = (at / PAGE, usize::try_from(at % PAGE).expect("smaller than a page"));
            let count = rest.len().min(PAGE as usize - inside);
            if !changes.pages.contains_key(&page) {
                let mut whole = vec![0; PAGE as usize];
                self.read_below(&mut whole, page * PAGE, changes.below_len)?;
                changes.pages.insert(page, whole);
            }
            if let Some(whole) = changes.pages.get_mut(&page) {
                whole[inside..inside + count].copy_from_slice(&rest[..count]);
            }
            (at, rest) = (at + count as u64, &rest[count..]);
        }
        changes.len = changes.len.max(at);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut changes = self.changes.lock();
        if len < changes.len {
            changes.below_len = changes.below_len.min(len);
            changes.pages.retain(|page, _| page * PAGE < len);
            if let Some(last) = changes.pages.get_mut(&(len / PAGE)) {
                last[usize::try_from(len % PAGE).expect("smaller than a page")..].fill(0);
            }
        }
        changes.len = len;
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.changes.lock().len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reads_what_a_changed_file_would_hold_and_leaves_the_file(
            below in proptest::collection::vec(any::<u8>(), 0..9000),
            steps in proptest::collection::vec((any::<bool>(), 0u64..12_000, 0usize..5000, any::<u8>()), 0..12),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            std::fs::write(&path, &below).unwrap();
            let overlay = Overlay::over(Arc::new(ReadOnly));
            let (file, mut model) = (overlay.open(&path).unwrap(), below.clone());
            for (cuts, offset, len, byte) in steps {
                let at = usize::try_from(offset).unwrap();
                if cuts {
                    file.set_len(offset).unwrap();
                    model.resize(at, 0);
                } else if len > 0 {
                    file.write_at(&vec![byte; len], offset).unwrap();
                    model.resize(model.len().max(at + len), 0);
                    model[at..at + len].fill(byte);
                }
            }
            let mut read = vec![9; model.len() + 10];
            let count = file.read_at(&mut read, 0).unwrap();
            prop_assert_eq!(&read[..count], &model[..]);
            let mut part = vec![9; 100];
            let count = file.read_at(&mut part, 4050).unwrap();
            prop_assert_eq!(&part[..count], &model[4050.min(model.len())..4150.min(model.len())]);
            prop_assert_eq!(std::fs::read(&path).unwrap(), below);
        }
    }
}
