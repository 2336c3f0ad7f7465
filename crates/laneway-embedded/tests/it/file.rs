//! The conformance suite on the file store.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::ManualClock;
use laneway_embedded::{FileOptions, FileStore};
use laneway_testkit::{Fixture, TestStore};
use tempfile::TempDir;

/// Opens file stores in temporary folders.
#[derive(Default)]
struct FileFixture;

/// A store and the folder it lives in, which goes with the last clone.
struct Folder {
    store: FileStore,
    path: PathBuf,
    folder: Arc<TempDir>,
}

fn options() -> FileOptions {
    FileOptions { segment_bytes: 32 << 20, ..FileOptions::default() }
}

fn open(path: PathBuf, folder: Arc<TempDir>, clock: ManualClock) -> TestStore {
    let store = FileStore::open_with(&path, options(), Arc::new(clock.clone())).expect("the folder opens");
    let mut opened = TestStore::of(Arc::new(store.clone()), clock);
    opened.extra = Some(Arc::new(Folder { store, path, folder }));
    opened
}

#[async_trait]
impl Fixture for FileFixture {
    async fn open(&self) -> TestStore {
        let folder = Arc::new(tempfile::tempdir().expect("temporary folder"));
        open(folder.path().join("store"), folder, ManualClock::default())
    }

    async fn reopen(&self, opened: TestStore) -> TestStore {
        let old = opened.extra::<Folder>().expect("this fixture opened it");
        old.store.clone().close().expect("closes in order");
        let (path, folder, clock) = (old.path.clone(), Arc::clone(&old.folder), opened.clock.clone());
        drop((old, opened));
        open(path, folder, clock)
    }

    async fn restored(&self, opened: TestStore) -> TestStore {
        let old = opened.extra::<Folder>().expect("this fixture opened it");
        let copy =
            old.path.with_extension(format!("{}", old.folder.path().read_dir().expect("readable").count()));
        old.store.backup(&copy).expect("backup");
        open(copy, Arc::clone(&old.folder), opened.clock.clone())
    }
}

mod conformance {
    laneway_testkit::conformance!(super::FileFixture);
}
