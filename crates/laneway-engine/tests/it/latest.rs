//! Latest mode: the newest event of a lane wins, durably.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::limits::{DATA_BYTES_MAX, VALUE_BYTES_MAX};
use laneway_core::store::Receipt;
use laneway_core::{Mode, Seq, Status, StreamSettings, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, LaneRun, OnFailure, Policy, StateChange};
use laneway_engine::job::{By, JobError, Retried, Submit};
use laneway_engine::log::Appending;

use crate::seam;
use crate::world::{Answer, World, draft};

fn settings() -> ProcessorSettings {
    let policy = Policy { max_attempts: 2, on_failure: OnFailure::Park, ..Policy::default() };
    ProcessorSettings { policy, ..ProcessorSettings::default() }
}

async fn submit(world: &World, key: &str, generation: u64, data: &str) -> laneway_core::JobId {
    let mut draft = draft(key, data);
    draft.generation = Some(generation);
    let job = Submit { draft, processor: None, keep: None };
    let submitted = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    submitted.into_iter().next().expect("one answer").expect("the store takes it").id
}

#[tokio::test(start_paused = true)]
async fn only_the_newest_of_what_waits_runs_and_the_others_name_it() {
    let world = World::new(Mode::Latest).await;
    world.process(settings()).await;
    world.engine.drain(crate::world::SOON).await;
    let mut world = world.again();
    let first = submit(&world, "pod", 1, "one").await;
    let second = submit(&world, "pod", 2, "two").await;
    let third = submit(&world, "pod", 3, "three").await;
    world.process(settings()).await;
    assert_eq!(world.settled(third).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.settled(first).await.status(), Status::Ended(Terminal::Superseded));
    assert_eq!(world.settled(second).await.status(), Status::Ended(Terminal::Superseded));
    assert_eq!(world.nexts(1).await, ["three"]);
}

#[tokio::test(start_paused = true)]
async fn newer_event_ends_one_that_waits_behind_a_run() {
    let mut world = World::new(Mode::Latest).await;
    world.process(settings()).await;
    let running = submit(&world, "pod", 1, "slow").await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    let waiting = submit(&world, "pod", 2, "two").await;
    let newest = submit(&world, "pod", 3, "three").await;
    assert_eq!(world.settled(waiting).await.status(), Status::Ended(Terminal::Superseded));
    assert_eq!(world.settled(newest).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.settled(running).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.nexts(1).await, ["three"]);
}

#[tokio::test(start_paused = true)]
async fn newer_event_frees_a_parked_lane_and_begins_with_no_attempts() {
    let mut world = World::new(Mode::Latest).await;
    world.process(settings()).await;
    let parked = submit(&world, "pod", 1, "fail").await;
    assert_eq!(world.settled(parked).await.status(), Status::Parked);
    assert_eq!(world.nexts(2).await, ["fail", "fail"]);
    let newer = submit(&world, "pod", 2, "ok").await;
    assert_eq!(world.settled(newer).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.status(parked).await, Status::Ended(Terminal::Superseded));
    let ran = world.next().await;
    assert_eq!((ran.data.as_str(), ran.attempt), ("ok", 1));
}

