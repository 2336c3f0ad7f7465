//! Ends of jobs beside a group that is not durable yet.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use futures::FutureExt as _;
use futures::executor::block_on;
use laneway_core::store::{Commit, JobState, Jobs};
use laneway_core::{CommitId, EventId, JobNumber, Store};
use parking_lot::Mutex;

use super::harness::{append_of, open_with, options};
use super::marks::{end, jobs};
use crate::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};

const FIRST: JobNumber = JobNumber::Event(EventId(1));
const SECOND: JobNumber = JobNumber::Event(EventId(2));

#[test]
fn durable_end_is_told_while_a_group_is_written_and_nothing_else_is() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let store = open_with(Arc::new(disk.clone()), options());
    let (stream, seat, fence) = jobs(&store);
    let mut commit = Commit::new(seat, fence, CommitId(1));
    commit.passed = [EventId(1)].into_iter().collect();
    commit.jobs = vec![end(EventId(1))];
    let fence = block_on(store.commit(commit)).unwrap().fence;

    let (go, held) = channel::<()>();
    let held = Mutex::new(held);
    disk.watch(move |call, _| {
        // Whoever lets it go on does so by hanging up.
        if call == Call::Sync {
            assert!(held.lock().recv().is_err(), "nothing is ever sent");
        }
        Ok(())
    });
    let get = |number| {
        let jobs = Jobs::Get { shard: seat.shard, numbers: vec![number], results: true };
        Box::pin(store.jobs(jobs))
    };
    let is_ended =
        |views: Vec<laneway_core::store::JobView>| matches!(views[0].state, JobState::Ended { .. });
    let mut appended = Box::pin(store.append(append_of(&store, &stream, 1, 1)));
    assert!((&mut appended).now_or_never().is_none(), "its group waits for the disk");
    assert!(is_ended(get(FIRST).now_or_never().expect("it is in the log").unwrap()));
    assert!(get(SECOND).now_or_never().is_none(), "what else was seen may be of the open group");

    let mut commit = Commit::new(seat, fence, CommitId(2));
    commit.passed = [EventId(2)].into_iter().collect();
    commit.jobs = vec![end(EventId(2))];
    let mut committed = Box::pin(store.commit(commit));
    assert!((&mut committed).now_or_never().is_none());
    let mut second = get(SECOND);
    assert!((&mut second).now_or_never().is_none(), "this end is not durable");
    let take = Jobs::Take { shard: seat.shard, number: FIRST, grace: Duration::from_secs(1) };
    let mut taken = Box::pin(store.jobs(take));
    assert!((&mut taken).now_or_never().is_none());
    let mut shortened = get(FIRST);
    assert!((&mut shortened).now_or_never().is_none(), "its shorter life is not durable");

    drop(go);
    block_on(async { (appended.await.unwrap(), committed.await.unwrap(), taken.await.unwrap()) });
    assert!(is_ended(block_on(second).unwrap()));
    let JobState::Ended { keep_until, .. } = &block_on(shortened).unwrap()[0].state else { panic!("gone") };
    assert!(keep_until.0 <= 1_000_000 + store.shared().clock.now().calendar.0);
}
