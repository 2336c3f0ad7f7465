//! What a commit brought is seen by nobody before it is durable: a power cut could still take it back.

use std::sync::Arc;
use std::sync::mpsc::channel;

use futures::FutureExt;
use futures::executor::block_on;
use laneway_core::Store;
use laneway_core::job::JobNumber;
use laneway_core::store::{JobState, Query, Rows, StateWrite};
use laneway_embedded::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use laneway_testkit::bench::{inline, job_draft, job_end, key, passed};
use parking_lot::Mutex;

use super::harness::{SMALLEST, bench};

#[test]
fn result_and_state_are_not_seen_before_their_commit_is_synced() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let (store, bench) = block_on(bench(Arc::new(disk.clone()), SMALLEST));
    let place = block_on(bench.place());
    let id = block_on(bench.send_one(&place, job_draft("a", "job", place.seat.processor)));
    let fence = block_on(bench.seize(place.seat)).progress.fence;
    let ((tell, syncing), (go, held)) = (channel(), channel());
    let gate = Mutex::new(Some((tell, held)));
    disk.watch(move |call, path| {
        let in_log = path.parent().is_some_and(|parent| parent.ends_with("log"));
        let gate = if in_log && call == Call::Sync { gate.lock().take() } else { None };
        if let Some((tell, held)) = gate {
            tell.send(()).unwrap();
            held.recv().unwrap();
        }
        Ok(())
    });
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.jobs = vec![job_end(id, inline("result"))];
    commit.states = vec![StateWrite { key: key("a"), value: Some("state".into()) }];
    let mut committing = store.commit(commit);
    assert!(committing.as_mut().now_or_never().is_none());
    syncing.recv().unwrap();
    // Asked while the sync is under way: either it waits, or it answers as before the commit.
    let mut early_job = Box::pin(bench.job(place.shard, JobNumber::Event(id)));
    let mut early_states = store.query(Query::States(place.seat, None, 10));
    if let Some(state) = early_job.as_mut().now_or_never() {
        assert!(matches!(state, JobState::Pending { .. }), "seen before it was synced: {state:?}");
    }
    if let Some(states) = early_states.as_mut().now_or_never() {
        assert_eq!(states.unwrap(), Rows::States(Vec::new()), "seen before it was synced");
    }
    go.send(()).unwrap();
    block_on(committing).unwrap();
    let state = block_on(bench.job(place.shard, JobNumber::Event(id)));
    assert!(matches!(state, JobState::Ended { .. }), "{state:?}");
}
