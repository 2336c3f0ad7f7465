//! Log since the last checkpoint: what a start had to replay counts, and appends that wait for a checkpoint are
//! answered when there will be none.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use laneway_core::{Store, StoreError};

use super::harness::{append, append_of, events, open, open_with, options, stream};
use crate::file::FileOptions;
use crate::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};

/// Appends wait as soon as there is this much log.
fn impatient() -> FileOptions {
    FileOptions { checkpoint_bytes: 50_000, backlog_bytes: 100_000, ..options() }
}

#[test]
fn replayed_log_counts_as_log_since_the_checkpoint() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let stream = stream(&store, "first");
    append(&store, &stream, 30, 1_000).unwrap();
    store.checkpoint().unwrap();
    append(&store, &stream, 150, 1_000).unwrap();
    let since = store.shared().log_bytes.load(Ordering::Relaxed);
    assert!((150_000..180_000).contains(&since), "{since} bytes since the checkpoint");
    disk.power_off_at(1);
    drop(store);
    disk.power_cut(&mut fastrand::Rng::with_seed(1));
    let store = open_with(Arc::new(disk), impatient());
    let replayed = store.shared().log_bytes.load(Ordering::Relaxed);
    assert!(replayed >= since && replayed < since + 1_000, "{replayed} bytes replayed, {since} written");
    let mut waiting = store.append(append_of(&store, &stream, 1, 10));
    assert!(waiting.as_mut().now_or_never().is_none());
    assert_eq!(store.shared().state.read().groups, 0, "it was applied before the checkpoint");
    store.checkpoint().unwrap();
    futures::executor::block_on(waiting).unwrap();
    assert_eq!(events(&store, &stream).len(), 181);
}

#[test]
fn append_that_waits_for_a_checkpoint_is_answered_by_the_close() {
    for full in [false, true] {
        let (inner, options) = (SimulatedDisk::new(), impatient());
        let disk = WatchedDisk::new(inner.clone());
        let store = open_with(Arc::new(disk.clone()), options.clone());
        let stream = stream(&store, "first");
        append(&store, &stream, 120, 1_000).unwrap();
        let mut waiting = store.append(append_of(&store, &stream, 1, 10));
        assert!(waiting.as_mut().now_or_never().is_none(), "there is too much log");
        if full {
            disk.watch(|call, path: &Path| {
                let index = path.ends_with("index.redb") && matches!(call, Call::Write | Call::SetLen);
                if index { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
            });
        }
        let closed = store.clone().close();
        assert_eq!(closed.is_err(), full, "{closed:?}");
        let answer = waiting.now_or_never();
        assert!(matches!(answer, Some(Err(StoreError::Down { .. }))), "full {full}: {answer:?}");
        disk.watch(|_, _| Ok(()));
        drop(store);
        let store = open_with(Arc::new(inner), options);
        assert_eq!(events(&store, &stream).len(), 120);
    }
}
