//! A processor begins anew: what ran is given back, what was done runs again, and what became of jobs stays as it was
//! (contract 1.18).

use laneway_core::store::Reset;
use laneway_core::{EventId, Mode, Partition, StartAt, Status, StreamSettings, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{Done, Emission, LaneAnswer, LaneRun, OnFailure, Policy, StateChange};
use laneway_engine::job::JobStatus;

use crate::world::{Answer, SOON, World};

const AGAIN: Reset = Reset { start: StartAt::Beginning, clear_states: false, quiet: false };

fn settings(on_failure: OnFailure) -> ProcessorSettings {
    let policy = Policy { max_attempts: 1, on_failure, ..Policy::default() };
    ProcessorSettings { policy, ..ProcessorSettings::default() }
}

async fn reset(world: &World, reset: Reset) {
    let operator = world.engine.operator();
    let filed = operator.reset("charge", reset).await.expect("it exists");
    assert!(operator.wait(&filed, SOON).await.expect("the store answers"), "it is applied soon");
}

/// A run that ends when it is asked to (`wait`), and one that has to be cut off (`slow`).
async fn check_given_back(on_failure: OnFailure, data: &str) {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(settings(on_failure)).await;
    let running = world.submit("ann", data).await;
    assert_eq!(world.nexts(1).await, [data]);
    reset(&world, AGAIN).await;
    let again = world.next().await;
    assert_eq!((again.data.as_str(), again.attempt), (data, 1), "{on_failure:?}: the stop was no attempt");
    assert!(!world.status(running).await.is_terminal(), "{on_failure:?}: the job goes on");
    let other = world.submit("bob", "ok").await;
    assert_eq!(world.settled(other).await.status(), Status::Ended(Terminal::Done), "{on_failure:?}");
    assert!(world.engine.looker().dead_letters("charge", 1).await.expect("listed").is_empty());
}

#[tokio::test(start_paused = true)]
async fn reset_gives_back_what_runs_whatever_the_policy() {
    for on_failure in [OnFailure::Drop, OnFailure::DeadLetter, OnFailure::Halt, OnFailure::Park] {
        check_given_back(on_failure, "wait").await;
        check_given_back(on_failure, "slow").await;
    }
}

#[tokio::test(start_paused = true)]
async fn everything_runs_again_in_order_and_ended_jobs_stay_as_they_ended() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(settings(OnFailure::Drop)).await;
    let done = world.submit("ann", "one").await;
    let failed = world.submit("ann", "broken").await;
    world.send(&[("ann", "three")]).await;
    assert_eq!(world.nexts(3).await, ["one", "broken", "three"]);
    let before = (world.settled(done).await, world.settled(failed).await);
    reset(&world, AGAIN).await;
    assert_eq!(world.nexts(3).await, ["one", "broken", "three"]);
    let after = world.submit("ann", "four").await;
    world.settled(after).await;
    assert_eq!((world.settled(done).await, world.settled(failed).await), before);
    assert!(matches!(before.0, JobStatus::Ended { .. }));
}

#[tokio::test(start_paused = true)]
async fn processor_that_begins_at_the_end_runs_only_what_comes() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(settings(OnFailure::Park)).await;
    let parked = world.submit("ann", "broken").await;
    assert_eq!(world.settled(parked).await.status(), Status::Parked);
    world.send(&[("ann", "behind")]).await;
    reset(&world, Reset { start: StartAt::End, clear_states: false, quiet: false }).await;
    let new = world.submit("ann", "new").await;
    assert_eq!(world.settled(new).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.nexts(2).await, ["broken", "new"]);
}

/// Counts in the lane's state, and answers how far it is.
fn count(lane: &LaneRun) -> Answer {
    let before = lane.state.as_ref().map_or(0, |state| state.bytes[0]);
    let state = StateChange::Set(vec![before + 1].into());
    Answer::Now(LaneAnswer { state, ..LaneAnswer::done(Some(vec![before + 1].into())) })
}

async fn check_count(clear_states: bool, expected: u8) {
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process_with(settings(OnFailure::Park), count).await;
    world.send(&[("ann", "one")]).await;
    let second = world.submit("ann", "two").await;
    world.settled(second).await;
    reset(&world, Reset { clear_states, ..AGAIN }).await;
    let third = world.submit("ann", "three").await;
    let JobStatus::Ended { result, .. } = world.settled(third).await else { panic!("it has ended") };
    assert_eq!(result.as_deref(), Some(&[expected][..]), "clear_states {clear_states}");
}

#[tokio::test(start_paused = true)]
async fn states_are_kept_or_cleared_as_asked() {
    check_count(false, 5).await;
    check_count(true, 3).await;
}

/// Tells the stream `told` of every event.
fn tell(lane: &LaneRun) -> Answer {
    let data = lane.events[0].data.clone();
    let draft = laneway_core::Draft::new(lane.events[0].key.clone(), laneway_core::Kind::default(), data);
    let emits = vec![Emission { stream: "told".to_owned(), draft }];
    Answer::Now(LaneAnswer { done: vec![Done { result: None, emits }], ..LaneAnswer::default() })
}

/// What the stream `told` has, in order.
async fn told(world: &World) -> Vec<String> {
    // Emits are forwarded soon after their commit.
    crate::seam::wait(std::time::Duration::from_secs(5)).await;
    let page = world.engine.looker().events("told", Partition(0), EventId(0), 100).await.expect("readable");
    page.events.iter().map(|view| String::from_utf8_lossy(&view.event.data).into_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn quiet_reset_runs_again_what_was_done_and_emits_only_what_comes_after_it() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    let settings_told = StreamSettings { partitions: 1, ..StreamSettings::default() };
    world.engine.define_stream("told", settings_told).await.expect("a new stream");
    world.process_with(settings(OnFailure::Park), tell).await;
    world.send(&[("ann", "one"), ("bob", "two")]).await;
    assert_eq!(world.nexts(2).await.len(), 2);
    assert_eq!(told(&world).await.len(), 2);
    reset(&world, Reset { quiet: true, ..AGAIN }).await;
    assert_eq!(world.nexts(2).await.len(), 2, "everything runs again");
    world.send(&[("ann", "three")]).await;
    assert_eq!(told(&world).await[2..], ["three"], "and is not told again");
    // A second one, and a restart between its commit and what it is for.
    reset(&world, Reset { quiet: true, ..AGAIN }).await;
    world.engine.drain(SOON).await;
    let again = world.again();
    again.process_with(settings(OnFailure::Park), tell).await;
    again.send(&[("bob", "four")]).await;
    assert_eq!(told(&again).await[2..], ["three", "four"]);
    // Aloud again.
    reset(&again, AGAIN).await;
    assert_eq!(told(&again).await.len(), 8);
}
