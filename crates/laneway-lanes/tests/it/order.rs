//! Order inside a lane, exclusion, fairness and priority between lanes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway_lanes::table::Priority;
use laneway_lanes::{Lanes, Outcome, Run, Settings};

use crate::stage::{Stage, done, held};

#[derive(Default)]
struct Witness {
    /// Per key: whether a run is under way, and the values seen.
    keys: HashMap<u32, (bool, Vec<u32>)>,
}

/// Runs a handler that sometimes waits, and checks that per key runs never overlap and keep their order.
async fn order_holds(settings: Settings, keys: u32, pushes: u32) {
    let witness = Arc::new(Mutex::new(Witness::default()));
    let seen = Arc::clone(&witness);
    let lanes = Lanes::start(settings, move |run: Run<u32, u32>| {
        let seen = Arc::clone(&seen);
        async move {
            let (key, value) = (*run.key(), *run.value());
            let entered = !std::mem::replace(
                &mut seen.lock().expect("not poisoned").keys.entry(key).or_default().0,
                true,
            );
            assert!(entered, "two runs of key {key} at a time");
            for _ in 0..value % 3 {
                tokio::task::yield_now().await;
            }
            let mut seen = seen.lock().expect("not poisoned");
            let (running, values) = seen.keys.entry(key).or_default();
            *running = false;
            values.push(value);
            Outcome::<(), ()>::Done(())
        }
    })
    .expect("settings in range");
    for number in 0..pushes {
        drop(lanes.push((number.wrapping_mul(2_654_435_761) % keys, number)).await);
    }
    let drained = lanes.drain(Duration::from_secs(60)).await;
    assert!(drained.in_time);
    assert_eq!(lanes.snapshot().totals.done, u64::from(pushes), "no run failed");
    for (key, (_, values)) in &witness.lock().expect("not poisoned").keys {
        assert!(values.is_sorted(), "key {key} ran out of order: {values:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_a_key_never_overlap_and_keep_their_order() {
    let settings = Settings { capacity: 64, concurrency: 16, workers: 4, ..Settings::default() };
    order_holds(settings.clone(), 1, 2_000).await;
    order_holds(settings.clone(), 7, 20_000).await;
    order_holds(settings, 1_000, 20_000).await;
}

#[tokio::test]
async fn many_handlers_are_under_way_with_few_workers() {
    let mut stage = Stage::new(Settings { workers: 1, concurrency: 100, ..Settings::default() });
    let mut held_pushes = Vec::new();
    for letters in 1..=100 {
        // A lane is the letters of its name, so each push gets a lane of its own.
        let (push, release) = held(String::leak("x".repeat(letters)));
        held_pushes.push((stage.push(push).await, release));
    }
    for _ in 0..100 {
        stage.next_start().await;
    }
    assert_eq!(stage.lanes.snapshot().table.running, 100);
    for (ticket, release) in held_pushes {
        release.add_permits(1);
        assert!(ticket.await.done().is_some());
    }
}

#[tokio::test]
async fn urgent_push_goes_before_lanes_that_wait_longer() {
    let mut stage = Stage::new(Settings { concurrency: 1, ageing: 0, ..Settings::default() });
    let (blocker, release) = held("z1");
    drop(stage.push(blocker).await);
    assert_eq!(stage.next_start().await, "z1");
    drop(stage.push(done("a1")).await);
    drop(stage.push(done("b1")).await);
    let urgent = stage.push(done("b2").priority(Priority::Urgent)).await;
    release.add_permits(1);
    assert!(urgent.await.done().is_some());
    let drained = stage.lanes.drain(Duration::from_secs(60)).await;
    assert!(drained.in_time);
    assert_eq!(stage.starts(), ["b1", "b2", "a1"], "the whole lane is lifted, in its order");
}

#[tokio::test]
async fn hot_lane_yields_to_others_after_its_quantum() {
    let mut stage = Stage::new(Settings { concurrency: 1, quantum: 2, ageing: 0, ..Settings::default() });
    let (blocker, release) = held("a1");
    drop(stage.push(blocker).await);
    assert_eq!(stage.next_start().await, "a1");
    for name in ["a2", "a3", "a4", "b1"] {
        drop(stage.push(done(name)).await);
    }
    release.add_permits(1);
    assert!(stage.lanes.drain(Duration::from_secs(60)).await.in_time);
    assert_eq!(stage.starts(), ["a2", "b1", "a3", "a4"]);
}
