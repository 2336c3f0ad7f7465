//! Rules that need much from files ask for all of it at once: a call is applied again a few times, not once for each thing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

use futures::FutureExt;
use futures::executor::block_on;
use laneway_core::store::{Commit, Define, JobResult, Jobs, Read, ReadFrom, Reset, Trim};
use laneway_core::{
    Bytes, CommitId, EventId, Fence, JobNumber, Partition, Result, Seat, StartAt, Store, StreamInfo,
    StreamSettings, Timestamp,
};
use parking_lot::Mutex;

use super::harness::{append, append_of, open, open_with, options, shard, stream};
use super::marks::{end, jobs};
use crate::file::FileStore;
use crate::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use crate::file::group::Cost;
use crate::file::log::Space;
use crate::file::read::kept_by_id;
use crate::file::state::{Fetched, FileState, Reach, from_files};
use crate::machine::{self, Now, View};

/// Applies a rule. Answers how often it was applied, too.
fn apply<T>(store: &FileStore, mut rule: impl FnMut(&mut FileState, Now) -> Result<T>) -> (T, usize) {
    let (mut rounds, cost) =
        (0, Cost { space: Space::Reserve, bytes: 1 << 20, first: false, synced: false, may_wait: false });
    let counted = |state: &mut FileState, now| {
        rounds += 1;
        rule(state, now)
    };
    let answer = block_on(store.shared().call_with(cost, Fetched::default(), counted)).unwrap();
    (answer, rounds)
}

/// Writes so much that what was written before is in sealed segments, and in no cache.
fn seal(store: &FileStore, stream: &StreamInfo) {
    (0..3).for_each(|_| drop(append(store, stream, 10, 100_000).unwrap()));
    store.checkpoint().unwrap();
}

/// A seat that has passed and ended all jobs that `ends` answers, and was reset to its first event.
fn second_life(store: &FileStore, ends: impl Iterator<Item = u64>) -> (Seat, Fence) {
    let (_, seat, fence) = jobs(store);
    let mut commit = Commit::new(seat, fence, CommitId(1));
    commit.passed = (1..=3_000).map(EventId).collect();
    commit.jobs = ends.map(EventId).map(end).collect();
    let fence = block_on(store.commit(commit)).unwrap().fence;
    let mut commit = Commit::new(seat, fence, CommitId(2));
    commit.reset = Some(Reset { start: StartAt::Beginning, clear_states: false, quiet: false });
    (seat, block_on(store.commit(commit)).unwrap().fence)
}

/// A commit that ends a thousand jobs.
fn thousand_ends(seat: Seat, fence: Fence) -> Commit {
    let mut commit = Commit::new(seat, fence, CommitId(3));
    commit.passed = (1..=1_000).map(EventId).collect();
    commit.jobs = (1..=1_000).map(EventId).map(end).collect();
    commit
}

#[test]
fn commit_looks_for_all_ends_of_its_jobs_at_once() {
    let store = open(&SimulatedDisk::new());
    let (seat, fence) = second_life(&store, 1..=3_000);
    seal(&store, &stream(&store, "busy"));
    let commit = thousand_ends(seat, fence);
    let ((_, ended), rounds) =
        apply(&store, |state, now| machine::commit::commit(state, now, commit.clone()));
    assert_eq!(ended, [], "all of them have ended in the first life");
    assert!(rounds <= 3, "{rounds} rounds: one for the jobs, one for their ends, and the last");
}

#[test]
fn missing_ends_are_not_looked_for_again_when_a_segment_is_sealed_meanwhile() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let store = open_with(Arc::new(disk.clone()), options());
    let (seat, fence) = second_life(&store, [1, 3_000].into_iter());
    let busy = stream(&store, "busy");
    seal(&store, &busy);
    let (inside, is_sealing, reads) = (store.clone(), AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&reads);
    disk.watch(move |call, path: &Path| {
        let is_footer = path.extension().is_some_and(|extension| extension == "idx");
        if call == Call::Read && is_footer && !is_sealing.load(Ordering::Relaxed) {
            // In the middle of a round, and a few times only: the call must come to its end.
            let count = counted.fetch_add(1, Ordering::Relaxed);
            if count < 3_000 && count % 1_000 == 500 {
                is_sealing.store(true, Ordering::Relaxed);
                // On a thread of its own, because the reader is inside an executor.
                std::thread::scope(|scope| drop(scope.spawn(|| seal(&inside, &busy))));
                is_sealing.store(false, Ordering::Relaxed);
            }
        }
        Ok(())
    });
    let commit = thousand_ends(seat, fence);
    let ((_, ended), rounds) =
        apply(&store, |state, now| machine::commit::commit(state, now, commit.clone()));
    disk.watch(|_, _| Ok(()));
    assert!(reads.load(Ordering::Relaxed) > 500, "no segment was sealed");
    assert_eq!(ended.len(), 999, "the first one has ended before");
    assert!(rounds <= 3, "{rounds} rounds");
}

