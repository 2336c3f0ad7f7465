//! The conformance suite on the file store, its planted bugs, and its comparison with the memory store.

mod differential;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::ManualClock;
use laneway_embedded::{FileOptions, FileStore};
use laneway_testkit::{Fixture, TestStore};
use tempfile::TempDir;

/// Opens file stores in temporary folders.
struct FileFixture {
    options: FileOptions,
}

impl Default for FileFixture {
    fn default() -> Self {
        Self { options: FileOptions { segment_bytes: 32 << 20, ..FileOptions::default() } }
    }
}

/// A store and the folder it lives in, which goes with the last clone.
struct Folder {
    store: FileStore,
    path: PathBuf,
    folder: Arc<TempDir>,
}

impl FileFixture {
    fn open_in(&self, path: PathBuf, folder: Arc<TempDir>, clock: ManualClock) -> TestStore {
        let options = self.options.clone();
        let store = FileStore::open_with(&path, options, Arc::new(clock.clone())).expect("the folder opens");
        let mut opened = TestStore::of(Arc::new(store.clone()), clock);
        opened.extra = Some(Arc::new(Folder { store, path, folder }));
        opened
    }
}

#[async_trait]
impl Fixture for FileFixture {
    async fn open(&self) -> TestStore {
        let folder = Arc::new(tempfile::tempdir().expect("temporary folder"));
        self.open_in(folder.path().join("store"), folder, ManualClock::default())
    }

    async fn reopen(&self, opened: TestStore) -> TestStore {
        let old = opened.extra::<Folder>().expect("this fixture opened it");
        old.store.clone().close().expect("closes in order");
        let (path, folder, clock) = (old.path.clone(), Arc::clone(&old.folder), opened.clock.clone());
        drop((old, opened));
        self.open_in(path, folder, clock)
    }

    async fn restored(&self, opened: TestStore) -> TestStore {
        let old = opened.extra::<Folder>().expect("this fixture opened it");
        let copy =
            old.path.with_extension(format!("{}", old.folder.path().read_dir().expect("readable").count()));
        old.store.backup(&copy).expect("backup");
        self.open_in(copy, Arc::clone(&old.folder), opened.clock.clone())
    }
}

mod conformance {
    laneway_testkit::conformance!(super::FileFixture::default());
}

// Opening folders takes longer than opening memory: only the cases written for each bug.
mod planted {
    laneway_testkit::planted!(super::FileFixture::default(), known);
}
