//! Files are read on threads that may wait for a disk, and on none of the runtime's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ThreadId;

use futures::executor::block_on;
use laneway_core::store::{Append, Commit, Jobs, LaneSelect, Lanes, Query, Read, ReadFrom, Trim};
use laneway_core::{CommitId, EventId, JobNumber, Key, Result, Store, StreamInfo};
use parking_lot::Mutex;

use super::harness::{append, append_of, open_with, options, shard, stream};
use super::marks::{end, jobs};
use crate::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use crate::file::{FileOptions, FileStore};

const LANES: usize = 100;

/// Appends to so many lanes.
fn keyed(store: &FileStore, stream: &StreamInfo) -> Append {
    let mut append = append_of(store, stream, LANES, 10);
    for (number, draft) in append.drafts.iter_mut().enumerate() {
        draft.key = Some(Key::new(format!("lane-{number}")).unwrap());
    }
    append
}

/// The files that were read on a thread since the last look.
struct Reads(Arc<Mutex<Vec<PathBuf>>>);

impl Reads {
    fn on(disk: &WatchedDisk, thread: ThreadId) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        disk.watch(move |call, path: &Path| {
            if call == Call::Read && std::thread::current().id() == thread {
                noted.lock().push(path.to_owned());
            }
            Ok(())
        });
        Self(seen)
    }

    fn none<T>(&self, call: &str, answer: Result<T>) {
        assert!(answer.is_ok(), "{call}: {:?}", answer.err());
        let seen = std::mem::take(&mut *self.0.lock());
        assert!(seen.is_empty(), "{call} waits for files on a thread of the runtime: {seen:?}");
    }

    /// The same for a call that changes rows: it may look at a few small ones in the index under the lock.
    fn none_of_the_log<T>(&self, call: &str, answer: Result<T>) {
        self.0.lock().retain(|path| path.file_name().is_none_or(|name| name != "index.redb"));
        self.none(call, answer);
    }
}

#[test]
fn files_are_read_on_no_thread_of_the_runtime() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let options = FileOptions { tail_cache: 0, index_cache_bytes: 0, ..options() };
    let store = open_with(Arc::new(disk.clone()), options);
    let (old, seat, fence) = jobs(&store);
    let lanes = stream(&store, "lanes");
    let (busy, others) = (stream(&store, "busy"), stream(&store, "others"));
    block_on(store.append(keyed(&store, &lanes))).unwrap();
    for _ in 0..2 {
        (0..3).for_each(|_| drop(append(&store, &busy, 10, 100_000).unwrap()));
        store.checkpoint().unwrap();
        (0..10).for_each(|_| drop(block_on(store.append(keyed(&store, &others))).unwrap()));
    }
    let keys = keyed(&store, &lanes).drafts.into_iter().filter_map(|draft| draft.key).collect::<Vec<_>>();
    let missing = store.shared().state.read().tails.missing(shard(&lanes), keys.iter());
    assert_eq!(missing.map(|missing| missing.into_keys().len()), Some(LANES), "they are in the index alone");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let reads = Reads::on(&disk, std::thread::current().id());
        reads.none("append to cold lanes", store.append(keyed(&store, &lanes)).await);
        let page = Read {
            shard: shard(&old),
            from: ReadFrom::After(EventId(0)),
            limit: 10,
            bytes: 1 << 20,
            processor: None,
            states: false,
        };
        reads.none("read of old events", store.read(page.clone()).await);
        let by_id = ReadFrom::Ids(vec![EventId(3), EventId(2_000)]);
        reads.none("read by id", store.read(Read { from: by_id, ..page }).await);
        let numbers = vec![JobNumber::Event(EventId(5))];
        reads
            .none("look at a job", store.jobs(Jobs::Get { shard: seat.shard, numbers, results: true }).await);
        reads.none("list of lane ends", store.query(Query::Tails(shard(&lanes), None, 10)).await);
        reads.none("counts", store.query(Query::Counts(shard(&lanes))).await);
        reads.none("list of events", store.query(Query::Events(shard(&old), EventId(0), 10)).await);
        let select = LaneSelect::Blocked { kind: None, after: None, limit: 10 };
        reads.none("list of lanes", store.lanes(Lanes { seat, select, siding: 1, states: true }).await);
        let mut commit = Commit::new(seat, fence, CommitId(1));
        commit.passed = (1..=100).map(EventId).collect();
        commit.jobs = (1..=100).map(EventId).map(end).collect();
        reads.none_of_the_log("commit", store.commit(commit).await);
        reads.none_of_the_log("trim", store.trim(Trim { shard: shard(&old) }).await);
    });
}
