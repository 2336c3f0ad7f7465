//! Latest mode through the executor.

use std::time::Duration;

use laneway_lanes::table::Mode;
use laneway_lanes::{End, Settings};

use crate::stage::{Act, Stage, done, held, part};

fn latest() -> Settings {
    Settings { mode: Mode::Latest, ..Settings::default() }
}

#[tokio::test]
async fn superseded_push_names_its_winner() {
    let mut stage = Stage::new(latest());
    let (first, release) = held("a1");
    let first = stage.push(first).await;
    assert_eq!(stage.next_start().await, "a1");
    let second = stage.push(done("a2")).await;
    let third = stage.push(done("a3")).await;
    let winner = third.id();
    assert_eq!(second.await, End::Superseded { by: winner });
    release.add_permits(1);
    assert_eq!(first.await, End::Done("a1".to_owned()), "a running push is not interrupted");
    assert_eq!(third.await, End::Done("a3 after a1".to_owned()), "the last done value is visible");
}

#[tokio::test]
async fn newer_push_frees_a_lane_in_back_off() {
    let mut stage = Stage::new(latest());
    let stuck = stage.push(part("a1", Act::RetryUntil(2, Duration::from_secs(3_600)))).await;
    assert_eq!(stage.next_start().await, "a1");
    let newer = stage.push(done("a2")).await;
    let winner = newer.id();
    assert_eq!(newer.await, End::Done("a2".to_owned()));
    assert_eq!(stuck.await, End::Superseded { by: winner });
    assert_eq!(stage.starts(), ["a2"], "as a first attempt");
}

#[tokio::test(start_paused = true)]
async fn running_push_is_stopped_for_a_newer_one_when_asked_for() {
    let mut stage = Stage::new(Settings { supersede_running: true, ..latest() });
    let old = stage.push(part("a1", Act::Hang)).await;
    assert_eq!(stage.next_start().await, "a1");
    let newer = stage.push(done("a2")).await;
    let winner = newer.id();
    assert_eq!(old.await, End::Superseded { by: winner });
    assert_eq!(newer.await, End::Done("a2".to_owned()));
}

#[tokio::test]
async fn try_push_counts_what_a_newer_push_has_replaced_as_room() {
    let mut stage = Stage::new(Settings { capacity: 3, ..latest() });
    let (first, release) = held("a1");
    drop(stage.push(first).await);
    assert_eq!(stage.next_start().await, "a1");
    for name in ["a2", "a3", "a4", "a5", "a6"] {
        drop(stage.lanes.try_push(done(name)).expect("each replaces the one before"));
    }
    release.add_permits(1);
    assert!(stage.lanes.drain(Duration::from_secs(60)).await.in_time);
    assert_eq!(stage.lanes.snapshot().totals.superseded, 4);
}

#[tokio::test]
async fn forgotten_key_accepts_an_old_generation_again() {
    let stage = Stage::new(Settings { remember: 1, ..latest() });
    assert!(stage.push(done("a1").generation(5)).await.await.done().is_some());
    assert!(matches!(stage.push(done("a2").generation(3)).await.await, End::Stale { .. }));
    assert!(stage.push(done("b1").generation(5)).await.await.done().is_some());
    assert_eq!(stage.lanes.snapshot().table.remembered, 1);
    assert!(stage.push(done("a3").generation(3)).await.await.done().is_some());
}

#[tokio::test]
async fn value_of_the_last_done_is_let_go_without_keep_last() {
    let stage = Stage::new(Settings { keep_last: false, ..latest() });
    assert!(stage.push(done("a1")).await.await.done().is_some());
    assert_eq!(stage.push(done("a2")).await.await, End::Done("a2 after nothing kept".to_owned()));
}
