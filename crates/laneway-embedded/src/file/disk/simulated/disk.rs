//! The simulated disk itself: the calls, the faults planned for them, and the switch for the power.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::media::{Media, SECTOR_BYTES};
use super::names::{FileId, Names};
use crate::file::disk::{Disk, DiskFile};

/// What a planned fault does to the call it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A change of a file or a name fails with an I/O error and does nothing.
    WriteError,
    /// A write stores its first half and fails with an I/O error.
    TornWrite,
    /// A write, a new file or a new name fails because the disk is full; of a write the first half is stored.
    NoSpace,
    /// A sync of a file or a folder fails; what the file had not synced is dropped.
    SyncError,
    /// A read fails with an I/O error.
    ReadError,
}

/// How often each call was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// `read_at`
    pub reads: u64,
    /// `write_at`
    pub writes: u64,
    /// `sync_data`
    pub syncs: u64,
    /// `set_len`
    pub set_lens: u64,
    /// `create`
    pub creates: u64,
    /// `rename`
    pub renames: u64,
    /// `remove`
    pub removes: u64,
    /// `sync_dir`
    pub dir_syncs: u64,
}

/// A disk in memory, for tests; clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Clone, Default)]
struct State {
    /// Handles of an earlier boot are dead.
    boot: u64,
    dirs: BTreeSet<PathBuf>,
    names: Names,
    files: BTreeMap<FileId, Media>,
    handles: BTreeMap<FileId, usize>,
    next_id: FileId,
    capacity: Option<usize>,
    planned: Vec<(u64, Fault)>,
    lying: bool,
    /// Changing calls left until the power goes off.
    power_left: Option<u64>,
    calls: Calls,
}

impl SimulatedDisk {
    /// An empty disk without limit.
    pub fn new() -> SimulatedDisk {
        SimulatedDisk::default()
    }

    /// Turns the power off and on: keeps what was synced, and of what was not a random part of the sectors of
    /// each file and the first few changes of names of each folder. All open files are dead afterwards.
    pub fn power_cut(&self, rng: &mut fastrand::Rng) {
        let mut state = self.state.lock();
        state.boot += 1;
        state.power_left = None;
        state.handles.clear();
        state.names.power_cut(rng);
        for media in state.files.values_mut() {
            media.power_cut(rng);
        }
        state.collect();
    }

    /// Plans a fault for the `n`-th call from now on, counted from 1, of those that the fault can meet.
    pub fn fail_nth(&self, n: u64, fault: Fault) {
        assert!(n > 0, "calls are counted from 1");
        self.state.lock().planned.push((n, fault));
    }

    /// Lets the power go off during the `n`-th changing call from now on, counted from 1: that call and all
    /// later ones fail, until [`SimulatedDisk::power_cut`] decides what is left.
    pub fn power_off_at(&self, n: u64) {
        assert!(n > 0, "calls are counted from 1");
        self.state.lock().power_left = Some(n);
    }

    /// Forgets all faults that have not happened, and answers how many there were.
    pub fn clear_faults(&self) -> usize {
        std::mem::take(&mut self.state.lock().planned).len()
    }

    /// Limits the size of the disk in bytes; `None` lifts the limit.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.state.lock().capacity = bytes;
    }

    /// Bytes taken by files that have a name or are open.
    pub fn used(&self) -> usize {
        self.state.lock().used()
    }

    /// Lets every sync claim success without making anything durable.
    pub fn set_lying(&self, lying: bool) {
        self.state.lock().lying = lying;
    }

    /// How often each call was made so far.
    pub fn calls(&self) -> Calls {
        self.state.lock().calls
    }

    /// A separate disk with the same content, on which no file is open.
    pub fn fork(&self) -> SimulatedDisk {
        let mut state = self.state.lock().clone();
        state.handles.clear();
        SimulatedDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// All files with their bytes as programs see them.
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state.lock();
        state.names.iter().map(|(path, id)| (path.clone(), state.files[&id].bytes().to_vec())).collect()
    }

    /// Changes the stored bytes of a file, as a failing medium or a careless hand would.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut state = self.state.lock();
        let id = state.find(path)?;
        let media = state.media(id);
        let mut bytes = media.bytes().to_vec();
        change(&mut bytes);
        media.replace(bytes);
        Ok(())
    }

    fn handle(&self, state: &mut State, id: FileId) -> Arc<dyn DiskFile> {
        *state.handles.entry(id).or_default() += 1;
        Arc::new(SimulatedFile { state: Arc::clone(&self.state), boot: state.boot, id })
    }
}

