//! Remote workers: claim, settle, extend, and a worker that goes silent.

use std::time::Duration;

use futures::FutureExt;
use laneway_core::{Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{ClaimError, ClaimWish, LaneAnswer, Outcome, Retry, Settlement};

use crate::seam;
use crate::world::World;

fn wish() -> ClaimWish {
    ClaimWish {
        lanes: 10,
        events: 1,
        lease: Duration::from_secs(30),
        wait: Duration::from_secs(20),
        ..ClaimWish::default()
    }
}

#[tokio::test(start_paused = true)]
async fn worker_claims_heads_of_lanes_and_settles_them_with_a_result() {
    let world = World::new(Mode::Queue).await;
    let desk = world.engine.process_at_desk("charge", "orders", ProcessorSettings::default()).await;
    let desk = desk.expect("a new processor");
    let first = world.submit("ann", "first").await;
    let second = world.submit("ann", "second").await;
    let claims = desk.claim(wish()).await;
    let data: Vec<_> = claims.iter().map(|claim| claim.run.events[0].data.clone()).collect();
    assert_eq!(data, ["first"], "one event of a lane at a time");
    let done = LaneAnswer::done(Some("paid".into()));
    desk.settle(&claims[0].token, done.clone()).await.expect("it is ours");
    assert_eq!(world.settled(first).await.status(), Status::Ended(Terminal::Done));
    let again = desk.settle(&claims[0].token, done.clone()).await.expect("it was ours");
    assert_eq!(again, Settlement::Already(Some(Outcome { done: 1, failed: false })));
    let claims = desk.claim(wish()).await;
    desk.settle(&claims[0].token, done).await.expect("it is ours");
    assert_eq!(world.settled(second).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn claim_that_finds_nothing_waits_and_answers_nothing() {
    let world = World::new(Mode::Queue).await;
    let desk = world.engine.process_at_desk("charge", "orders", ProcessorSettings::default()).await;
    let desk = desk.expect("a new processor");
    assert!(desk.claim(wish()).await.is_empty());
    let job = world.submit("ann", "late").await;
    assert_eq!(world.status(job).await, Status::Waiting, "nobody asks for it");
    assert_eq!(desk.claim(wish()).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn offers_that_nobody_took_do_not_stand_in_the_way_of_the_next_worker() {
    let world = World::new(Mode::Queue).await;
    let desk = world.engine.process_at_desk("charge", "orders", ProcessorSettings::default()).await;
    let desk = desk.expect("a new processor");
    for key in ["ann", "bob", "eve", "joe", "sue"] {
        world.submit(key, "ok").await;
    }
    seam::wait(Duration::from_secs(5)).await;
    // It asks, five lanes are offered, and it is gone before it takes them.
    let mut gone = Box::pin(desk.claim(ClaimWish { lanes: 5, ..wish() }));
    assert!(gone.as_mut().now_or_never().is_none(), "nothing is offered before somebody asks");
    seam::wait(Duration::from_millis(10)).await;
    drop(gone);
    seam::wait(Duration::from_secs(5)).await;
    assert_eq!(desk.claim(ClaimWish { lanes: 1, ..wish() }).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn silent_worker_loses_its_claim_and_a_higher_fence_runs_the_event() {
    let world = World::new(Mode::Queue).await;
    let desk = world.engine.process_at_desk("charge", "orders", ProcessorSettings::default()).await;
    let desk = desk.expect("a new processor");
    let job = world.submit("ann", "ok").await;
    let lost = desk.claim(wish()).await.remove(0);
    seam::wait(Duration::from_secs(31)).await;
    let again = desk.claim(wish()).await.remove(0);
    assert_eq!((lost.run.attempt, again.run.attempt), (1, 2));
    assert!(lost.run.fence.to_string() < again.run.fence.to_string());
    let late = desk.settle(&lost.token, LaneAnswer::done(None)).await;
    assert!(matches!(late, Err(ClaimError::Lost)), "{late:?}");
    desk.settle(&again.token, LaneAnswer::done(None)).await.expect("it is ours");
    assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn worker_that_extends_keeps_its_claim() {
    let world = World::new(Mode::Queue).await;
    let desk = world.engine.process_at_desk("charge", "orders", ProcessorSettings::default()).await;
    let desk = desk.expect("a new processor");
    let job = world.submit("ann", "ok").await;
    let claim = desk.claim(wish()).await.remove(0);
    for _ in 0..4 {
        seam::wait(Duration::from_secs(20)).await;
        desk.extend(&claim.token, Duration::from_secs(30)).await.expect("still ours");
    }
    desk.settle(&claim.token, LaneAnswer::done(None)).await.expect("it is ours");
    assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn failure_of_a_worker_follows_the_policy() {
    let world = World::new(Mode::Queue).await;
    let desk = world.engine.process_at_desk("charge", "orders", ProcessorSettings::default()).await;
    let desk = desk.expect("a new processor");
    let job = world.submit("ann", "ok").await;
    let claim = desk.claim(wish()).await.remove(0);
    desk.settle(&claim.token, LaneAnswer::failed("not now", Retry::ByPolicy)).await.expect("it is ours");
    assert_eq!(world.status(job).await, Status::Retrying);
    assert_eq!(desk.claim(wish()).await.remove(0).run.attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn workers_that_wait_together_have_no_more_lanes_than_the_processor_allows() {
    let world = World::new(Mode::Queue).await;
    let settings = ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() };
    let desk = world.engine.process_at_desk("charge", "orders", settings).await.expect("a new processor");
    let mut first = Box::pin(desk.claim(wish()));
    let mut second = Box::pin(desk.claim(wish()));
    assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
    for key in ["ann", "bob", "eve"] {
        world.submit(key, "ok").await;
    }
    let (claims, other) = match futures::future::select(first, second).await {
        futures::future::Either::Left(won) => won,
        futures::future::Either::Right(won) => won,
    };
    assert_eq!(claims.len(), 1);
    let mut other = other;
    seam::wait(Duration::from_secs(10)).await;
    assert!(other.as_mut().now_or_never().is_none(), "the only place is taken");
    desk.settle(&claims[0].token, LaneAnswer::done(None)).await.expect("it is ours");
    assert_eq!(seam::within(Duration::from_secs(5), other).await.len(), 1, "the place is free again");
}
