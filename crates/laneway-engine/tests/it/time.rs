//! Delays, dates, holds and times to live.

use std::time::Duration;

use laneway_core::store::Receipt;
use laneway_core::{Delay, DelayMode, Mode, StartAfter, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::job::Submit;
use laneway_engine::observe::Why;

use crate::world::{World, draft};

async fn submit(world: &World, draft: laneway_core::Draft) -> laneway_core::JobId {
    let job = Submit { draft, processor: None, keep: None };
    let submitted = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    submitted.into_iter().next().expect("one answer").expect("the store takes it").id
}

fn delayed(data: &str, mode: DelayMode) -> laneway_core::Draft {
    let mut draft = draft("ann", data);
    draft.delay = Some(Delay { until: StartAfter::Delay(Duration::from_secs(30)), mode });
    draft
}

#[tokio::test(start_paused = true)]
async fn delayed_event_joins_its_lane_when_it_is_due() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let late = submit(&world, delayed("late", DelayMode::Join)).await;
    assert_eq!(world.status(late).await, Status::Scheduled);
    assert!(matches!(world.engine.looker().why_job(late).await.expect("known"), Why::Delayed { .. }));
    world.send(&[("ann", "early")]).await;
    assert_eq!(world.nexts(2).await, ["early", "late"]);
    assert_eq!(world.settled(late).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn held_event_holds_up_its_lane_and_no_other() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let held = submit(&world, delayed("held", DelayMode::Hold)).await;
    let behind = world.submit("ann", "behind").await;
    let other = world.submit("bob", "other").await;
    world.settled(other).await;
    assert_eq!(world.status(held).await, Status::Waiting);
    assert!(matches!(world.engine.looker().why_job(held).await.expect("known"), Why::Held { .. }));
    world.settled(behind).await;
    assert_eq!(world.nexts(3).await, ["other", "held", "behind"]);
}

#[tokio::test(start_paused = true)]
async fn scheduled_job_can_be_cancelled_before_it_joins() {
    let world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let late = submit(&world, delayed("late", DelayMode::Join)).await;
    world.engine.jobs().cancel(late, world.env.token()).await.expect("cancelled");
    assert_eq!(world.settled(late).await.status(), Status::Ended(Terminal::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn event_that_is_not_started_within_its_ttl_expires_while_its_lane_is_busy() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "slow")]).await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    let mut brief = draft("ann", "brief");
    brief.ttl = Some(Duration::from_secs(5));
    let brief = submit(&world, brief).await;
    let after = world.submit("ann", "after").await;
    assert_eq!(world.settled(brief).await.status(), Status::Ended(Terminal::Expired));
    world.settled(after).await;
    assert_eq!(world.nexts(1).await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn receipt_of_a_delayed_event_tells_when_it_joins() {
    let world = World::new(Mode::Queue).await;
    let appending =
        laneway_engine::log::Appending { drafts: vec![delayed("late", DelayMode::Join)], object: None };
    let sent = world.engine.producer().append("orders", appending).await.expect("the stream exists");
    assert!(matches!(sent[0].receipt, Ok(Receipt::Scheduled { .. })), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn run_out_of_time_fails_and_is_tried_again() {
    let mut world = World::new(Mode::Queue).await;
    let settings =
        ProcessorSettings { timeout: Some(Duration::from_secs(10)), ..ProcessorSettings::default() };
    world.process(settings).await;
    world.send(&[("ann", "slow")]).await;
    let (first, second) = (world.next().await, world.next().await);
    assert_eq!((first.attempt, second.attempt), (1, 2));
}
