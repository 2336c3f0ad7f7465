//! Lane batches with partial success, and batches over lanes.

use std::time::Duration;

use laneway_core::{Mode, Status, Terminal};
use laneway_engine::handler::{Done, Failure, LaneAnswer, LaneRun, OnFailure, Policy, Retry};
use laneway_engine::{Batch, ProcessorSettings};

use crate::world::{Answer, SOON, World};

/// Done up to the first event that says `bad`, which fails.
fn until_bad(lane: &LaneRun) -> Answer {
    let good = lane.events.iter().take_while(|event| &event.data[..] != b"bad").count();
    let failure =
        (good < lane.events.len()).then(|| Failure { error: "bad".to_owned(), retry: Retry::ByPolicy });
    Answer::Now(LaneAnswer { done: vec![Done::default(); good], failure, ..LaneAnswer::default() })
}

#[tokio::test(start_paused = true)]
async fn lane_batch_is_done_as_far_as_it_came() {
    let mut world = World::new(Mode::Queue).await;
    world.send(&[("ann", "1"), ("ann", "2")]).await;
    world.send(&[("ann", "bad"), ("ann", "4")]).await;
    let policy = Policy { max_attempts: 2, ..Policy::default() };
    let batch = Batch::lane(10);
    world.process_with(ProcessorSettings { batch, policy, ..ProcessorSettings::default() }, until_bad).await;
    assert_eq!(world.nexts(4).await, ["1", "2", "bad", "4"], "one call for the whole lane");
    assert_eq!(world.nexts(1).await, ["bad"], "the one that failed again, and alone");
    assert!(world.ran.try_recv().is_err(), "those behind it wait");
}

#[tokio::test(start_paused = true)]
async fn batch_over_lanes_has_one_outcome_per_lane() {
    let world = World::new(Mode::Queue).await;
    let policy = Policy { max_attempts: 1, on_failure: OnFailure::DeadLetter, ..Policy::default() };
    let batch = Batch::lanes(10);
    world.process_with(ProcessorSettings { batch, policy, ..ProcessorSettings::default() }, until_bad).await;
    let good = world.submit("ann", "good").await;
    let bad = world.submit("bob", "bad").await;
    assert_eq!(world.settled(good).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.settled(bad).await.status(), Status::Ended(Terminal::Failed));
}

/// Whoever says `poison` takes the whole call with it: by a panic, or by never coming to an end.
fn poisoned(lane: &LaneRun) -> Answer {
    let is = |data: &[u8]| lane.events.iter().any(|event| event.data == data);
    assert!(!is(b"poison"), "as told");
    if is(b"hang") {
        Answer::After(Duration::from_secs(3_600))
    } else {
        Answer::Now(LaneAnswer::all_done(lane))
    }
}

/// Exactly the poisonous one is given up, however the events came together.
async fn check_only_guilty(batch: Batch, poison: &str, max_attempts: u32, keys: [&str; 4]) {
    let world = World::with_partitions(Mode::Queue, 1).await;
    let policy = Policy { max_attempts, on_failure: OnFailure::DeadLetter, ..Policy::default() };
    let timeout = Some(Duration::from_secs(10));
    let settings = ProcessorSettings { batch, policy, timeout, ..ProcessorSettings::default() };
    world.process_with(settings, poisoned).await;
    let operator = world.engine.operator().clone();
    let paused = operator.pause("charge", "anna").await.expect("it exists");
    assert!(operator.wait(&paused, SOON).await.expect("the store answers"));
    let mut jobs = Vec::new();
    for (key, data) in keys.into_iter().zip(["ok", "ok", poison, "ok"]) {
        jobs.push(world.submit(key, data).await);
    }
    operator.resume("charge").await.expect("it exists");
    let mut ends = Vec::new();
    for job in jobs {
        ends.push(world.settled(job).await.status());
    }
    let (done, failed) = (Status::Ended(Terminal::Done), Status::Ended(Terminal::Failed));
    assert_eq!(ends, [done, done, failed, done], "{batch:?}, {poison}, {max_attempts} attempts");
    let dead = world.engine.looker().dead_letters("charge", 10).await.expect("listed");
    assert_eq!(dead.iter().map(|dead| &dead.letter.event.data[..]).collect::<Vec<_>>(), [poison.as_bytes()]);
}

#[tokio::test(start_paused = true)]
async fn batch_that_fails_as_a_whole_gives_up_the_guilty_one_alone() {
    for poison in ["poison", "hang"] {
        for max_attempts in [1, 2, 3] {
            check_only_guilty(Batch::lane(4), poison, max_attempts, ["ann"; 4]).await;
            check_only_guilty(Batch::lanes(100), poison, max_attempts, ["ann", "bob", "cid", "dan"]).await;
        }
    }
}