impl State {
    fn find(&self, path: &Path) -> io::Result<FileId> {
        self.names.get(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn media(&mut self, id: FileId) -> &mut Media {
        self.files.get_mut(&id).expect("a file with a name or a handle has bytes")
    }

    /// Counts the call against all planned faults it could meet; answers the one that is due.
    fn fault(&mut self, possible: &[Fault]) -> Option<Fault> {
        for (left, fault) in &mut self.planned {
            if possible.contains(fault) {
                *left -= 1;
            }
        }
        let due = self.planned.iter().position(|(left, _)| *left == 0)?;
        Some(self.planned.remove(due).1)
    }

    fn used(&self) -> usize {
        let named: BTreeSet<FileId> = self.names.iter().map(|(_, id)| id).collect();
        let counted = |id: &FileId| named.contains(id) || self.handles.contains_key(id);
        self.files.iter().filter(|(id, _)| counted(id)).map(|(_, media)| media.used()).sum()
    }

    fn room(&self) -> usize {
        self.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    /// Frees the bytes of files nobody can reach any more.
    fn collect(&mut self) {
        let reachable = self.names.reachable();
        let handles = &self.handles;
        self.files.retain(|id, _| reachable.contains(id) || handles.contains_key(id));
    }

    /// Whether the power goes off in this changing call, or was off before.
    fn power_goes_off(&mut self) -> bool {
        self.power_left = self.power_left.map(|left| left.saturating_sub(1));
        self.power_left == Some(0)
    }

    /// A change of names can fail as a write or for want of space.
    fn name_fault(&mut self, needs_space: bool) -> io::Result<()> {
        if self.power_goes_off() {
            return Err(power_off());
        }
        let possible: &[Fault] =
            if needs_space { &[Fault::WriteError, Fault::NoSpace] } else { &[Fault::WriteError] };
        match self.fault(possible) {
            Some(Fault::NoSpace) => Err(no_space()),
            Some(_) => Err(broken()),
            None => Ok(()),
        }
    }
}

impl Disk for SimulatedDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        state.calls.creates += 1;
        state.name_fault(true)?;
        if state.names.get(path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !path.parent().is_some_and(|parent| state.dirs.contains(parent)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let id = state.next_id;
        state.next_id += 1;
        state.files.insert(id, Media::default());
        state.names.create(path, id);
        Ok(self.handle(&mut state, id))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        let id = state.find(path)?;
        Ok(self.handle(&mut state, id))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.dirs.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        if !state.dirs.contains(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = state.names.iter().filter(|(path, _)| path.parent() == Some(dir));
        Ok(inside.filter_map(|(path, _)| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.calls.renames += 1;
        state.name_fault(true)?;
        if state.dirs.contains(from) {
            if state.names.iter().any(|(path, _)| path.starts_with(to)) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            // Folders need no sync in this simulation, so a folder that moved is not forgotten under its old name.
            let moved = |dir: &PathBuf| Some(to.join(dir.strip_prefix(from).ok()?));
            let moved: Vec<PathBuf> = state.dirs.iter().filter_map(moved).collect();
            state.dirs.extend(moved);
            state.names.rename_dir(from, to);
            return Ok(());
        }
        let id = state.find(from)?;
        state.names.rename(from, to, id);
        state.collect();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.calls.removes += 1;
        state.name_fault(false)?;
        state.find(path)?;
        state.names.remove(path);
        state.collect();
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.calls.removes += 1;
        state.name_fault(false)?;
        if !state.dirs.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if state.names.iter().any(|(name, _)| name.starts_with(path)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.dirs.remove(path);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.calls.dir_syncs += 1;
        if state.power_goes_off() {
            return Err(power_off());
        }
        if state.fault(&[Fault::SyncError]).is_some() {
            return Err(broken());
        }
        if !state.lying {
            state.names.sync(dir);
            state.collect();
        }
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.state.lock().names.get(path).is_some())
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.state.lock();
        let id = state.find(path)?;
        Ok(state.media(id).len() as u64)
    }

    fn free(&self, _dir: &Path) -> io::Result<Option<u64>> {
        let state = self.state.lock();
        Ok(state.capacity.map(|_| state.room() as u64))
    }
}

#[derive(Debug)]
struct SimulatedFile {
    state: Arc<Mutex<State>>,
    boot: u64,
    id: FileId,
}

impl SimulatedFile {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state.lock();
        if state.boot != self.boot {
            return Err(io::Error::other("the power was cut while this file was open"));
        }
        work(&mut state)
    }
}

impl DiskFile for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|state| {
            state.calls.reads += 1;
            if state.fault(&[Fault::ReadError]).is_some() {
                return Err(broken());
            }
            let bytes = state.media(self.id).bytes();
            let rest = bytes.get(place(offset)?..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.with(|state| {
            state.calls.writes += 1;
            let offset = place(offset)?;
            let was_off = state.power_left == Some(0);
            if state.power_goes_off() {
                // The write under way may reach the disk in part, like anything else that is not synced.
                if !was_off {
                    state.media(self.id).write(bytes, offset);
                }
                return Err(power_off());
            }
            let half = &bytes[..bytes.len() / 2];
            match state.fault(&[Fault::WriteError, Fault::TornWrite, Fault::NoSpace]) {
                None => {}
                Some(Fault::WriteError) => return Err(broken()),
                Some(Fault::NoSpace) => {
                    state.media(self.id).write(half, offset);
                    return Err(no_space());
                }
                Some(_) => {
                    state.media(self.id).write(half, offset);
                    return Err(broken());
                }
            }
            let room = if state.capacity.is_some() { state.room() } else { usize::MAX };
            let media = state.media(self.id);
            if media.growth(offset, bytes.len()) <= room {
                media.write(bytes, offset);
                return Ok(());
            }
            // Store sector by sector what still fits, as a file system does.
            let mut fits = 0;
            while fits < bytes.len() {
                let step = (SECTOR_BYTES - (offset + fits) % SECTOR_BYTES).min(bytes.len() - fits);
                if media.growth(offset, fits + step) > room {
                    break;
                }
                fits += step;
            }
            media.write(&bytes[..fits], offset);
            Err(no_space())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|state| {
            state.calls.syncs += 1;
            if state.power_goes_off() {
                return Err(power_off());
            }
            if state.fault(&[Fault::SyncError]).is_some() {
                state.media(self.id).fail_sync();
                return Err(broken());
            }
            if !state.lying {
                state.media(self.id).sync();
            }
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(|state| {
            state.calls.set_lens += 1;
            if state.power_goes_off() {
                return Err(power_off());
            }
            if state.fault(&[Fault::WriteError]).is_some() {
                return Err(broken());
            }
            state.media(self.id).set_len(place(len)?);
            Ok(())
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.with(|state| Ok(state.media(self.id).len() as u64))
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.boot != self.boot {
            return;
        }
        if let Some(count) = state.handles.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                state.handles.remove(&self.id);
                state.collect();
            }
        }
    }
}

fn place(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn power_off() -> io::Error {
    io::Error::other("the power is off")
}

/// EIO and ENOSPC as the operating system numbers them, so that code looking at either finds them.
fn broken() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error())
}

fn no_space() -> io::Error {
    io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (SimulatedDisk, PathBuf, fastrand::Rng) {
        let disk = SimulatedDisk::new();
        disk.create_dir(Path::new("/d")).unwrap();
        (disk, PathBuf::from("/d/file"), fastrand::Rng::with_seed(1))
    }

    #[test]
    fn synced_bytes_and_names_survive_every_power_cut() {
        let (disk, path, mut rng) = disk();
        let file = disk.create(&path).unwrap();
        file.write_at(&[7; 3000], 100).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        let mut lost_something = 0;
        for _ in 0..200 {
            let cut = disk.fork();
            let file = cut.open(&path).unwrap();
            file.write_at(&[9; 2000], 1536).unwrap();
            cut.power_cut(&mut rng);
            let bytes = &cut.contents()[&path];
            assert_eq!(bytes[100..1536], [7; 1436]);
            assert!(bytes[1536..3100].iter().all(|byte| [7, 9].contains(byte)));
            assert!(bytes.len() >= 3100);
            lost_something += usize::from(bytes[1536..2048] == [7; 512]);
            assert!(file.len().is_err(), "a handle from before the cut is dead");
        }
        assert!((20..180).contains(&lost_something), "{lost_something}");
    }

    #[test]
    fn names_survive_only_after_a_sync_of_the_folder_and_in_order() {
        let (disk, path, mut rng) = disk();
        let other = path.with_extension("other");
        disk.create(&path).unwrap().sync_data().unwrap();
        disk.rename(&path, &other).unwrap();
        let mut seen = BTreeSet::new();
        for _ in 0..50 {
            let cut = disk.fork();
            cut.power_cut(&mut rng);
            seen.insert((cut.exists(&path).unwrap(), cut.exists(&other).unwrap()));
        }
        assert_eq!(seen, BTreeSet::from([(false, false), (true, false), (false, true)]));
        disk.sync_dir(Path::new("/d")).unwrap();
        disk.power_cut(&mut rng);
        assert!(disk.exists(&other).unwrap());
    }

    #[test]
    fn sync_after_a_failed_sync_succeeds_and_saves_nothing() {
        let (disk, path, mut rng) = disk();
        let file = disk.create(&path).unwrap();
        disk.sync_dir(Path::new("/d")).unwrap();
        file.write_at(&[7; 512], 0).unwrap();
        disk.fail_nth(1, Fault::SyncError);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        let lost = (0..50).filter(|_| {
            let cut = disk.fork();
            cut.power_cut(&mut rng);
            cut.contents()[&path] == [0; 512]
        });
        assert!(lost.count() > 5);
        assert_eq!(disk.contents()[&path], [7; 512], "reads still answer what was written");
    }

    #[test]
    fn full_disk_refuses_and_space_comes_back_when_the_last_handle_goes() {
        let (disk, path, _) = disk();
        disk.set_capacity(Some(2048));
        let file = disk.create(&path).unwrap();
        let error = file.write_at(&[1; 4096], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.used(), 2048);
        file.write_at(&[2; 2048], 0).unwrap();
        disk.remove(&path).unwrap();
        assert_eq!(disk.used(), 2048);
        drop(file);
        assert_eq!(disk.used(), 0);
    }

    #[test]
    fn faults_meet_exactly_the_call_they_were_planned_for() {
        let (disk, path, _) = disk();
        let file = disk.create(&path).unwrap();
        disk.fail_nth(2, Fault::TornWrite);
        file.write_at(&[1; 8], 0).unwrap();
        file.sync_data().unwrap();
        assert_eq!(file.write_at(&[2; 8], 8).unwrap_err().kind(), broken().kind());
        assert_eq!(disk.contents()[&path], [1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
        file.write_at(&[3; 8], 8).unwrap();
        disk.fail_nth(5, Fault::ReadError);
        assert_eq!(disk.clear_faults(), 1);
        assert_eq!(disk.calls(), Calls { writes: 3, syncs: 1, creates: 1, ..Calls::default() });
    }
}
