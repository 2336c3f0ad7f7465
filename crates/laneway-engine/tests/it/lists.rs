//! What operators see and do: lanes that are held up, dead letters, requests that are waited for.

use std::time::Duration;

use laneway_core::store::RedriveTo;
use laneway_core::{BlockKind, Key, LaneName, Mode, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{OnFailure, Policy};

use crate::world::{SOON, World};

async fn world(on_failure: OnFailure) -> World {
    let world = World::new(Mode::Queue).await;
    let policy = Policy { max_attempts: 1, on_failure, ..Policy::default() };
    world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    world
}

fn key(name: &str) -> Key {
    Key::new(name.to_owned()).expect("a short key")
}

#[tokio::test(start_paused = true)]
async fn parked_lanes_are_listed_until_somebody_has_decided() {
    let world = world(OnFailure::Park).await;
    let jobs = [world.submit("ann", "fail").await, world.submit("bob", "fail").await];
    for job in jobs {
        assert_eq!(world.settled(job).await.status(), Status::Parked);
    }
    let (looker, operator) = (world.engine.looker(), world.engine.operator());
    let held = looker.held_lanes("charge", Some(BlockKind::Parked), 10).await.expect("listed");
    assert_eq!(held.len(), 2);
    assert_eq!(
        looker.held_lanes("charge", None, 1).await.expect("listed").len(),
        1,
        "no more than asked for"
    );
    let ann = held.iter().find(|held| held.record.lane == LaneName::Key(key("ann"))).expect("ann is parked");
    let filed = operator.skip("charge", &key("ann"), ann.head.expect("a head")).await.expect("filed");
    assert!(operator.wait(&[filed], SOON).await.expect("asked"), "the owner applies it");
    assert_eq!(
        world.status(jobs[0]).await,
        Status::Ended(Terminal::Skipped),
        "at once, without waiting for more"
    );
    assert_eq!(looker.held_lanes("charge", None, 10).await.expect("listed").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_applies_is_waited_for_no_longer_than_asked() {
    let world = world(OnFailure::Park).await;
    world.engine.drain(SOON).await;
    let operator = world.engine.operator();
    let filed = operator.pause_lane("charge", &key("ann"), "op").await.expect("filed");
    assert!(!operator.wait(&[filed], Duration::from_secs(3)).await.expect("asked"));
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_listed_until_they_are_redriven() {
    let mut world = world(OnFailure::DeadLetter).await;
    for name in ["ann", "bob"] {
        let dead = world.submit(name, "broken").await;
        world.settled(dead).await;
    }
    let (looker, operator) = (world.engine.looker(), world.engine.operator());
    let dead = looker.dead_letters("charge", 10).await.expect("listed");
    assert_eq!(dead.iter().map(|dead| &dead.letter.cause[..]).collect::<Vec<_>>(), [b"broken for good"; 2]);
    assert_eq!(looker.dead_letters("charge", 1).await.expect("listed").len(), 1, "no more than asked for");
    let letter = dead.iter().find(|dead| dead.letter.event.key == Some(key("ann"))).expect("ann's is dead");
    let id = Some(letter.letter.event.id);
    let filed = operator.redrive("charge", &key("ann"), id, RedriveTo::Tail).await.expect("filed");
    assert!(operator.wait(&[filed], SOON).await.expect("asked"));
    assert_eq!(world.nexts(3).await, ["broken", "broken", "broken"], "its copy has run too");
}
