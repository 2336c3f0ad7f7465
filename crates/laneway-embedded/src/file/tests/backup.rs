//! Backup beside upkeep: checkpoints go on while files are copied, and segments that were given back but still have
//! their names are not part of the copy. A copy has its name only if it is whole: after failing calls, after power cuts at
//! every moment, and after a stop.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;

use futures::executor::block_on;
use laneway_core::store::{Define, Trim};
use laneway_core::{Event, Store, StreamInfo, StreamSettings};
use parking_lot::Mutex;

use super::harness::{append, events, open_with, options, shard};
use crate::file::disk::simulated::{Call, Fault, SimulatedDisk, WatchedDisk};
use crate::file::{Background, FileOptions, FileStore};

const COPY: &str = "/copy";

/// Whether a file is part of a copy, complete or not.
fn is_copy(path: &Path) -> bool {
    path.to_string_lossy().starts_with(COPY)
}

/// A small store with more than one segment and something in its index, and its events.
fn filled(disk: &SimulatedDisk) -> (FileStore, StreamInfo, Vec<Event>) {
    let store = open_with(Arc::new(disk.clone()), options());
    let stream = super::harness::stream(&store, "first");
    (0..18).for_each(|_| drop(append(&store, &stream, 10, 10_000).unwrap()));
    store.checkpoint().unwrap();
    append(&store, &stream, 10, 100).unwrap();
    let expected = events(&store, &stream);
    (store, stream, expected)
}

/// What there is of copies.
fn copies(disk: &SimulatedDisk) -> Vec<PathBuf> {
    disk.contents().into_keys().filter(|path| is_copy(path)).collect()
}

/// The copy is a healthy store with these events.
fn check_whole(disk: &SimulatedDisk, stream: &StreamInfo, expected: &[Event]) {
    let report = crate::file::verify_on(Arc::new(disk.clone()), Path::new(COPY)).unwrap();
    assert!(report.is_clean(), "{report}");
    let clock = Arc::new(laneway_core::ManualClock::default());
    let copy = FileStore::open_on(Arc::new(disk.clone()), COPY, options(), clock).unwrap();
    assert_eq!(events(&copy, stream), expected);
}

#[test]
fn failed_backup_leaves_nothing() {
    let disk = SimulatedDisk::new();
    let (store, stream, expected) = filled(&disk);
    store.close().unwrap();
    for fault in [Fault::WriteError, Fault::TornWrite, Fault::SyncError, Fault::NoSpace, Fault::ReadError] {
        for n in 1.. {
            let disk = disk.fork();
            let store = open_with(Arc::new(disk.clone()), options());
            // What fails from here on is met by the backup, or by its checkpoint.
            disk.fail_nth(n, fault);
            let made = store.backup(COPY);
            let has_happened = disk.clear_faults() == 0;
            let left = copies(&disk);
            match made {
                Ok(_) => check_whole(&disk, &stream, &expected),
                // Only the sync of the folder above fails after the copy has its name.
                Err(error) if error.to_string().contains("could not sync /:") => {
                    check_whole(&disk, &stream, &expected);
                }
                Err(error) => assert!(left.is_empty(), "{fault:?} at {n}: {error}: {left:?} is left"),
            }
            if !has_happened {
                assert!(n > 1, "{fault:?} meets no call of a backup");
                break;
            }
        }
    }
}

#[test]
fn backup_cut_by_a_power_failure_is_absent_or_whole() {
    let disk = SimulatedDisk::new();
    let (store, stream, expected) = filled(&disk);
    store.close().unwrap();
    let (mut absent, mut whole) = (0, 0);
    for n in 1.. {
        let disk = disk.fork();
        let store = open_with(Arc::new(disk.clone()), options());
        disk.power_off_at(n);
        let is_made = store.backup(COPY).is_ok();
        drop(store);
        disk.power_cut(&mut fastrand::Rng::with_seed(n));
        if copies(&disk).iter().any(|path| path.starts_with(COPY)) {
            check_whole(&disk, &stream, &expected);
            whole += 1;
        } else {
            assert!(!is_made, "the backup was made, and is gone after a power cut");
            absent += 1;
        }
        if is_made {
            break;
        }
    }
    assert!(absent > 10 && whole > 0, "{absent} absent, {whole} whole");
}

#[test]
fn stopped_backup_leaves_nothing() {
    let disk = SimulatedDisk::new();
    let (store, stream, expected) = filled(&disk);
    for looks in 0.. {
        let left = Mutex::new(looks);
        let go_on = || {
            let mut left = left.lock();
            *left -= 1;
            *left >= 0
        };
        match store.backup_while(COPY, go_on) {
            Ok(_) => {
                assert!(looks > 3, "asked only {looks} times");
                break;
            }
            Err(error) => {
                assert!(error.to_string().contains("stopped before its end"), "{error}");
                assert!(copies(&disk).is_empty(), "{:?}", copies(&disk));
            }
        }
    }
    store.close().unwrap();
    check_whole(&disk, &stream, &expected);
}

#[test]
fn backup_refuses_a_folder_with_files() {
    let disk = SimulatedDisk::new();
    let (store, ..) = filled(&disk);
    let expected = store.backup_bytes().unwrap();
    let bytes = store.backup(COPY).unwrap().bytes;
    assert!(bytes.abs_diff(expected) < 1 << 20, "{bytes} bytes were copied, {expected} expected");
    let before = disk.contents();
    let error = store.backup(COPY).unwrap_err().to_string();
    assert!(error.contains("/copy is not empty: it has index.redb"), "{error}");
    assert_eq!(disk.contents().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
}

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
        if is_copy(path) {
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

#[test]
fn backup_has_the_segments_that_were_given_back_while_its_index_was_copied() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let store = open_with(Arc::new(disk.clone()), options());
    let settings =
        StreamSettings { partitions: 1, keep: std::time::Duration::ZERO, ..StreamSettings::default() };
    let define = Define::Stream { name: "first".to_owned(), expect: None, settings };
    let stream = block_on(store.define(define)).unwrap().stream.unwrap();
    append(&store, &stream, 10, 10_000).unwrap();
    store.checkpoint().unwrap();
    let (inside, busy, once) = (store.clone(), stream.clone(), Mutex::new(false));
    disk.watch(move |call, path: &Path| {
        let is_first = path.ends_with("index.redb") && is_copy(path) && matches!(call, Call::Write);
        if is_first && !std::mem::replace(&mut *once.lock(), true) {
            for _ in 0..60 {
                append(&inside, &busy, 10, 10_000).unwrap();
                while inside.shared().log.upkeep() {}
            }
            block_on(inside.trim(Trim { shard: shard(&busy) })).unwrap();
            (0..2).for_each(|_| inside.checkpoint().unwrap());
            assert!(inside.shared().log.segments().iter().any(|segment| segment.released));
        }
        Ok(())
    });
    store.backup(COPY).unwrap();
    disk.watch(|_, _| Ok(()));
    let copy =
        FileStore::open_on(Arc::new(disk), COPY, options(), Arc::new(laneway_core::ManualClock::default()))
            .unwrap();
    assert_eq!(events(&copy, &stream), events(&store, &stream));
}
