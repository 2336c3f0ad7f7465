//! Backup beside upkeep: checkpoints go on while files are copied, and segments that were given back but still have
//! their names are not part of the copy.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use futures::executor::block_on;
use laneway_core::Store;
use laneway_core::StreamSettings;
use laneway_core::store::{Define, Trim};
use parking_lot::Mutex;

use super::harness::{append, events, open_with, options, shard};
use crate::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use crate::file::{Background, FileOptions, FileStore};

const COPY: &str = "/copy";

#[test]
fn backup_beside_upkeep_is_whole_and_without_segments_that_were_given_back() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let hour = std::time::Duration::from_secs(3600);
    let options = FileOptions { background: Background::Threads, checkpoint_every: hour, ..options() };
    // Segments are prepared before the first is begun, so that it is one that is taken back, not deleted.
    let prepared = open_with(Arc::new(disk.clone()), super::harness::options());
    prepared.checkpoint().unwrap();
    prepared.close().unwrap();
    let store = open_with(Arc::new(disk.clone()), options);
    let settings =
        StreamSettings { partitions: 1, keep: std::time::Duration::ZERO, ..StreamSettings::default() };
    let define = Define::Stream { name: "first".to_owned(), expect: None, settings };
    let stream = block_on(store.define(define)).unwrap().stream.unwrap();
    (0..40).for_each(|_| drop(append(&store, &stream, 10, 10_000).unwrap()));
    store.checkpoint().unwrap();
    let given_back = store.shared().log.segments()[0].serial;
    block_on(store.trim(Trim { shard: shard(&stream) })).unwrap();
    append(&store, &stream, 10, 10_000).unwrap();
    let expected = events(&store, &stream);

    // The upkeep is held up when it takes the first segment back, until the copy is made.
    let (go, held) = channel::<()>();
    let (held, inside) = (Mutex::new(Some(held)), store.clone());
    let (released, locked) = (Mutex::new(Vec::new()), Mutex::new(0));
    let seen = Arc::new((released, locked));
    let told = Arc::clone(&seen);
    disk.watch(move |call, path: &Path| {
        let is_first = path.ends_with(format!("{given_back:020}.seg"));
        if path.starts_with(COPY) {
            if is_first {
                told.0.lock().push(path.to_owned());
            }
            let copies = matches!(call, Call::Create | Call::Write) && !path.ends_with("index.redb");
            if copies {
                assert!(!inside.inner.checkpointer.is_held(), "checkpoints wait for {call:?} {path:?}");
                *told.1.lock() += 1;
            }
        } else if is_first && matches!(call, Call::Size | Call::Remove) {
            let held = held.lock().take();
            held.inspect(|held| held.recv().unwrap());
        }
        Ok(())
    });
    let backup = store.backup(COPY).unwrap();
    go.send(()).unwrap();
    disk.watch(|_, _| Ok(()));
    assert!(seen.0.lock().is_empty(), "segment {given_back} was given back, and copied: {:?}", seen.0.lock());
    assert!(*seen.1.lock() >= 2 && backup.segments > 0, "at least the current segment is copied");
    let clock = Arc::new(laneway_core::ManualClock::default());
    let copy = FileStore::open_on(Arc::new(disk.clone()), COPY, super::harness::options(), clock).unwrap();
    assert_eq!(events(&copy, &stream), expected);
    copy.close().unwrap();
    assert!(crate::file::verify_on(Arc::new(disk), Path::new(COPY)).unwrap().is_clean());
}
