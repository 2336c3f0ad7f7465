//! Old segments go although something in them is needed for long: it is kept aside, and read as before.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use laneway_core::store::{Commit, Define, Entry, JobState, Jobs, Read, ReadFrom, Trim};
use laneway_core::{CommitId, EventId, JobNumber, Store, StreamInfo, StreamSettings};

use super::harness::{DIR, append, events, open, shard};
use super::marks::{end, jobs};
use crate::file::FileStore;
use crate::file::disk::simulated::SimulatedDisk;

/// A stream of which everything may go at once.
pub(super) fn busy(store: &FileStore) -> StreamInfo {
    let settings = StreamSettings { partitions: 1, keep: Duration::ZERO, ..StreamSettings::default() };
    let define = Define::Stream { name: "busy".to_owned(), expect: None, settings };
    block_on(store.define(define)).unwrap().stream.unwrap()
}

/// Writes through many segments what may go at once. Answers how many segments there were at most.
pub(super) fn churn(store: &FileStore, busy: &StreamInfo) -> usize {
    let mut most = 0;
    for _ in 0..60 {
        append(store, busy, 10, 100_000).unwrap();
        block_on(store.trim(Trim { shard: shard(busy) })).unwrap();
        store.checkpoint().unwrap();
        most = most.max(store.shared().log.segments().len());
    }
    most
}

fn read(store: &FileStore, stream: &StreamInfo, from: ReadFrom) -> Vec<EventId> {
    let read =
        Read { shard: shard(stream), from, limit: 10_000, bytes: 8 << 20, processor: None, states: false };
    let id = |entry| match entry {
        Entry::Event(event) => event.id,
        other => panic!("{other:?} in a queue"),
    };
    block_on(store.read(read)).unwrap().entries.into_iter().map(id).collect()
}

fn state_of(store: &FileStore, stream: &StreamInfo, id: u64) -> JobState {
    let numbers = vec![JobNumber::Event(EventId(id))];
    let jobs = Jobs::Get { shard: shard(stream), numbers, results: true };
    block_on(store.jobs(jobs)).unwrap().remove(0).state
}

#[test]
fn waiting_events_and_kept_results_hold_back_no_segment() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    // Jobs, of which the first ends and nobody ever runs the rest.
    let (quiet, seat, fence) = jobs(&store);
    let mut commit = Commit::new(seat, fence, CommitId(1));
    commit.passed = [EventId(1)].into_iter().collect();
    commit.jobs = vec![end(EventId(1))];
    block_on(store.commit(commit)).unwrap();
    let all = events(&store, &quiet);
    let busy = busy(&store);
    let most = churn(&store, &busy);
    assert!(most <= 12, "{most} segments, although nearly nothing in them is needed");
    let check = |store: &FileStore| {
        assert_eq!(
            events(store, &quiet)[..all.len()],
            all,
            "what is kept aside and what follows is one page"
        );
        let ids = |from| read(store, &quiet, from);
        let last = ids(ReadFrom::After(EventId(2_990)));
        assert_eq!(last[..10], (2_991..=3_000).map(EventId).collect::<Vec<_>>());
        assert_eq!(ids(ReadFrom::Ids(vec![EventId(2), EventId(3_000)])), [EventId(2), EventId(3_000)]);
        assert!(matches!(state_of(store, &quiet, 1), JobState::Ended { result: Some(_), .. }));
        assert!(matches!(state_of(store, &quiet, 2), JobState::Pending { .. }));
    };
    check(&store);
    append(&store, &quiet, 5, 10).unwrap();
    assert_eq!(read(&store, &quiet, ReadFrom::After(EventId(3_000))).len(), 5, "the log goes on behind it");
    store.close().unwrap();
    let report = crate::file::verify_on(Arc::new(disk.clone()), Path::new(DIR)).unwrap();
    assert!(report.is_clean(), "{report}");
    let store = open(&disk);
    check(&store);
    // It goes when it is not needed any more.
    block_on(store.define(Define::RemoveStream { stream: quiet.id, expect: quiet.version })).unwrap();
    churn(&store, &busy);
    store.close().unwrap();
    drop(open(&disk));
}
