//! Reads beside writes: a page is what its head says, and a trim that is faster is told as one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use futures::FutureExt;
use futures::executor::block_on;
use laneway_core::store::{Define, Entry, Query, Read, ReadFrom, Rows, Trim};
use laneway_core::{EventId, Key, ManualClock, Store, StoreError, StreamInfo, StreamSettings};

use super::harness::{DIR, append, append_of, events, open, open_with, options, shard, stream};
use crate::file::FileStore;
use crate::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use crate::file::read::read_plain;

fn after(stream: &StreamInfo, id: u64, limit: usize) -> Read {
    let from = ReadFrom::After(EventId(id));
    Read { shard: shard(stream), from, limit, bytes: 8 << 20, processor: None, states: false }
}

#[test]
fn page_has_nothing_beyond_its_head() {
    let store = open(&SimulatedDisk::new());
    let stream = stream(&store, "first");
    append(&store, &stream, 5, 10).unwrap();
    let read = after(&stream, 0, 100);
    let looked = store.shared().published.plain_page(&read).unwrap();
    append(&store, &stream, 5, 10).unwrap();
    let page = block_on(read_plain(store.shared(), &read, looked)).unwrap().unwrap();
    assert_eq!((page.head, page.entries.len()), (EventId(5), 5));
    let page = block_on(store.read(after(&stream, 5, 100))).unwrap();
    assert_eq!((page.head, page.entries.len()), (EventId(10), 5), "the rest comes with the next page");
}

/// A stream of which everything may be trimmed, over three segments, sealed.
fn segments(store: &FileStore) -> StreamInfo {
    let settings = StreamSettings { partitions: 1, keep: Duration::ZERO, ..StreamSettings::default() };
    let define = Define::Stream { name: "first".to_owned(), expect: None, settings };
    let stream = block_on(store.define(define)).unwrap().stream.unwrap();
    for _ in 0..45 {
        append(store, &stream, 10, 10_000).unwrap();
        while store.shared().log.upkeep() {}
    }
    store.checkpoint().unwrap();
    stream
}

/// Trims everything, and fills the segments that come back.
fn trim_and_use_again(store: &FileStore, stream: &StreamInfo, last: EventId) {
    let gone = block_on(store.trim(Trim { shard: shard(stream) })).unwrap();
    assert_eq!(gone.events, last.0);
    for _ in 0..2 {
        store.checkpoint().unwrap();
        (0..40).for_each(|_| drop(append(store, stream, 10, 10_000).unwrap()));
    }
}

/// Reads while, inside the first look at a file of the log, everything is trimmed, its segments are given back and
/// used again.
fn overtaken(look: impl FnOnce(&FileStore, &StreamInfo) -> Result<Vec<EventId>, StoreError>) {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let store = open_with(Arc::new(disk.clone()), options());
    let stream = segments(&store);
    let last = events(&store, &stream).last().unwrap().id;
    let (inside, again, trimmed) = (store.clone(), stream.clone(), AtomicBool::new(false));
    disk.watch(move |call, path: &Path| {
        let in_log = path.parent().is_some_and(|parent| parent.ends_with("log"));
        if call == Call::Read && in_log && !trimmed.swap(true, Ordering::Relaxed) {
            // On a thread of its own, because the reader is inside an executor.
            std::thread::scope(|scope| {
                scope.spawn(|| trim_and_use_again(&inside, &again, last));
            });
        }
        Ok(())
    });
    let seen = look(&store, &stream);
    disk.watch(|_, _| Ok(()));
    match seen {
        Err(StoreError::Trimmed { first, .. }) => assert_eq!(first, last.next()),
        Err(error) => panic!("{error}"),
        // What was not there at the first look may be read at the second, but only without a hole.
        Ok(ids) => {
            assert_eq!(ids.first(), Some(&last.next()), "what is trimmed is not half there");
            assert!(ids.windows(2).all(|pair| pair[0].next() == pair[1]), "a hole");
        }
    }
}

fn ids(entries: Vec<Entry>) -> Vec<EventId> {
    let id = |entry| match entry {
        Entry::Event(event) => event.id,
        other => panic!("{other:?} in a queue"),
    };
    entries.into_iter().map(id).collect()
}

#[test]
fn read_overtaken_by_a_trim_says_so() {
    let mut said = false;
    overtaken(|store, stream| {
        let page = block_on(store.read(after(stream, 0, 450)));
        said = matches!(page, Err(StoreError::Trimmed { .. }));
        page.map(|page| ids(page.entries))
    });
    assert!(said, "the reader asked for what is trimmed");
}

#[test]
fn list_of_events_overtaken_by_a_trim_goes_on_behind_it() {
    overtaken(|store, stream| Ok(events(store, stream).into_iter().map(|event| event.id).collect()));
}

