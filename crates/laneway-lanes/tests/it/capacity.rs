//! Room: waiting for it in line, giving up, being withdrawn, and being turned away.

use std::time::Duration;

use laneway_lanes::{End, PushError, Settings, TryPushError};

use crate::stage::{Stage, done, held};

fn narrow() -> Settings {
    Settings { capacity: 1, ..Settings::default() }
}

#[tokio::test]
async fn try_push_gives_the_value_back_when_full() {
    let stage = Stage::new(narrow());
    let (first, release) = held("a1");
    let first = stage.push(first).await;
    let refused = stage.lanes.try_push(done("b1")).expect_err("there is no room");
    assert!(matches!(refused, TryPushError::Full(_)));
    assert_eq!(refused.into_push().value.name, "b1");
    release.add_permits(1);
    assert!(first.await.done().is_some());
    assert!(stage.lanes.try_push(done("b1")).is_ok(), "an ended push makes room");
}

#[tokio::test]
async fn waiting_pushes_are_let_in_first_come_first_served() {
    let mut stage = Stage::new(narrow());
    let (first, release) = held("z1");
    drop(stage.push(first).await);
    let names = ["a1", "b1", "c1", "d1"];
    let waiting: Vec<_> = names.iter().map(|name| stage.lanes.push(done(name))).collect();
    assert!(matches!(stage.lanes.try_push(done("x1")), Err(TryPushError::Full(_))), "nobody jumps the line");
    release.add_permits(1);
    for push in waiting.into_iter().rev() {
        assert!(push.await.expect("the lanes are open").await.done().is_some());
    }
    assert_eq!(stage.starts(), ["z1", "a1", "b1", "c1", "d1"]);
}

#[tokio::test]
async fn dropping_a_waiting_push_withdraws_it_and_passes_its_place_on() {
    let mut stage = Stage::new(narrow());
    let (first, release) = held("z1");
    drop(stage.push(first).await);
    let withdrawn = stage.lanes.push(done("a1"));
    let kept = stage.lanes.push(done("b1"));
    drop(withdrawn);
    assert_eq!(stage.lanes.snapshot().waiting_for_capacity, 1);
    release.add_permits(1);
    assert!(kept.await.expect("the lanes are open").await.done().is_some());
    assert_eq!(stage.starts(), ["z1", "b1"]);
}

#[tokio::test]
async fn dropping_a_waiting_push_that_was_polled_leaks_no_room() {
    let stage = Stage::new(narrow());
    let (first, release) = held("z1");
    let first = stage.push(first).await;
    let mut waiting = Box::pin(stage.lanes.push(done("a1")));
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(waiting.as_mut().poll(context))).await;
    assert!(polled.is_pending());
    drop(waiting);
    release.add_permits(1);
    assert!(first.await.done().is_some());
    let next = stage.lanes.try_push(done("b1")).expect("the room of the withdrawn push is free");
    assert_eq!(next.await, End::Done("b1".to_owned()));
}

#[tokio::test]
async fn pushes_that_wait_for_room_are_given_back_when_the_lanes_close() {
    let stage = Stage::new(narrow());
    let (first, release) = held("z1");
    drop(stage.push(first).await);
    let waiting = stage.lanes.push(done("a1"));
    let (drained, answer) = futures::join!(stage.lanes.drain(Duration::from_secs(60)), async {
        let answer = waiting.await;
        release.add_permits(1);
        answer
    });
    let PushError(given_back) = answer.expect_err("the lanes are closed");
    assert_eq!(given_back.value.name, "a1");
    assert!(drained.in_time);
    assert!(matches!(stage.lanes.try_push(done("b1")), Err(TryPushError::Closed(_))));
    assert!(stage.lanes.push(done("b2")).await.is_err());
}

#[tokio::test]
async fn ticket_may_be_dropped_and_the_work_still_runs() {
    let mut stage = Stage::new(Settings::default());
    drop(stage.push(done("a1")).await);
    drop(stage.lanes.push(done("a2")));
    assert!(stage.lanes.drain(Duration::from_secs(60)).await.in_time);
    assert_eq!(stage.starts(), ["a1", "a2"]);
}
