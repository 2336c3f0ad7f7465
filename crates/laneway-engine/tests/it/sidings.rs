//! Lanes that wait in the store with more than memory holds of them: all of it comes back, in order, and only when it may.

use std::time::Duration;

use laneway_core::{Key, Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::Policy;
use laneway_engine::job::Submit;
use laneway_engine::lane::{Answer, Filed};

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
    let filed = world.engine.operator().pause_lane("charge", &key(lane), "anna").await;
    answer(world, filed.expect("it exists")).await
}

async fn resume(world: &World, lane: &str) -> Answer {
    let filed = world.engine.operator().resume_lane("charge", &key(lane)).await;
    answer(world, filed.expect("it exists")).await
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
