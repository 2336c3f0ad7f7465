//! Retries by the handler's answer, and pushes that are not started in time.

use std::time::Duration;

use laneway_lanes::{Cause, End, Failure, Settings};

use crate::stage::{Act, Stage, done, held, part};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn retried_push_keeps_its_place_before_its_successors() {
    let mut stage = Stage::new(Settings::default());
    let first = stage.push(part("a1", Act::RetryUntil(3, SECOND))).await;
    let second = stage.push(done("a2")).await;
    assert!(second.await.done().is_some());
    assert!(first.await.done().is_some());
    assert_eq!(stage.starts(), ["a1", "a1#2", "a1#3", "a2"]);
}

#[tokio::test(start_paused = true)]
async fn back_off_of_one_lane_does_not_hold_up_another() {
    let mut stage = Stage::new(Settings { concurrency: 1, ..Settings::default() });
    let slow = stage.push(part("a1", Act::RetryUntil(2, SECOND))).await;
    assert_eq!(stage.next_start().await, "a1");
    assert!(stage.push(done("b1")).await.await.done().is_some());
    assert!(slow.await.done().is_some());
    assert_eq!(stage.starts(), ["b1", "a1#2"]);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_bounded_and_the_last_error_is_kept() {
    let mut stage = Stage::new(Settings { attempts_max: 3, ..Settings::default() });
    let ticket = stage.push(part("a1", Act::RetryUntil(u32::MAX, SECOND))).await;
    let cause = Cause::Handler("a1 not yet".to_owned());
    assert_eq!(ticket.await, End::Failed(Failure { cause, attempts: 3 }));
    assert_eq!(stage.starts(), ["a1", "a1#2", "a1#3"]);
}

#[tokio::test(start_paused = true)]
async fn push_not_started_within_its_time_to_live_expires_promptly() {
    let mut stage = Stage::new(Settings::default());
    let (first, release) = held("a1");
    let first = stage.push(first).await;
    assert_eq!(stage.next_start().await, "a1");
    let late = stage.push(done("a2").ttl(SECOND)).await;
    let last = stage.push(done("a3")).await;
    assert_eq!(late.await, End::Expired, "while the first still runs");
    release.add_permits(1);
    assert!(first.await.done().is_some());
    assert!(last.await.done().is_some());
    assert_eq!(stage.starts(), ["a3"]);
}

#[tokio::test(start_paused = true)]
async fn push_started_in_time_does_not_expire() {
    let stage = Stage::new(Settings::default());
    let ticket = stage.push(part("a1", Act::RetryUntil(2, 10 * SECOND)).ttl(SECOND)).await;
    assert!(ticket.await.done().is_some());
}
