//! Lanes that wait in the store with more than memory holds of them: all of it comes back, in order, and only when it may.

use std::time::Duration;

use laneway_core::{Key, Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::Policy;
use laneway_engine::job::Submit;
use laneway_engine::lane::{Answer, Filed};
use laneway_engine::log::Appending;

use crate::seam;
use crate::world::{SOON, World, draft};

/// More than a lane has in memory when it comes back.
const LONG: usize = 300;

fn key(text: &str) -> Key {
    Key::new(text.to_owned()).expect("a short key")
}

async fn answer(world: &World, filed: Filed) -> Answer {
    let told = world.engine.operator().answer(filed, SOON).await.expect("the store answers");
    told.expect("its owner decides soon")
}

async fn pause(world: &World, lane: &str) -> Answer {
    answer(world, world.engine.operator().pause_lane("charge", &key(lane), "anna").await.unwrap()).await
}

async fn resume(world: &World, lane: &str) -> Answer {
    answer(world, world.engine.operator().resume_lane("charge", &key(lane)).await.unwrap()).await
}

async fn send_hot(world: &World, count: usize) {
    for first in (0..count).step_by(1_000) {
        let drafts = (first..count.min(first + 1_000)).map(|number| draft("hot", &number.to_string()));
        let appending = Appending { drafts: drafts.collect(), object: None };
        world.engine.producer().append("orders", appending).await.expect("the stream exists");
    }
}

#[tokio::test(start_paused = true)]
async fn whole_siding_expires_and_not_only_what_was_in_memory() {
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    pause(&world, "late").await;
    let job = |number: usize| {
        let draft =
            laneway_core::Draft { ttl: Some(Duration::from_secs(1)), ..draft("late", &number.to_string()) };
        Submit { draft, processor: None, keep: None }
    };
    let submitted = world.engine.jobs().submit("orders", (0..LONG).map(job).collect()).await.unwrap();
    let last = submitted.into_iter().last().unwrap().unwrap().id;
    seam::wait(Duration::from_secs(5)).await;
    assert_eq!(resume(&world, "late").await, Answer::Applied);
    assert_eq!(world.settled(last).await.status(), Status::Ended(Terminal::Expired));
}

#[tokio::test(start_paused = true)]
async fn newest_of_a_long_siding_runs_though_what_came_first_is_superseded() {
    let world = World::with_partitions(Mode::Latest, 1).await;
    world.process(ProcessorSettings::default()).await;
    pause(&world, "pod").await;
    let mut last = None;
    for generation in 1..=LONG as u64 {
        let draft = laneway_core::Draft { generation: Some(generation), ..draft("pod", "ok") };
        let job = vec![Submit { draft, processor: None, keep: None }];
        last = world.engine.jobs().submit("orders", job).await.unwrap().pop();
        // Each is read while it is the newest.
        seam::wait(Duration::from_millis(10)).await;
    }
    assert_eq!(resume(&world, "pod").await, Answer::Applied);
    let last = last.unwrap().unwrap().id;
    assert_eq!(world.settled(last).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn cancel_in_the_siding_leaves_what_is_in_memory_as_it_was() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    let operator = world.engine.operator();
    let paused = operator.pause("charge", "anna").await.unwrap();
    assert!(operator.wait(&paused, SOON).await.unwrap());
    // As many as a lane has in memory, and one that has to wait in the siding.
    send_hot(&world, 1_024).await;
    let sided = world.submit("hot", "sided").await;
    seam::wait(Duration::from_secs(2)).await;
    world.engine.jobs().cancel(sided, world.env.token()).await.unwrap();
    assert_eq!(world.settled(sided).await.status(), Status::Ended(Terminal::Cancelled));
    let resumed = operator.resume("charge").await.unwrap();
    assert!(operator.wait(&resumed, SOON).await.unwrap());
    let all: Vec<String> = (0..1_024).map(|number| number.to_string()).collect();
    assert_eq!(world.nexts(1_024).await, all);
}

#[tokio::test(start_paused = true)]
async fn pause_of_a_hot_lane_does_not_wait_for_its_end() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    let many = 20_000;
    send_hot(&world, many).await;
    world.process(ProcessorSettings::default()).await;
    world.next().await;
    assert_eq!(pause(&world, "hot").await, Answer::Applied);
    let mut ran = 1;
    while world.ran.try_recv().is_ok() {
        ran += 1;
    }
    assert!(ran < many / 2, "{ran} of {many} ran before the pause");
    assert_eq!(resume(&world, "hot").await, Answer::Applied);
    let rest: Vec<String> = (ran..many).map(|number| number.to_string()).collect();
    assert_eq!(world.nexts(many - ran).await, rest);
}

#[tokio::test(start_paused = true)]
async fn retry_days_ahead_is_not_forgotten() {
    let days = Duration::from_secs(48 * 3_600);
    let policy = Policy { backoff: days, backoff_max: days, ..Policy::default() };
    let settings = ProcessorSettings { policy, ..ProcessorSettings::default() };
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(settings.clone()).await;
    world.send(&[("patient", "fail twice")]).await;
    assert_eq!(world.next().await.attempt, 1);
    seam::wait(Duration::from_secs(1)).await;
    world.engine.drain(SOON).await;

    let mut world = world.again();
    world.process(settings).await;
    seam::wait(2 * days).await;
    let retried = world.ran.try_recv().expect("its time has come");
    assert_eq!((retried.key.as_str(), retried.attempt), ("patient", 2));
}
