//! Events that say themselves what their failures mean.

use std::time::Duration;

use laneway_core::{Headers, JobId, Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::job::Submit;
use laneway_engine::log::Appending;

use crate::world::{World, draft};

async fn submit(world: &World, data: &str, headers: &[(&str, &str)]) -> JobId {
    let mut draft = draft("ann", data);
    draft.headers = Headers::new(headers.iter().copied()).expect("few headers");
    let job = Submit { draft, processor: None, keep: None };
    let submitted = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    submitted.into_iter().next().expect("one answer").expect("the store takes it").id
}

async fn attempts(world: &mut World) -> u32 {
    let mut last = 0;
    while let Ok(ran) = world.ran.try_recv() {
        last = ran.attempt;
    }
    last
}

#[tokio::test(start_paused = true)]
async fn event_says_how_often_and_what_then() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let own = [("laneway-max-attempts", "2"), ("laneway-on-failure", "drop"), ("laneway-backoff", "1ms")];
    let job = submit(&world, "fail", &own).await;
    assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Failed), "dropped, not parked");
    assert_eq!(attempts(&mut world).await, 2);
    let plain = submit(&world, "broken", &[]).await;
    assert_eq!(world.settled(plain).await.status(), Status::Parked, "the processor's policy stands");
}

#[tokio::test(start_paused = true)]
async fn event_says_how_long_its_runs_may_take() {
    let world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let own = [("laneway-timeout", "2s"), ("laneway-max-attempts", "1")];
    let started = world.env.clock().steady();
    let job = submit(&world, "slow", &own).await;
    assert_eq!(world.settled(job).await.status(), Status::Parked);
    assert!(world.env.clock().steady().since(started) < Duration::from_secs(10), "a minute without it");
}

#[tokio::test(start_paused = true)]
async fn wrong_value_is_refused_before_anything_is_appended() {
    let world = World::new(Mode::Queue).await;
    let mut drafts = vec![draft("ann", "good"), draft("ann", "bad")];
    drafts[1].headers = Headers::new([("laneway-backoff", "soon")]).expect("few headers");
    let refused = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
    let error = refused.err().map(|error| error.to_string()).expect("it is refused");
    assert!(error.contains("laneway-backoff is soon, must be a number and a unit"), "{error}");
    let key = laneway_core::Key::new("ann").expect("a short key");
    assert_eq!(
        world.engine.looker().tail("orders", &key).await.expect("known"),
        None,
        "not even the good one"
    );
}
