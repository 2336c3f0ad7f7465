//! Log time: groups are stamped in the order in which they are written, whoever asks the clock when.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use laneway_core::{Clock, Steady, Timestamp};

use super::harness::{DIR, append, events, options, stream};
use crate::file::FileStore;
use crate::file::disk::simulated::SimulatedDisk;
use crate::file::log::Position;
use crate::file::store::Shared;

/// A clock on which each question takes time, and which sees whether it is asked under the state's lock.
#[derive(Debug, Default)]
struct Asked {
    questions: AtomicU64,
    without_lock: AtomicU64,
    shared: OnceLock<Weak<Shared>>,
}

impl Clock for Asked {
    fn calendar(&self) -> Timestamp {
        let shared = self.shared.get().and_then(Weak::upgrade);
        if shared.is_some_and(|shared| shared.state.try_read().is_some()) {
            self.without_lock.fetch_add(1, Ordering::Relaxed);
        }
        Timestamp(1_794_700_000_000_000 + 1_000 * self.questions.fetch_add(1, Ordering::Relaxed))
    }

    fn steady(&self) -> Steady {
        Steady(1_000_000 + self.questions.load(Ordering::Relaxed))
    }

    fn epoch(&self) -> u128 {
        1
    }
}

#[test]
fn time_of_a_group_is_asked_under_the_lock_and_never_goes_back() {
    let clock = Arc::new(Asked::default());
    let disk = Arc::new(SimulatedDisk::new());
    let store = FileStore::open_on(disk, DIR, options(), Arc::clone(&clock) as _).unwrap();
    let stream = stream(&store, "first");
    clock.shared.set(Arc::downgrade(store.shared())).unwrap();
    append(&store, &stream, 1, 10).unwrap();
    assert_eq!(clock.without_lock.load(Ordering::Relaxed), 0, "another group could be stamped in between");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| drop(append(&store, &stream, 1, 10).unwrap())));
        }
    });
    let times: Vec<Timestamp> = events(&store, &stream).iter().map(|event| event.time).collect();
    assert_eq!(times.len(), 401);
    assert!(times.is_sorted(), "event times go back");
    let (mut position, mut stamps) = (Position::START, Vec::new());
    loop {
        let frames = store.shared().reader.frames_from(position, 1 << 20).unwrap();
        let Some(last) = frames.last() else { break };
        position = last.end().position;
        stamps.extend(frames.iter().map(|frame| (frame.stamp.calendar, frame.stamp.steady)));
    }
    assert!(stamps.len() > 50, "{} groups", stamps.len());
    assert!(stamps.is_sorted(), "times of groups go back");
}
