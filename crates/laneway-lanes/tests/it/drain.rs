//! Ending the executor: drain in time, drain too late, and letting go of the handle.

use std::time::Duration;

use laneway_lanes::{End, Settings};

use crate::stage::{Act, Stage, done, held, part};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn drain_finishes_what_was_accepted() {
    let stage = Stage::new(Settings::default());
    let tickets = stage.lanes.push_many(["a1", "a2", "b1", "c1"].map(done)).await;
    let drained = stage.lanes.drain(60 * SECOND).await;
    assert!(drained.in_time);
    assert_eq!((drained.ends.done, drained.ends.cancelled), (4, 0));
    for ticket in tickets {
        assert!(ticket.expect("pushed before the drain").await.done().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn drain_cancels_the_rest_after_its_deadline() {
    let mut stage = Stage::new(Settings::default());
    let hung = stage.push(part("a1", Act::Hang)).await;
    let behind = stage.push(done("a2")).await;
    stage.lanes.pause("b");
    let paused = stage.push(done("b1")).await;
    let finished = stage.push(done("c1")).await;
    assert_eq!(stage.next_start().await, "a1");
    let drained = stage.lanes.drain(5 * SECOND).await;
    assert!(!drained.in_time);
    assert_eq!(drained.ends.cancelled, 3);
    assert!(finished.await.done().is_some());
    for ticket in [hung, behind, paused] {
        assert_eq!(ticket.await, End::Cancelled);
    }
    let view = stage.lanes.snapshot();
    assert_eq!((view.table.waiting, view.table.running, view.closed), (0, 0, true));
}

#[tokio::test]
async fn drain_of_idle_lanes_returns_at_once_and_may_be_repeated() {
    let stage = Stage::new(Settings::default());
    assert!(stage.lanes.drain(Duration::ZERO).await.in_time);
    assert!(stage.lanes.drain(Duration::ZERO).await.in_time);
}

#[tokio::test]
async fn dropping_the_last_handle_lets_accepted_work_finish() {
    let stage = Stage::new(Settings::default());
    let (first, release) = held("a1");
    let first = stage.push(first).await;
    let second = stage.push(done("a2")).await;
    stage.lanes.pause("b");
    let paused = stage.push(done("b1")).await;
    drop(stage);
    assert_eq!(paused.await, End::Cancelled, "nobody could resume it");
    release.add_permits(1);
    assert!(first.await.done().is_some());
    assert!(second.await.done().is_some());
}
