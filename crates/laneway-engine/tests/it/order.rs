//! Order inside a lane, through retries, restarts and long backlogs; lanes beside each other.

use std::collections::HashMap;
use std::time::Duration;

use laneway_core::{Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::job::JobStatus;

use crate::seam;
use crate::world::{SOON, World};

#[tokio::test(start_paused = true)]
async fn events_of_a_lane_run_in_order_and_lanes_beside_each_other() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let events: Vec<(String, String)> =
        (0..300).map(|number| (format!("key-{}", number % 7), format!("{number}"))).collect();
    let events: Vec<_> = events.iter().map(|(key, data)| (key.as_str(), data.as_str())).collect();
    world.send(&events).await;
    let mut last: HashMap<String, u32> = HashMap::new();
    for _ in 0..300 {
        let ran = world.next().await;
        let number: u32 = ran.data.parse().expect("a number");
        if let Some(before) = last.insert(ran.key.clone(), number) {
            assert!(before < number, "{} ran {number} after {before}", ran.key);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn job_gets_the_result_of_its_handler() {
    let world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let job = world.submit("ann", "hello").await;
    let JobStatus::Ended { end, result, .. } = world.settled(job).await else { panic!("it has ended") };
    assert_eq!((end.end, end.attempts), (Terminal::Done, 1));
    assert_eq!(result.as_deref(), Some(&b"hello"[..]));
}

#[tokio::test(start_paused = true)]
async fn the_next_event_waits_for_a_slow_one_and_other_lanes_do_not() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "slow"), ("ann", "after"), ("bob", "ok"), ("cid", "ok")]).await;
    let mut first = world.nexts(3).await;
    first.sort();
    assert_eq!(first, ["ok", "ok", "slow"]);
    assert_eq!(world.nexts(1).await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_settled_does_not_run_again_after_a_restart_and_the_rest_does() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let first = world.submit("ann", "first").await;
    world.settled(first).await;
    world.engine.drain(SOON).await;
    world.send(&[("ann", "second"), ("ann", "third")]).await;
    assert_eq!(world.nexts(1).await, ["first"]);
    let mut again = world.again();
    again.process(ProcessorSettings::default()).await;
    assert_eq!(again.nexts(2).await, ["second", "third"]);
}

#[tokio::test(start_paused = true)]
async fn drain_of_an_idle_processor_takes_no_time() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "ok")]).await;
    assert_eq!(world.nexts(1).await, ["ok"]);
    seam::wait(Duration::from_secs(10)).await;
    let before = world.env.clock().steady();
    world.engine.drain(SOON).await;
    let took = world.env.clock().steady().since(before);
    assert!(took < Duration::from_millis(100), "{took:?}: each seat waited for its next look");
}

#[tokio::test(start_paused = true)]
async fn drain_lets_runs_finish_and_nothing_runs_twice() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "slow"), ("ann", "after")]).await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    world.engine.drain(Duration::from_secs(300)).await;
    let mut again = world.again();
    again.process(ProcessorSettings::default()).await;
    assert_eq!(again.nexts(1).await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn hot_lane_longer_than_memory_keeps_its_order_and_lets_others_pass() {
    let mut world = World::new(Mode::Queue).await;
    let events: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    for part in events.chunks(500) {
        world.send(&part.iter().map(|data| ("hot", data.as_str())).collect::<Vec<_>>()).await;
    }
    world.send(&[("cold", "cold")]).await;
    world.process(ProcessorSettings::default()).await;
    let mut hot = Vec::new();
    let mut cold_after = None;
    while hot.len() < events.len() || cold_after.is_none() {
        let ran = world.next().await;
        if ran.key == "cold" {
            cold_after = Some(hot.len());
        } else {
            hot.push(ran.data);
        }
    }
    assert_eq!(hot, events);
    assert!(cold_after.expect("it ran") < 2_000, "the cold lane waited for {cold_after:?} hot events");
    let last = world.submit("hot", "last").await;
    assert_eq!(world.settled(last).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn events_without_a_key_run_each_on_its_own() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("", "slow"), ("", "a"), ("", "b"), ("", "c")]).await;
    let mut ran = world.nexts(4).await;
    ran.sort();
    assert_eq!(ran, ["a", "b", "c", "slow"]);
}
