//! Old segments go although something in them is needed for long: it is kept aside, and read as before.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use laneway_core::store::{Commit, Define, Entry, JobState, Jobs, Read, ReadFrom, Trim};
use laneway_core::{CommitId, EventId, JobDraft, JobNumber, Store, StreamInfo, StreamSettings};

use super::harness::{DIR, append, append_of, events, open, shard, stream};
use super::marks::{end, jobs, seat_of_jobs};
use crate::file::FileStore;
use crate::file::cost;
use crate::file::disk::simulated::SimulatedDisk;
use crate::machine;

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

/// Submits and ends so many small jobs, which are kept for an hour, in a stream that keeps no events.
fn run_jobs(store: &FileStore, count: u64) -> StreamInfo {
    let settings = StreamSettings { partitions: 1, keep: Duration::ZERO, ..StreamSettings::default() };
    let (stream, seat, mut fence) = seat_of_jobs(store, settings);
    for first in (1..=count).step_by(1_000) {
        let mut append = append_of(store, &stream, 1_000, 1);
        for draft in &mut append.drafts {
            draft.job = Some(JobDraft { responder: seat.processor, keep: Duration::from_secs(3_600) });
        }
        block_on(store.append(append)).unwrap();
        let ids = || (first..first + 1_000).map(EventId);
        let mut commit = Commit::new(seat, fence, CommitId(u128::from(first)));
        commit.passed = ids().collect();
        commit.jobs = ids().map(end).collect();
        fence = block_on(store.commit(commit)).unwrap().fence;
    }
    stream
}

#[test]
fn dense_results_are_moved_only_once_they_hold_back_much_more() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let stream = run_jobs(&store, 200_000);
    block_on(store.trim(Trim { shard: shard(&stream) })).unwrap();
    store.checkpoint().unwrap();
    let in_use = store.shared().log.segments().len();
    assert!(in_use > 6, "a log of {in_use} segments is too short to move anything");
    let moved = |store: &FileStore| store.shared().state.read().kept_of(shard(&stream)).ends.1;
    assert_eq!(moved(&store), EventId(0), "rows of all these results take more room than the log");
    let busy = busy(&store);
    for _ in 0..3 {
        churn(&store, &busy);
    }
    store.close().unwrap();
    // A new start looks at the oldest segment again.
    let store = open(&disk);
    for _ in 0..20 {
        store.checkpoint().unwrap();
    }
    assert_eq!(moved(&store), EventId(200_000), "they held back the log of another stream");
    assert!(store.shared().log.segments().len() <= 7);
    assert!(matches!(state_of(&store, &stream, 1), JobState::Ended { result: Some(_), .. }));
}

#[test]
fn many_segments_are_emptied_with_a_checkpoint_in_between() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    let (quiet, busy) = (stream(&store, "quiet"), busy(&store));
    for _ in 0..80 {
        append(&store, &quiet, 3, 50_000).unwrap();
        append(&store, &busy, 10, 100_000).unwrap();
    }
    let before = store.shared().log.segments().len();
    // Now every segment holds back little, all at once. A new start looks at all of them again.
    block_on(store.trim(Trim { shard: shard(&busy) })).unwrap();
    store.close().unwrap();
    let store = open(&disk);
    let segments = || store.shared().log.segments().len();
    store.checkpoint().unwrap();
    let after_one = segments();
    assert!(after_one > before / 2 && after_one < before, "{before} segments, then {after_one}");
    for _ in 0..20 {
        store.checkpoint().unwrap();
    }
    assert!(segments() <= 8, "{} segments are left", segments());
    let ids = vec![EventId(1), EventId(120), EventId(240)];
    assert_eq!(read(&store, &quiet, ReadFrom::Ids(ids.clone())), ids);
}

#[test]
fn page_read_while_a_segment_is_emptied_has_every_event_once() {
    let store = open(&SimulatedDisk::new());
    let (quiet, _, _) = jobs(&store);
    let all = events(&store, &quiet);
    // The first piece of a segment is moved, and how far that goes is not yet written.
    for (piece, through) in [(&all[..100], Some(EventId(100))), (&all[100..150], None)] {
        let keep = |state: &mut crate::file::state::FileState, _| {
            machine::kept::keep(state, shard(&quiet), piece, &[], through)
        };
        store.shared().call_blocking(cost::settling(100_000), keep).unwrap();
    }
    let expected: Vec<_> = all.iter().map(|event| event.id).collect();
    assert_eq!(read(&store, &quiet, ReadFrom::After(EventId(0))), expected);
}