#[tokio::test(start_paused = true)]
async fn stale_generation_is_refused_also_when_nothing_runs() {
    let world = World::new(Mode::Latest).await;
    world.process(settings()).await;
    let newest = submit(&world, "pod", 5, "five").await;
    world.settled(newest).await;
    let mut old = draft("pod", "three");
    old.generation = Some(3);
    let sent =
        world.engine.producer().append("orders", Appending { drafts: vec![old.clone()], object: None });
    let sent = sent.await.expect("the stream exists").remove(0).receipt.expect("answered");
    assert!(matches!(sent, Receipt::Stale { generation: 5, .. }), "{sent:?}");
    let job = Submit { draft: old, processor: None, keep: None };
    let answers = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    assert!(matches!(answers[0], Err(JobError::NotMade(_))), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn generation_that_was_done_is_superseded_also_after_a_restart() {
    let mut world = World::new(Mode::Latest).await;
    world.process(settings()).await;
    let done = submit(&world, "pod", 5, "five").await;
    world.settled(done).await;
    assert_eq!(world.nexts(1).await, ["five"]);
    world.engine.drain(crate::world::SOON).await;
    let again = world.again();
    again.process(settings()).await;
    let same = submit(&again, "pod", 5, "five once more").await;
    assert_eq!(again.settled(same).await.status(), Status::Ended(Terminal::Superseded));
}

/// Says which payload was done before; a lane that was never run keeps the largest state besides.
fn tell_the_last(lane: &LaneRun) -> Answer {
    let before = lane.last_done.as_ref();
    let result = before.map(|last| last.data.clone().unwrap_or_else(|| Bytes::from_static(b"unknown")));
    let mut answer = LaneAnswer::done(result);
    if before.is_none() {
        answer.state = StateChange::Set(Bytes::from(vec![b's'; VALUE_BYTES_MAX]));
    }
    Answer::Now(answer)
}

/// What the run of a new generation found as done before.
async fn found_before(world: &World, generation: u64, data: &str) -> Option<Bytes> {
    let job = submit(world, "pod", generation, data).await;
    let settled = world.settled(job).await;
    assert_eq!(settled.status(), Status::Ended(Terminal::Done));
    settled.result().cloned()
}

#[tokio::test(start_paused = true)]
async fn payload_of_the_last_done_is_told_with_keep_last_and_survives_a_restart() {
    let keeps = ProcessorSettings { keep_last: true, ..settings() };
    let largest = "x".repeat(DATA_BYTES_MAX);
    let world = World::new(Mode::Latest).await;
    world.process_with(keeps.clone(), tell_the_last).await;
    assert_eq!(found_before(&world, 1, &largest).await, None);
    world.engine.drain(crate::world::SOON).await;
    let world = world.again();
    world.process_with(keeps, tell_the_last).await;
    assert_eq!(found_before(&world, 2, "two").await, Some(Bytes::from(largest)));
    assert_eq!(found_before(&world, 3, "three").await, Some(Bytes::from_static(b"two")));
    world.engine.drain(crate::world::SOON).await;
    let world = world.again();
    world.process_with(settings(), tell_the_last).await;
    assert_eq!(found_before(&world, 4, "four").await, Some(Bytes::from_static(b"three")), "kept before");
    assert_eq!(found_before(&world, 5, "five").await, Some(Bytes::from_static(b"unknown")));
}

/// A run that takes a minute and then fails, if its data says so.
fn slow_failure(lane: &LaneRun) -> Answer {
    match &lane.events[0].data[..] {
        b"slow failure" => Answer::FailAfter(Duration::from_secs(60)),
        _ => Answer::Now(LaneAnswer::done(None)),
    }
}

/// A run fails while a newer event waits behind it.
async fn check_newer_behind(policy: Policy) {
    let mut world = World::new(Mode::Latest).await;
    world.process_with(ProcessorSettings { policy, ..ProcessorSettings::default() }, slow_failure).await;
    let failing = submit(&world, "pod", 1, "slow failure").await;
    assert_eq!(world.nexts(1).await, ["slow failure"]);
    let newest = submit(&world, "pod", 2, "two").await;
    assert_eq!(world.settled(newest).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.settled(failing).await.status(), Status::Ended(Terminal::Superseded));
    let ran = world.next().await;
    assert_eq!((ran.data.as_str(), ran.attempt), ("two", 1), "at once, and with no attempts");
}

#[tokio::test(start_paused = true)]
async fn run_that_fails_does_not_hold_up_the_newer_one_behind_it() {
    let hour = Duration::from_secs(3_600);
    for on_failure in [OnFailure::Park, OnFailure::Halt, OnFailure::DeadLetter, OnFailure::DeadLetterLane] {
        check_newer_behind(Policy { max_attempts: 1, on_failure, ..Policy::default() }).await;
    }
    check_newer_behind(Policy { backoff: hour, backoff_max: hour, ..Policy::default() }).await;
}

#[tokio::test(start_paused = true)]
async fn old_job_that_runs_again_is_stale_once_there_is_a_newer_one() {
    let mut world = World::new(Mode::Latest).await;
    let policy = Policy { on_failure: OnFailure::Drop, ..Policy::default() };
    world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    let jobs = world.engine.jobs().clone();
    let old = submit(&world, "pod", 1, "broken").await;
    world.settled(old).await;
    let Retried::Again(again) = jobs.retry(old, &By::default()).await.expect("it is the newest") else {
        panic!("a new job")
    };
    assert_eq!(world.settled(again.id).await.status(), Status::Ended(Terminal::Failed), "it ran again");
    assert_eq!(world.nexts(2).await, ["broken", "broken"]);
    let newer = submit(&world, "pod", 2, "two").await;
    world.settled(newer).await;
    let refused = jobs.retry(old, &By::default()).await;
    assert!(matches!(&refused, Err(JobError::NotMade(why)) if why.contains("generation")), "{refused:?}");
    assert_eq!(world.nexts(1).await, ["two"]);
}

/// What was done of a lane goes with it: its first generation is not the one that ran before.
#[tokio::test(start_paused = true)]
async fn a_lane_that_was_forgotten_runs_again_from_its_first_generation() {
    let minute = Duration::from_secs(60);
    let mut world = World::with_settings(StreamSettings {
        mode: Mode::Latest,
        keep: Duration::ZERO,
        forget_lanes_after: Some(minute),
        ..StreamSettings::default()
    })
    .await;
    world.engine.start_upkeep();
    world.process(settings()).await;
    for data in ["first", "again"] {
        let job = world.submit("pod", data).await;
        assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done), "{data}");
        assert_eq!(world.nexts(1).await, [data]);
        seam::wait(2 * minute).await;
    }
    let drafts = vec![draft("pod", "third")];
    let sent = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
    let receipt = sent.expect("the stream exists").remove(0).receipt.expect("the store takes it");
    assert!(matches!(receipt, Receipt::New { seq: Some(Seq(1)), .. }), "it was forgotten: {receipt:?}");
}
