//! Limits: rates per processor and per key, events that run ahead.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use laneway_core::{Mode, StreamSettings};
use laneway_embedded::MemoryStore;
use laneway_engine::service::TokioClock;
use laneway_engine::{Env, ProcessorSettings};

use crate::faulty::Faulty;
use crate::seam;
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn processor_with_a_rate_starts_no_more_runs_than_it_allows() {
    let mut world = World::new(Mode::Queue).await;
    let events: Vec<(String, &str)> = (0..100).map(|number| (format!("key-{number}"), "ok")).collect();
    world.send(&events.iter().map(|(key, data)| (key.as_str(), *data)).collect::<Vec<_>>()).await;
    world.process(ProcessorSettings { rate: Some(10), ..ProcessorSettings::default() }).await;
    seam::wait(Duration::from_secs(3)).await;
    let mut ran = 0;
    while world.ran.try_recv().is_ok() {
        ran += 1;
    }
    assert!((30..=55).contains(&ran), "{ran} runs in three seconds at ten a second and a short burst");
    assert_eq!(world.nexts(100 - ran).await.len(), 100 - ran, "the rest follows");
}

#[tokio::test(start_paused = true)]
async fn processor_with_a_rate_starts_as_many_runs_as_it_allows() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    let events: Vec<(String, &str)> = (0..900).map(|number| (format!("key-{number}"), "ok")).collect();
    world.send(&events.iter().map(|(key, data)| (key.as_str(), *data)).collect::<Vec<_>>()).await;
    world.process(ProcessorSettings { rate: Some(100), ..ProcessorSettings::default() }).await;
    seam::wait(Duration::from_secs(5)).await;
    let ran = std::iter::from_fn(|| world.ran.try_recv().ok()).count();
    assert!((450..=600).contains(&ran), "{ran} runs in five seconds at a hundred a second");
}

#[tokio::test(start_paused = true)]
async fn key_with_a_rate_waits_and_others_do_not() {
    let mut world = World::new(Mode::Queue).await;
    world.send(&[("hot", "1"), ("hot", "2"), ("hot", "3"), ("cold", "cold")]).await;
    world.process(ProcessorSettings { rate_per_key: Some(1), ..ProcessorSettings::default() }).await;
    let mut first = world.nexts(2).await;
    first.sort();
    assert_eq!(first, ["1", "cold"]);
    assert_eq!(world.nexts(2).await, ["2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn lane_that_runs_ahead_keeps_its_order() {
    let mut world = World::new(Mode::Queue).await;
    let events: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    world.send(&events.iter().map(|data| ("hot", data.as_str())).collect::<Vec<_>>()).await;
    world.process(ProcessorSettings { run_ahead: 16, ..ProcessorSettings::default() }).await;
    assert_eq!(world.nexts(200).await, events);
}

#[tokio::test(start_paused = true)]
async fn seats_that_share_one_place_all_come_to_it() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() }).await;
    let keys: Vec<String> = (0..40).map(|key| format!("key-{key}")).collect();
    let events: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "slow")).collect();
    world.send(&events).await;
    let mut ran = world.nexts(40).await;
    ran.dedup();
    assert_eq!(ran, ["slow"], "events of both partitions, one at a time");
}

#[tokio::test(start_paused = true)]
async fn many_seats_that_share_few_places_commit_brief_runs_together() {
    const EVENTS: usize = 2_000;
    let clock = Arc::new(TokioClock::start());
    let memory = Arc::new(MemoryStore::new(clock.clone()));
    let store = Faulty::new(memory.clone());
    let mut world = World::through(store.clone(), memory, Env::seeded(clock, 7));
    let settings = StreamSettings { partitions: 64, ..StreamSettings::default() };
    world.engine.define_stream("orders", settings).await.expect("a new stream");
    let keys: Vec<String> = (0..EVENTS).map(|number| format!("key-{number}")).collect();
    world.send(&keys.iter().map(|key| (key.as_str(), "ok")).collect::<Vec<_>>()).await;
    world.process(ProcessorSettings { concurrency: 32, ..ProcessorSettings::default() }).await;
    assert_eq!(world.nexts(EVENTS).await.len(), EVENTS);
    let commits = store.commits.load(Ordering::Relaxed);
    assert!(commits < EVENTS as u64 / 4, "{commits} commits of {EVENTS} events");
}

#[tokio::test(start_paused = true)]
async fn seat_that_waits_for_several_places_takes_the_only_one_that_comes_free() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings { concurrency: 8, ..ProcessorSettings::default() }).await;
    // Brief runs first, so that several places are waited for.
    let keys: Vec<String> = (0..100).map(|number| format!("key-{number}")).collect();
    world.send(&keys.iter().map(|key| (key.as_str(), "ok")).collect::<Vec<_>>()).await;
    assert_eq!(world.nexts(100).await.len(), 100);
    let endless = keys.iter().take(7).map(|key| (key.as_str(), "wait"));
    world.send(&endless.chain([("slow", "slow")]).collect::<Vec<_>>()).await;
    assert_eq!(world.nexts(8).await.len(), 8);
    world.send(&[("next", "1"), ("other", "2")]).await;
    let mut ran = world.nexts(2).await;
    ran.sort();
    assert_eq!(ran, ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn runs_that_wait_take_all_places_at_once_and_no_more_after_brief_ones() {
    for partitions in [1, 4] {
        let mut world = World::with_partitions(Mode::Queue, partitions).await;
        world.process(ProcessorSettings { concurrency: 64, ..ProcessorSettings::default() }).await;
        let keys: Vec<String> = (0..200).map(|number| format!("key-{number}")).collect();
        world.send(&keys.iter().map(|key| (key.as_str(), "ok")).collect::<Vec<_>>()).await;
        assert_eq!(world.nexts(200).await.len(), 200);
        let sent = world.env.clock().steady();
        world.send(&keys.iter().map(|key| (key.as_str(), "wait")).collect::<Vec<_>>()).await;
        assert_eq!(world.nexts(64).await.len(), 64);
        let took = world.env.clock().steady().since(sent);
        assert!(took < Duration::from_millis(20), "the last of 64 started after {took:?}");
        tokio::select! {
            ran = world.next() => panic!("{ran:?} is the 65th run at one time, concurrency is 64"),
            () = seam::wait(Duration::from_secs(60)) => {}
        }
    }
}