#[test]
fn list_that_needs_much_from_the_index_is_looked_at_a_few_times_only() {
    const LANES: usize = 200;
    let store = open(&SimulatedDisk::new());
    let stream = stream(&store, "first");
    let mut append = append_of(&store, &stream, LANES, 10);
    for (number, draft) in append.drafts.iter_mut().enumerate() {
        draft.key = Some(Key::new(format!("lane-{number}")).unwrap());
    }
    block_on(store.append(append)).unwrap();
    store.checkpoint().unwrap();
    let (looks, tails) = (std::cell::Cell::new(0), Query::Tails(shard(&stream), None, LANES));
    let list = block_on(store.shared().observe(|seen, now| {
        looks.set(looks.get() + 1);
        crate::machine::query::query(seen, now, &tails)
    }));
    assert!(matches!(list.unwrap(), Rows::Tails(tails) if tails.len() == LANES));
    assert!(looks.get() <= 3, "{} looks: one for each of {LANES} lanes", looks.get());
}

#[test]
fn reads_and_trims_of_a_sparse_shard_pass_over_what_others_wrote() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let (disk, clock) = (WatchedDisk::new(SimulatedDisk::new()), Arc::new(ManualClock::default()));
    let on_disk = Arc::new(disk.clone());
    let store = FileStore::open_on(on_disk, DIR, options(), Arc::clone(&clock) as _).unwrap();
    let settings = StreamSettings { partitions: 1, keep: HOUR, ..StreamSettings::default() };
    let define = Define::Stream { name: "quiet".to_owned(), expect: None, settings };
    let quiet = block_on(store.define(define)).unwrap().stream.unwrap();
    let busy = stream(&store, "busy");
    append(&store, &quiet, 1, 10).unwrap();
    for _ in 0..40 {
        append(&store, &busy, 10, 100_000).unwrap();
    }
    clock.advance(2 * HOUR);
    append(&store, &quiet, 1, 10).unwrap();
    append(&store, &busy, 10, 100_000).unwrap();
    store.checkpoint().unwrap();
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    disk.watch(move |call, path: &Path| {
        let in_log = path.parent().is_some_and(|parent| parent.ends_with("log"));
        counted.fetch_add(usize::from(call == Call::Read && in_log), Ordering::Relaxed);
        Ok(())
    });
    let both = vec![EventId(1), EventId(2)];
    let by_id = ReadFrom::Ids(both.clone());
    for read in [after(&quiet, 0, 10), Read { from: by_id, ..after(&quiet, 0, 10) }] {
        assert_eq!(ids(block_on(store.read(read)).unwrap().entries), both);
    }
    assert_eq!(ids(block_on(store.read(after(&quiet, 1, 10))).unwrap().entries), [EventId(2)]);
    assert_eq!(block_on(store.trim(Trim { shard: shard(&quiet) })).unwrap().events, 1);
    disk.watch(|_, _| Ok(()));
    let reads = reads.load(Ordering::Relaxed);
    assert!(reads <= 20, "{reads} reads of the log for two events and 40 MB between them");
}

#[test]
fn events_do_not_keep_the_blocks_that_they_were_read_from() {
    let store = open(&SimulatedDisk::new());
    let (quiet, busy) = (stream(&store, "quiet"), stream(&store, "busy"));
    append(&store, &quiet, 3, 100).unwrap();
    (0..3).for_each(|_| drop(append(&store, &busy, 10, 100_000).unwrap()));
    store.checkpoint().unwrap();
    append(&store, &quiet, 3, 100).unwrap();
    let page = block_on(store.read(after(&quiet, 0, 10))).unwrap();
    assert_eq!(page.entries.len(), 6, "from files and from memory");
    for entry in page.entries {
        let Entry::Event(event) = entry else { panic!("{entry:?} in a queue") };
        let data = event.data.try_into_mut().expect("nobody else has its bytes");
        assert_eq!((data.len(), data.capacity()), (100, 100), "they are a part of the block that was read");
    }
}

#[test]
fn read_whose_caller_gave_up_still_counts_as_one() {
    let store = open(&SimulatedDisk::new());
    let readers = Arc::clone(&store.shared().file_readers);
    let all = readers.available_permits();
    let (began, begun) = channel();
    let (go, held) = channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // It owns `go`: should it panic, the read ends too.
    runtime.block_on(async move {
        let read = store.shared().read_files(move || {
            began.send(()).unwrap();
            held.recv().unwrap();
            Ok(())
        });
        let mut read = Box::pin(read);
        assert!(read.as_mut().now_or_never().is_none(), "it waits for its file");
        begun.recv().unwrap();
        drop(read);
        assert_eq!(readers.available_permits(), all - 1, "the read goes on");
        go.send(()).unwrap();
        drop(readers.acquire_many(u32::try_from(all).unwrap()).await.unwrap());
    });
}
