//! Lane batches with partial success, and batches over lanes.

use laneway_core::{Mode, Status, Terminal};
use laneway_engine::handler::{Done, Failure, LaneAnswer, LaneRun, Policy, Retry};
use laneway_engine::{Batch, ProcessorSettings};

use crate::world::{Answer, World};

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
    assert_eq!(world.nexts(2).await, ["bad", "4"], "the rest again, from the one that failed");
}

#[tokio::test(start_paused = true)]
async fn batch_over_lanes_has_one_outcome_per_lane() {
    let world = World::new(Mode::Queue).await;
    let policy = Policy {
        max_attempts: 1,
        on_failure: laneway_engine::handler::OnFailure::DeadLetter,
        ..Policy::default()
    };
    let batch = Batch::lanes(10);
    world.process_with(ProcessorSettings { batch, policy, ..ProcessorSettings::default() }, until_bad).await;
    let good = world.submit("ann", "good").await;
    let bad = world.submit("bob", "bad").await;
    assert_eq!(world.settled(good).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.settled(bad).await.status(), Status::Ended(Terminal::Failed));
}
