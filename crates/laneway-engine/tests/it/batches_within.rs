//! Batches that wait to be full, and no longer than they may.

use std::time::Duration;

use laneway_core::Mode;
use laneway_engine::{Batch, ProcessorSettings};

use crate::seam;
use crate::world::World;

const WITHIN: Duration = Duration::from_secs(10);

async fn world(batch: Batch) -> World {
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings { batch, ..ProcessorSettings::default() }).await;
    seam::wait(Duration::from_millis(1)).await;
    world
}

fn ran(world: &mut World) -> Vec<String> {
    std::iter::from_fn(|| world.ran.try_recv().ok()).map(|ran| ran.data).collect()
}

#[tokio::test(start_paused = true)]
async fn lane_batch_that_is_not_full_waits_for_more_and_then_runs_with_what_there_is() {
    let mut world = world(Batch::Lane { max: 3, within: WITHIN }).await;
    world.send(&[("ann", "1")]).await;
    seam::wait(WITHIN / 2).await;
    assert!(ran(&mut world).is_empty(), "it waits");
    world.send(&[("ann", "2")]).await;
    seam::wait(WITHIN / 2 - Duration::from_secs(1)).await;
    assert!(ran(&mut world).is_empty(), "it still waits");
    seam::wait(Duration::from_secs(2)).await;
    assert_eq!(ran(&mut world), ["1", "2"], "counted from the first one");
}

#[tokio::test(start_paused = true)]
async fn full_lane_batch_starts_at_once() {
    let mut world = world(Batch::Lane { max: 3, within: WITHIN }).await;
    world.send(&[("ann", "1")]).await;
    seam::wait(Duration::from_secs(1)).await;
    world.send(&[("ann", "2"), ("ann", "3"), ("ann", "4")]).await;
    seam::wait(Duration::from_secs(1)).await;
    assert_eq!(ran(&mut world), ["1", "2", "3"], "full before its time is over");
    seam::wait(WITHIN).await;
    assert_eq!(ran(&mut world), ["4"], "the rest is a batch of its own");
}

#[tokio::test(start_paused = true)]
async fn lane_that_waits_for_its_batch_holds_up_no_other() {
    let mut world = world(Batch::Lane { max: 2, within: WITHIN }).await;
    world.send(&[("ann", "1")]).await;
    world.send(&[("bob", "b1"), ("bob", "b2")]).await;
    seam::wait(Duration::from_secs(1)).await;
    assert_eq!(ran(&mut world), ["b1", "b2"]);
    let waiting = world.submit("ann", "2").await;
    world.settled(waiting).await;
    assert_eq!(ran(&mut world), ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn waiting_event_of_a_batch_can_be_cancelled() {
    let mut world = world(Batch::Lane { max: 3, within: WITHIN }).await;
    let job = world.submit("ann", "1").await;
    world.engine.jobs().cancel(job, world.env.token()).await.expect("it waits");
    world.settled(job).await;
    world.send(&[("ann", "2")]).await;
    seam::wait(2 * WITHIN).await;
    assert_eq!(ran(&mut world), ["2"]);
}

#[tokio::test(start_paused = true)]
async fn batch_over_lanes_waits_for_more_lanes_and_then_runs_with_those_there_are() {
    let mut world = world(Batch::Lanes { max: 3, within: WITHIN }).await;
    world.send(&[("ann", "a")]).await;
    seam::wait(WITHIN / 2).await;
    world.send(&[("bob", "b")]).await;
    assert!(ran(&mut world).is_empty(), "it waits");
    seam::wait(WITHIN / 2 + Duration::from_secs(1)).await;
    assert_eq!(ran(&mut world), ["a", "b"]);
    world.send(&[("ann", "a"), ("bob", "b"), ("cid", "c")]).await;
    seam::wait(Duration::from_secs(1)).await;
    assert_eq!(ran(&mut world), ["a", "b", "c"], "full at once");
}

#[tokio::test(start_paused = true)]
async fn without_a_wait_a_batch_takes_what_there_is() {
    for batch in [Batch::One, Batch::lane(100), Batch::lanes(100)] {
        let mut world = world(batch).await;
        world.send(&[("ann", "1")]).await;
        seam::wait(Duration::from_secs(1)).await;
        assert_eq!(ran(&mut world), ["1"], "{batch:?}");
    }
}