#[test]
fn ends_do_not_keep_the_blocks_that_they_were_read_from() {
    let store = open(&SimulatedDisk::new());
    let (seat, _) = second_life(&store, 1..=3_000);
    seal(&store, &stream(&store, "busy"));
    let ends = from_files(store.shared().archive.job_ends(seat.shard, EventId(0), 10, Reach::Files)).unwrap();
    assert_eq!(ends.len(), 10);
    for stored in ends {
        let JobResult::Inline(result) = stored.end.result else { panic!("it has a result") };
        let (len, owned) = (result.len(), result.try_into_mut().expect("nobody else has its bytes"));
        assert_eq!(owned.capacity(), len, "they are a part of the block that was read");
    }
}

#[test]
fn trim_looks_at_all_shortened_lives_at_once() {
    let store = open(&SimulatedDisk::new());
    let (seat, _) = second_life(&store, 1..=3_000);
    for id in 1..=150 {
        let forget = Jobs::Forget { shard: seat.shard, number: JobNumber::Event(EventId(id)) };
        block_on(store.jobs(forget)).unwrap();
    }
    seal(&store, &stream(&store, "busy"));
    let trim = Trim { shard: seat.shard };
    let (_, rounds) = apply(&store, |state, now| machine::trim::trim(state, now, trim));
    assert!(rounds <= 2, "{rounds} rounds for 150 jobs that were forgotten");
}

#[test]
fn processor_finds_its_start_in_all_partitions_at_once() {
    const PARTITIONS: u32 = 16;
    let store = open(&SimulatedDisk::new());
    let settings = StreamSettings { partitions: PARTITIONS, ..StreamSettings::default() };
    let define = Define::Stream { name: "wide".to_owned(), expect: None, settings };
    let wide = block_on(store.define(define)).unwrap().stream.unwrap();
    for partition in (0..PARTITIONS).map(Partition) {
        let append = append_of(&store, &wide, 3, 10);
        let shard = wide.shard(partition);
        block_on(store.append(laneway_core::store::Append { shard, ..append })).unwrap();
    }
    let define = Define::Processor {
        stream: wide.id,
        name: "late".to_owned(),
        start: StartAt::Time(Timestamp(0)),
        settings: Bytes::new(),
    };
    let (_, rounds) = apply(&store, |state, now| machine::define::define(state, now, define.clone()));
    assert!(rounds <= 2, "{rounds} rounds for {PARTITIONS} partitions");
}

#[test]
fn events_that_are_kept_aside_are_read_by_their_ids_in_a_few_rounds() {
    let store = open(&SimulatedDisk::new());
    let (quiet, ..) = jobs(&store);
    let busy = super::relocate::busy(&store);
    super::relocate::churn(&store, &busy);
    let ids: Vec<EventId> = (1..=3_000).step_by(30).map(EventId).collect();
    assert_eq!(store.shared().state.read().kept_of(shard(&quiet)).events, EventId(3_000));
    let from = ReadFrom::Ids(ids.clone());
    let read =
        Read { shard: shard(&quiet), from, limit: 10_000, bytes: 8 << 20, processor: None, states: false };
    let rounds = std::cell::Cell::new(0);
    let events = block_on(store.shared().observe(|state, _| {
        rounds.set(rounds.get() + 1);
        kept_by_id(state, &read, &ids, EventId(1))
    }));
    assert!(events.unwrap().iter().map(|event| event.id).eq(ids.iter().copied()));
    assert!(rounds.get() <= 10, "{} rounds for {} events", rounds.get(), ids.len());
}

#[test]
fn others_do_not_stand_back_while_a_call_that_goes_first_reads_files() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let store = open_with(Arc::new(disk.clone()), options());
    let stream = stream(&store, "first");
    (0..3).for_each(|_| drop(append(&store, &stream, 10, 100_000).unwrap()));
    let (go, held) = channel::<()>();
    let (held, shared, waiting) =
        (Mutex::new(held), Arc::clone(store.shared()), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&waiting);
    disk.watch(move |call, _| {
        let waiting = shared.pipeline.waiting_first.load(Ordering::Relaxed);
        match call {
            // The test lets it go on by dropping the sender.
            Call::Sync => assert!(held.lock().recv().is_err(), "nothing is ever sent"),
            Call::Read => seen.lock().push(waiting),
            _ => {}
        }
        Ok(())
    });
    let mut appended = Box::pin(store.append(append_of(&store, &stream, 1, 1)));
    assert!((&mut appended).now_or_never().is_none(), "its group waits for the disk");
    let cost = Cost { space: Space::Reserve, bytes: 1 << 10, first: true, synced: false, may_wait: false };
    let rule = |state: &mut FileState, _| state.event(shard(&stream), EventId(1));
    let mut first = Box::pin(store.shared().call_with(cost, Fetched::default(), rule));
    assert!((&mut first).now_or_never().is_none(), "it waits for the group that is being written");
    assert_eq!(store.shared().pipeline.waiting_first.load(Ordering::Relaxed), 1);
    drop(go);
    assert!(block_on(first).unwrap().is_some());
    block_on(appended).unwrap();
    disk.watch(|_, _| Ok(()));
    let waiting = waiting.lock();
    assert!(!waiting.is_empty() && waiting.iter().all(|count| *count == 0), "{waiting:?}");
}
