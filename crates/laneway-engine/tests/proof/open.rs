//! An engine on the files of a folder.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::SystemClock;
use laneway_embedded::{FileOptions, FileStore};
use laneway_engine::{Engine, Env, Stores};

/// Small segments and frequent checkpoints: what can happen at an edge happens often.
fn options() -> FileOptions {
    FileOptions {
        segment_bytes: 3 << 19,
        checkpoint_every: Duration::from_millis(50),
        checkpoint_bytes: 128 << 10,
        backlog_bytes: 2 << 20,
        tail_cache: 64,
        ..FileOptions::default()
    }
}

/// Opens the folder as after a start of the process. `life` must differ from start to start: names of owners and
/// commits come from it.
pub(crate) fn open(dir: &Path, life: u64) -> (FileStore, Engine) {
    let clock = Arc::new(SystemClock);
    let store = FileStore::open_with(dir, options(), clock.clone()).unwrap_or_else(|error| panic!("{error}"));
    let shared = Arc::new(store.clone());
    let stores = Stores { store: shared.clone(), documents: shared.clone(), wakeups: shared };
    (store, Engine::new(stores, Env::seeded(clock, life)))
}
