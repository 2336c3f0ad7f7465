//! Looking at lanes, and settings that cannot be run with.

use std::time::Duration;

use laneway_lanes::table::{LaneStatus, Mode, Tick, Why};
use laneway_lanes::{Lanes, Outcome, Run, Settings};

use crate::stage::{Act, Stage, done, held, part};

#[tokio::test]
async fn why_gives_one_reason_for_every_state() {
    let mut stage = Stage::new(Settings { concurrency: 1, ..Settings::default() });
    assert_eq!(stage.lanes.why(&"a"), Why::Idle);
    let retrying = stage.push(part("r1", Act::RetryUntil(2, Duration::from_secs(3_600)))).await;
    assert_eq!(stage.next_start().await, "r1");
    let (first, _release) = held("a1");
    let first = stage.push(first).await;
    let second = stage.push(done("a2")).await;
    assert_eq!(stage.next_start().await, "a1");
    drop(stage.push(done("b1")).await);
    stage.lanes.pause("c");
    assert!(
        matches!(stage.lanes.why(&"r"), Why::RetryAt { id, at, attempts: 1 }
            if id == retrying.id() && at >= Tick::START.after(Duration::from_secs(3_600))),
        "the whole wait is kept"
    );
    assert!(matches!(stage.lanes.why(&"a"), Why::Behind { id, since: Some(_) } if id == first.id()));
    assert!(matches!(stage.lanes.why_push(&"a", first.id()), Why::Running { attempt: 1, .. }));
    assert!(matches!(stage.lanes.why_push(&"a", second.id()), Why::Behind { id, .. } if id == first.id()));
    assert_eq!(stage.lanes.why(&"b"), Why::AtConcurrency { limit: 1 });
    assert_eq!(stage.lanes.why(&"c"), Why::Paused);
}

#[tokio::test]
async fn snapshot_counts_and_lanes_list_agree() {
    let mut stage = Stage::new(Settings::default());
    let (first, release) = held("a1");
    let first = stage.push(first).await;
    drop(stage.push(done("a2")).await);
    stage.lanes.pause("b");
    drop(stage.push(done("b1")).await);
    assert_eq!(stage.next_start().await, "a1");
    let view = stage.lanes.snapshot();
    assert_eq!((view.table.lanes, view.table.running, view.table.waiting), (2, 1, 2));
    let mut lanes: Vec<_> =
        stage.lanes.lanes(10).into_iter().map(|lane| (lane.key, lane.status, lane.waiting)).collect();
    lanes.sort_unstable_by_key(|lane| lane.0);
    assert_eq!(lanes, [("a", LaneStatus::Running, 1), ("b", LaneStatus::Paused, 1)]);
    assert_eq!(stage.lanes.lanes(1).len(), 1);
    release.add_permits(1);
    assert!(first.await.done().is_some());
}

#[tokio::test(start_paused = true)]
async fn snapshot_and_drain_count_what_ends_as_they_look() {
    let settings = Settings { mode: Mode::Latest, ..Settings::default() };
    let lanes = Lanes::start(settings, |_: Run<u8, ()>| async { Outcome::<(), ()>::Done(()) });
    let lanes = lanes.expect("settings in range");
    lanes.pause(1);
    // The second takes the place of the first when somebody looks behind the gate.
    drop(lanes.push((1, ())).await.expect("open"));
    drop(lanes.push((1, ())).await.expect("open"));
    let view = lanes.snapshot();
    assert_eq!((view.table.waiting, view.totals.superseded), (1, 1), "no push is in neither count");
    drop(lanes.push((1, ())).await.expect("open"));
    let drained = lanes.drain(Duration::ZERO).await;
    assert_eq!((drained.ends.superseded, drained.ends.cancelled), (0, 1), "it ended before the drain");
}

#[tokio::test]
async fn impossible_settings_are_refused_with_every_fault() {
    let settings = Settings { concurrency: 0, capacity: 0, supersede_running: true, ..Settings::default() };
    let refused = Lanes::start(settings, |_: Run<u8, ()>| async { Outcome::<(), ()>::Done(()) });
    let text = refused.expect_err("out of range").to_string();
    for part in ["concurrency is 0", "capacity is 0", "at least 1", "supersede_running"] {
        assert!(text.contains(part), "{text}");
    }
}
