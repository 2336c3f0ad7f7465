//! Failures: back-off, parking, dead letters, diverting, halting, dropping; cancel, skip and retry.

use std::time::Duration;

use laneway_core::store::{Query, RedriveTo, Request, RequestOp, Rows};
use laneway_core::{JobId, Key, LaneName, Mode, Seat, Status, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{OnFailure, Policy};

use crate::world::World;

fn settings(on_failure: OnFailure) -> ProcessorSettings {
    let policy = Policy { max_attempts: 3, on_failure, ..Policy::default() };
    ProcessorSettings { policy, ..ProcessorSettings::default() }
}

fn lane(key: &str) -> LaneName {
    LaneName::Key(Key::new(key.to_owned()).expect("a short key"))
}

async fn seat_of(world: &World, job: JobId) -> Seat {
    let (_, processor) = world.engine.catalogue().processor("charge").await.expect("it is registered");
    Seat { shard: job.shard(), processor }
}

async fn ask(world: &World, seat: Seat, op: RequestOp) {
    let token = world.env.token();
    let stores = world.engine.stores();
    stores.store.request(Request { seat, token, op }).await.expect("filed");
    stores.wakeups.announce(laneway_core::Topic::Seat(seat)).await.expect("announced");
}

#[tokio::test(start_paused = true)]
async fn failed_head_keeps_its_place_through_its_attempts() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::Park)).await;
    world.send(&[("ann", "fail twice"), ("ann", "after")]).await;
    assert_eq!(world.nexts(4).await, ["fail twice", "fail twice", "fail twice", "after"]);
}

#[tokio::test(start_paused = true)]
async fn failed_head_keeps_its_place_through_a_restart() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::Park)).await;
    let job = world.submit("ann", "fail twice").await;
    world.send(&[("ann", "after")]).await;
    let first = world.next().await;
    assert_eq!((first.data.as_str(), first.attempt), ("fail twice", 1));
    world.engine.drain(Duration::from_secs(5)).await;
    assert_eq!(world.status(job).await, Status::Retrying);
    let mut again = world.again();
    again.process(settings(OnFailure::Park)).await;
    let second = again.next().await;
    assert_eq!((second.data.as_str(), second.attempt), ("fail twice", 2));
    assert_eq!(again.nexts(2).await, ["fail twice", "after"]);
}

#[tokio::test(start_paused = true)]
async fn given_up_head_parks_its_lane_and_only_it() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::Park)).await;
    let parked = world.submit("ann", "fail").await;
    let behind = world.submit("ann", "behind").await;
    assert_eq!(world.settled(parked).await.status(), Status::Parked);
    assert_eq!(world.nexts(3).await, ["fail", "fail", "fail"]);
    let other = world.submit("bob", "ok").await;
    assert_eq!(world.settled(other).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.status(behind).await, Status::Waiting);
    let seat = seat_of(&world, parked).await;
    let laneway_engine::job::JobStatus::Pending { event, .. } =
        world.engine.jobs().get(parked).await.expect("there").status
    else {
        panic!("it is pending")
    };
    ask(&world, seat, RequestOp::Skip { lane: lane("ann"), id: event }).await;
    assert_eq!(world.settled(behind).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.status(parked).await, Status::Ended(Terminal::Skipped));
}

#[tokio::test(start_paused = true)]
async fn panic_counts_as_a_failure() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::Drop)).await;
    let job = world.submit("ann", "panic").await;
    let laneway_engine::job::JobStatus::Ended { end, .. } = world.settled(job).await else { panic!("ended") };
    assert_eq!((end.end, end.attempts), (Terminal::Failed, 3));
    assert_eq!(&end.error[..], b"dropped: panicked: as told");
    assert_eq!(world.nexts(3).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn dead_letter_is_kept_and_the_lane_goes_on() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::DeadLetter)).await;
    let dead = world.submit("ann", "broken").await;
    let after = world.submit("ann", "after").await;
    assert_eq!(world.settled(dead).await.status(), Status::Ended(Terminal::Failed));
    assert_eq!(world.settled(after).await.status(), Status::Ended(Terminal::Done));
    let seat = seat_of(&world, dead).await;
    let rows = world.engine.stores().store.query(Query::Dead(seat, laneway_core::EventId(0), 10)).await;
    let Rows::Dead(rows) = rows.expect("listed") else { panic!("dead letters") };
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0].event.data[..], &rows[0].cause[..]), (&b"broken"[..], &b"broken for good"[..]));
    assert_eq!(world.nexts(2).await, ["broken", "after"]);
}

