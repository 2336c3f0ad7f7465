//! The list of ended jobs passes over those that cannot be read any more, a bounded number of them in one call.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use laneway_core::store::{Commit, EndedPage, JobEnd, Query, Rows};
use laneway_core::{CommitId, EventId, ManualClock, Shard, Store};

use super::harness::{DIR, append, options, stream};
use super::marks::{end, jobs};
use crate::file::FileStore;
use crate::file::disk::simulated::SimulatedDisk;
use crate::machine;

/// A page of the list, and how often the store was looked at for it.
fn page(store: &FileStore, shard: Shard, after: EventId) -> (EndedPage, usize) {
    let rounds = Cell::new(0);
    let rows = block_on(store.shared().observe(|seen, now| {
        rounds.set(rounds.get() + 1);
        machine::query::query(seen, now, &Query::Ended(shard, after, 100))
    }));
    let Rows::Ended(page) = rows.unwrap() else { panic!("ended jobs were asked for") };
    (page, rounds.get())
}

#[test]
fn ends_that_cannot_be_read_are_passed_over_a_bounded_number_at_a_time() {
    let clock = Arc::new(ManualClock::default());
    let disk = Arc::new(SimulatedDisk::new());
    let store = FileStore::open_on(disk, DIR, options(), Arc::clone(&clock) as _).unwrap();
    let (_, seat, fence) = jobs(&store);
    let mut commit = Commit::new(seat, fence, CommitId(1));
    commit.passed = (1..=3_000).map(EventId).collect();
    commit.jobs = (1..3_000).map(EventId).map(end).collect();
    let day = Duration::from_secs(24 * 3_600);
    commit.jobs.push(JobEnd { keep: day, ..end(EventId(3_000)) });
    block_on(store.commit(commit)).unwrap();
    let busy = stream(&store, "busy");
    (0..3).for_each(|_| drop(append(&store, &busy, 10, 100_000).unwrap()));
    store.checkpoint().unwrap();
    clock.advance(day / 2);

    let (mut ends, mut after, mut calls) = (Vec::new(), EventId(0), 0);
    loop {
        let (page, rounds) = page(&store, seat.shard, after);
        assert!(rounds <= 25, "{rounds} rounds in one call");
        ends.extend(page.ends.into_iter().map(|end| end.id));
        calls += 1;
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(ends, [EventId(3_000)], "the others are past their life");
    assert!((3..=4).contains(&calls), "{calls} calls");
}
