//! The first event since a time among those that are kept aside: found by halves, however many there are.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use laneway_core::store::{Commit, HeldBy};
use laneway_core::{CommitId, EventId, ManualClock, Result, Store};

use super::harness::{DIR, append, events, options, shard, stream};
use super::marks::jobs;
use super::relocate::{busy, churn};
use crate::file::FileStore;
use crate::file::disk::simulated::SimulatedDisk;
use crate::file::state::Seen;
use crate::machine::{self, Now, View};

const MONTH: Duration = Duration::from_secs(30 * 24 * 3_600);

fn open() -> (FileStore, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let disk = Arc::new(SimulatedDisk::new());
    (FileStore::open_on(disk, DIR, options(), Arc::clone(&clock) as _).unwrap(), clock)
}

/// Looks at the store. Answers how often that was, too.
fn observe<T>(store: &FileStore, look: impl Fn(&Seen<'_>, Now) -> Result<T>) -> (T, usize) {
    let rounds = Cell::new(0);
    let found = block_on(store.shared().observe(|seen, now| {
        rounds.set(rounds.get() + 1);
        look(seen, now)
    }));
    (found.unwrap(), rounds.get())
}

#[test]
fn first_event_since_a_time_is_found_among_events_that_are_kept_aside() {
    let (store, clock) = open();
    let quiet = stream(&store, "quiet");
    for _ in 0..40 {
        append(&store, &quiet, 3, 10).unwrap();
        clock.advance(Duration::from_secs(1));
    }
    churn(&store, &busy(&store));
    let (all, shard) = (events(&store, &quiet), shard(&quiet));
    assert_eq!(store.shared().state.read().kept_of(shard).events, EventId(120));
    let times = all.iter().step_by(3).map(|event| event.time);
    for time in times.flat_map(|time| [time, time.after(Duration::from_micros(1))]) {
        for through in [0, 1, 59, 60, 61, 119, 120, 200].map(EventId) {
            let young = all.iter().find(|event| event.time >= time).map(|event| event.id);
            let (found, _) = observe(&store, |seen, _| seen.first_since(shard, time, through));
            assert_eq!(found, young.filter(|id| *id <= through), "since {time:?} through {through}");
        }
    }
}

#[test]
fn many_old_events_that_are_kept_aside_are_not_walked_through() {
    let (store, clock) = open();
    let (stream, seat, fence) = jobs(&store);
    churn(&store, &busy(&store));
    clock.advance(MONTH);
    append(&store, &stream, 1, 10).unwrap();
    let floor = Cell::new(EventId(0));
    let mut fence = fence;
    for last in [1_000, 2_000] {
        let mut commit = Commit::new(seat, fence, CommitId(last.into()));
        commit.passed = (floor.get().0 + 1..=last).map(EventId).collect();
        fence = block_on(store.commit(commit)).unwrap().fence;
        floor.set(EventId(last));
        let (held, rounds) = observe(&store, |seen, now| machine::trim::held(seen, now, shard(&stream)));
        assert_eq!(held, Some((EventId(last + 1), HeldBy::Processor(seat.processor))));
        assert!(rounds <= 16, "{rounds} rounds to find no young event among 3,000");
    }
}