#[tokio::test(start_paused = true)]
async fn diverting_lane_keeps_everything_aside_until_it_is_redriven_in_order() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::DeadLetterLane)).await;
    let first = world.submit("ann", "broken").await;
    world.settled(first).await;
    let second = world.submit("ann", "second").await;
    let third = world.submit("ann", "third").await;
    assert_eq!(world.settled(second).await.status(), Status::Ended(Terminal::Failed));
    assert_eq!(world.settled(third).await.status(), Status::Ended(Terminal::Failed));
    assert_eq!(world.nexts(1).await, ["broken"]);
    let other = world.submit("bob", "ok").await;
    assert_eq!(world.settled(other).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.nexts(1).await, ["ok"]);
    let seat = seat_of(&world, first).await;
    ask(&world, seat, RequestOp::Redrive { id: None, lane: lane("ann"), to: RedriveTo::Place }).await;
    assert_eq!(world.nexts(1).await, ["broken"], "it runs again, in its place");
}

#[tokio::test(start_paused = true)]
async fn halted_seat_stops_everything_of_its_partition_until_resumed() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::Halt)).await;
    let broken = world.submit("ann", "broken").await;
    assert_eq!(world.settled(broken).await.status(), Status::Parked);
    assert_eq!(world.nexts(1).await, ["broken"]);
    let behind = world.submit("ann", "behind").await;
    let waited = world.engine.jobs().wait(behind, Duration::from_secs(30)).await.expect("there");
    assert_eq!(waited.status.status(), Status::Waiting);
    let seat = seat_of(&world, broken).await;
    ask(&world, seat, RequestOp::Resume { lane: None }).await;
    assert_eq!(world.nexts(1).await, ["broken"], "it is tried again");
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_a_waiting_job_at_any_place_and_a_running_one() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::Park)).await;
    let running = world.submit("ann", "wait").await;
    assert_eq!(world.nexts(1).await, ["wait"]);
    let second = world.submit("ann", "second").await;
    let third = world.submit("ann", "third").await;
    world.engine.jobs().cancel(second, world.env.token()).await.expect("filed");
    assert_eq!(world.settled(second).await.status(), Status::Ended(Terminal::Cancelled));
    world.engine.jobs().cancel(running, world.env.token()).await.expect("filed");
    assert_eq!(world.settled(running).await.status(), Status::Ended(Terminal::Cancelled));
    assert_eq!(world.settled(third).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.nexts(1).await, ["third"]);
}

#[tokio::test(start_paused = true)]
async fn paused_lane_waits_and_resumes_where_it_was() {
    let mut world = World::new(Mode::Queue).await;
    world.process(settings(OnFailure::Park)).await;
    let first = world.submit("ann", "first").await;
    world.settled(first).await;
    let seat = seat_of(&world, first).await;
    ask(&world, seat, RequestOp::Pause { lane: Some(lane("ann")), by: "op".into() }).await;
    let bob = world.submit("bob", "ok").await;
    world.settled(bob).await;
    let held = world.submit("ann", "held").await;
    let waited = world.engine.jobs().wait(held, Duration::from_secs(30)).await.expect("there");
    assert_eq!(waited.status.status(), Status::Waiting);
    ask(&world, seat, RequestOp::Resume { lane: Some(lane("ann")) }).await;
    assert_eq!(world.settled(held).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.nexts(3).await, ["first", "ok", "held"]);
}
