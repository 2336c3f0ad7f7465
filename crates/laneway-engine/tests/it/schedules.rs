//! Schedules fire once per due time, also over restarts and jumps of the clock.

use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{EventId, Mode, Partition, Timestamp};
use laneway_engine::ProcessorSettings;
use laneway_engine::upkeep::schedule::{CatchUp, Firing, Overlap, Schedule, Spec};

use crate::seam;
use crate::world::World;

fn every(length: Duration, anchor: Timestamp) -> Schedule {
    Schedule {
        name: "tick".to_owned(),
        spec: Spec::Every { length, anchor },
        overlap: Overlap::Queue,
        catch_up: CatchUp::Last,
        paused: false,
        since: anchor,
        firing: Firing { data: "tick".into(), ..Firing::new("orders") },
    }
}

#[tokio::test(start_paused = true)]
async fn schedule_fires_once_per_due_time_and_goes_on_after_a_restart() {
    let mut world = World::new(Mode::Queue).await;
    let anchor = world.env.clock().calendar();
    world.process(ProcessorSettings::default()).await;
    world.engine.schedules().put(every(Duration::from_secs(10), anchor)).await.expect("it can be");
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(35)).await;
    assert_eq!(world.nexts(3).await, ["tick"; 3]);
    assert!(world.ran.try_recv().is_err(), "once per due time");
    world.engine.drain(crate::world::SOON).await;
    let mut again = world.again();
    again.process(ProcessorSettings::default()).await;
    again.engine.start_upkeep();
    seam::wait(Duration::from_secs(20)).await;
    assert_eq!(again.nexts(2).await, ["tick"; 2]);
    assert!(again.ran.try_recv().is_err(), "what was fired is not fired again");
}

#[tokio::test(start_paused = true)]
async fn two_engines_that_fire_at_once_fire_once() {
    let mut world = World::new(Mode::Queue).await;
    let anchor = world.env.clock().calendar();
    world.process(ProcessorSettings::default()).await;
    world.engine.schedules().put(every(Duration::from_secs(10), anchor)).await.expect("it can be");
    let other = world.again();
    world.engine.start_upkeep();
    other.engine.start_upkeep();
    seam::wait(Duration::from_secs(25)).await;
    assert_eq!(world.nexts(2).await, ["tick"; 2]);
    assert!(world.ran.try_recv().is_err(), "a due time is one event");
}

#[tokio::test(start_paused = true)]
async fn impossible_schedule_is_refused_by_field_and_value() {
    let world = World::new(Mode::Queue).await;
    let anchor = world.env.clock().calendar();
    let refused = world.engine.schedules().put(every(Duration::ZERO, anchor)).await;
    let error = refused.expect_err("no interval").to_string();
    assert!(error.contains("every"), "{error}");
    let unknown = Schedule { firing: Firing::new("nowhere"), ..every(Duration::from_secs(5), anchor) };
    let error = world.engine.schedules().put(unknown).await.expect_err("no stream").to_string();
    assert!(error.contains("nowhere"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn schedule_that_skips_knows_its_job_after_a_crash_before_it_was_remembered() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    let anchor = world.env.clock().calendar();
    world.process(ProcessorSettings::default()).await;
    let firing =
        Firing { data: "wait".into(), processor: Some("charge".to_owned()), ..Firing::new("orders") };
    let schedule = Schedule { overlap: Overlap::Skip, firing, ..every(Duration::from_secs(10), anchor) };
    world.engine.schedules().put(schedule).await.expect("it can be");
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(15)).await;
    assert_eq!(world.nexts(1).await, ["wait"], "a job that does not end");
    // As if the process had ended between the append and the note that it was made.
    let documents = &world.engine.stores().documents;
    let past = documents.get("schedule-past/tick").await.expect("the store answers").expect("it was noted");
    documents.delete("schedule-past/tick", past.version).await.expect("the version is known");
    seam::wait(Duration::from_secs(60)).await;
    let stream = world.engine.catalogue().stream("orders").await.expect("it exists");
    let query = Query::Events(stream.shard(Partition(0)), EventId(0), 100);
    let Rows::Events(events) = world.store_query(query).await else { panic!("events") };
    assert_eq!(events.len(), 1, "nothing fires beside a job that has not ended");
}
