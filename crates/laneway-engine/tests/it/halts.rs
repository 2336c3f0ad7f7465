//! Pause and resume of a whole processor, and the end of a halt.

use std::sync::atomic::{AtomicBool, Ordering};

use laneway_core::{Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, LaneRun, OnFailure, Policy, Retry};
use laneway_engine::lane::{Answer, Filed};
use laneway_engine::log::Appending;

use crate::world::{Answer as WorldAnswer, SOON, World, draft};

/// Lanes that are parked: more than a resume looks at in one go.
const MANY: usize = 2_300;

async fn halting() -> World {
    let world = World::with_partitions(Mode::Queue, 1).await;
    let policy = Policy { max_attempts: 1, on_failure: OnFailure::Halt, ..Policy::default() };
    world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    world
}

async fn answer(world: &World, filed: &[Filed]) -> Answer {
    let told = world.engine.operator().answer(filed[0], SOON).await.expect("the store answers");
    told.expect("its owner decides soon")
}

#[tokio::test(start_paused = true)]
async fn pause_of_a_halted_processor_does_not_hide_the_halt() {
    let mut world = halting().await;
    let broken = world.submit("ann", "broken").await;
    assert_eq!(world.settled(broken).await.status(), Status::Parked);
    assert_eq!(world.nexts(1).await, ["broken"]);
    let operator = world.engine.operator().clone();
    let paused = operator.pause("charge", "anna").await.expect("it exists");
    assert_eq!(answer(&world, &paused).await, Answer::Already, "it stands still already");
    let resumed = operator.resume("charge").await.expect("it exists");
    assert_eq!(answer(&world, &resumed).await, Answer::Applied);
    assert_eq!(world.nexts(1).await, ["broken"], "its lane runs again with the processor");
}

static MENDED: AtomicBool = AtomicBool::new(false);

fn broken_until_mended(_: &LaneRun) -> WorldAnswer {
    WorldAnswer::Now(if MENDED.load(Ordering::Relaxed) {
        LaneAnswer::done(None)
    } else {
        LaneAnswer::failed("not mended yet", Retry::Never)
    })
}

#[tokio::test(start_paused = true)]
async fn end_of_a_halt_wakes_every_lane_that_stood_with_it() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process_with(ProcessorSettings::default(), broken_until_mended).await;
    for first in (0..MANY).step_by(1_000) {
        let lanes = first..MANY.min(first + 1_000);
        let drafts = lanes.map(|lane| draft(&format!("lane-{lane}"), "broken")).collect();
        let sent = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
        assert!(sent.expect("the stream exists").iter().all(|sent| sent.receipt.is_ok()));
    }
    world.nexts(MANY).await;
    world.engine.drain(SOON).await;

    let mut world = world.again();
    let policy = Policy { on_failure: OnFailure::Halt, ..Policy::default() };
    world
        .process_with(ProcessorSettings { policy, ..ProcessorSettings::default() }, broken_until_mended)
        .await;
    let last = world.submit("last", "broken").await;
    assert_eq!(world.settled(last).await.status(), Status::Parked);
    world.nexts(1).await;
    MENDED.store(true, Ordering::Relaxed);
    let resumed = world.engine.operator().resume("charge").await.expect("it exists");
    assert_eq!(answer(&world, &resumed).await, Answer::Applied);
    assert_eq!(world.nexts(MANY + 1).await.len(), MANY + 1);
    assert_eq!(world.settled(last).await.status(), Status::Ended(Terminal::Done));
}
