//! The names of simulated files: as programs see them, and as a power cut would leave them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The number of a file, whatever its name is.
pub(super) type FileId = u64;

#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    current: BTreeMap<PathBuf, FileId>,
    durable: BTreeMap<PathBuf, FileId>,
    /// Changes not yet synced, in order.
    pending: Vec<(PathBuf, Change)>,
}

#[derive(Debug, Clone)]
enum Change {
    Create { path: PathBuf, id: FileId },
    Rename { from: PathBuf, to: PathBuf, id: FileId },
    RenameDir { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
}

impl Names {
    pub(super) fn get(&self, path: &Path) -> Option<FileId> {
        self.current.get(path).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&PathBuf, FileId)> {
        self.current.iter().map(|(path, id)| (path, *id))
    }

    pub(super) fn create(&mut self, path: &Path, id: FileId) {
        self.change(path, Change::Create { path: path.to_owned(), id });
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, id: FileId) {
        self.change(to, Change::Rename { from: from.to_owned(), to: to.to_owned(), id });
    }

    pub(super) fn rename_dir(&mut self, from: &Path, to: &Path) {
        self.change(to, Change::RenameDir { from: from.to_owned(), to: to.to_owned() });
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.change(path, Change::Remove { path: path.to_owned() });
    }

    pub(super) fn sync(&mut self, dir: &Path) {
        let (synced, pending) = std::mem::take(&mut self.pending).into_iter().partition(|(of, _)| of == dir);
        self.pending = pending;
        for (_, change) in synced {
            apply(&mut self.durable, &change);
        }
    }

    /// Keeps what was synced and, for each folder, the first few of the changes that were not.
    pub(super) fn power_cut(&mut self, rng: &mut fastrand::Rng) {
        let pending = std::mem::take(&mut self.pending);
        let dirs: BTreeSet<&PathBuf> = pending.iter().map(|(dir, _)| dir).collect();
        for dir in dirs {
            let changes: Vec<&Change> =
                pending.iter().filter(|(of, _)| of == dir).map(|(_, change)| change).collect();
            for change in &changes[..rng.usize(0..=changes.len())] {
                apply(&mut self.durable, change);
            }
        }
        self.current.clone_from(&self.durable);
    }

    /// Every file that a program can reach now or could reach after a power cut.
    pub(super) fn reachable(&self) -> BTreeSet<FileId> {
        let pending = self.pending.iter().filter_map(|(_, change)| match change {
            Change::Create { id, .. } | Change::Rename { id, .. } => Some(*id),
            Change::RenameDir { .. } | Change::Remove { .. } => None,
        });
        self.current.values().chain(self.durable.values()).copied().chain(pending).collect()
    }

    fn change(&mut self, path: &Path, change: Change) {
        apply(&mut self.current, &change);
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        self.pending.push((dir, change));
    }
}

fn apply(names: &mut BTreeMap<PathBuf, FileId>, change: &Change) {
    match change {
        Change::Create { path, id } => {
            names.insert(path.clone(), *id);
        }
        Change::Rename { from, to, id } => {
            names.remove(from);
            names.insert(to.clone(), *id);
        }
        Change::RenameDir { from, to } => {
            let moved: Vec<PathBuf> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                let id = names.remove(&path).expect("it was listed");
                names.insert(to.join(path.strip_prefix(from).expect("it begins with the folder")), id);
            }
        }
        Change::Remove { path } => {
            names.remove(path);
        }
    }
}
