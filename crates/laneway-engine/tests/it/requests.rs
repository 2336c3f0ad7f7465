//! Requests: each is decided once, what was decided can be looked up, and one that has to wait holds up no other.

use std::time::Duration;

use laneway_core::store::{Query, RedriveTo, Rows};
use laneway_core::{EventId, JobId, JobNumber, Key, Mode, Status, Terminal};
use laneway_engine::handler::{OnFailure, Policy};
use laneway_engine::lane::{Answer, Filed, Refused};
use laneway_engine::log::Appending;
use laneway_engine::{ProcessorSettings, observe::Why};

use crate::seam;
use crate::world::{SOON, World, draft};

/// More than a window, so that the last of them is beyond it.
const FAR: usize = 66_000;

fn key(text: &str) -> Key {
    Key::new(text.to_owned()).expect("a short key")
}

fn event_of(job: JobId) -> EventId {
    let JobNumber::Event(id) = job.number() else { panic!("job {job} was scheduled") };
    id
}

async fn answer(world: &World, filed: Filed) -> Answer {
    let told = world.engine.operator().answer(filed, SOON).await.expect("the store answers");
    told.expect("its owner decides soon")
}

async fn send_many(world: &World, count: usize) {
    for chunk in 0..count.div_ceil(1_000) {
        let drafts = (0..1_000.min(count - chunk * 1_000)).map(|_| draft("", "ok")).collect();
        let sent = world.engine.producer().append("orders", Appending { drafts, object: None }).await;
        assert!(sent.expect("the stream exists").iter().all(|sent| sent.receipt.is_ok()));
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_beyond_the_window_waits_alone_and_over_a_restart() {
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    let operator = world.engine.operator();
    let paused = operator.pause("charge", "anna").await.expect("it exists");
    assert!(operator.wait(&paused, SOON).await.expect("the store answers"));
    send_many(&world, FAR).await;
    let (far, token) = (world.submit("far", "ok").await, world.env.token());
    world.engine.jobs().cancel(far, token).await.expect("it waits");
    // Those filed behind it are decided at once.
    let near = operator.pause_lane("charge", &key("ann"), "anna").await.expect("it exists");
    assert_eq!(answer(&world, near).await, Answer::Applied);
    assert_eq!(world.status(far).await, Status::Waiting);
    world.engine.drain(SOON).await;

    let mut world = world.again();
    world.process(ProcessorSettings::default()).await;
    let again = world.engine.operator().pause_lane("charge", &key("ann"), "bob").await.expect("it exists");
    assert_eq!(answer(&world, again).await, Answer::Already);
    // The same cancel again is the same request.
    world.engine.jobs().cancel(far, token).await.expect("it waits");
    let resumed = world.engine.operator().resume("charge").await.expect("it exists");
    assert!(world.engine.operator().wait(&resumed, SOON).await.expect("the store answers"));
    assert_eq!(world.settled(far).await.status(), Status::Ended(Terminal::Cancelled));
    let last = world.submit("last", "ok").await;
    world.settled(last).await;
    let mut runs = 0;
    while let Ok(ran) = world.ran.try_recv() {
        assert_ne!(ran.key, "far", "it was cancelled before it could start");
        runs += 1;
    }
    assert_eq!(runs, FAR + 1);
    let seat = world.engine.catalogue().processor("charge").await.expect("it exists");
    let seat = laneway_core::Seat { shard: seat.0.shard(laneway_core::Partition(0)), processor: seat.1 };
    let Rows::Requests(open) = world.store_query(Query::Requests(seat, 0, 10)).await else {
        panic!("a list")
    };
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test(start_paused = true)]
async fn thousands_of_cancels_beyond_the_window_hold_up_no_skip() {
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    let parked = world.submit("ann", "broken").await;
    assert_eq!(world.settled(parked).await.status(), Status::Parked);
    let operator = world.engine.operator();
    let paused = operator.pause("charge", "anna").await.expect("it exists");
    assert!(operator.wait(&paused, SOON).await.expect("the store answers"));
    send_many(&world, FAR).await;
    let mut far = Vec::new();
    for job in 0..5_000 {
        far.push(world.submit(&format!("far {job}"), "ok").await);
    }
    for job in far.iter().rev() {
        world.engine.jobs().cancel(*job, world.env.token()).await.expect("it waits");
    }
    let skip = operator.skip("charge", &key("ann"), event_of(parked)).await.expect("it exists");
    assert_eq!(answer(&world, skip).await, Answer::Applied);
    assert_eq!(world.status(far[0]).await, Status::Waiting);
    let resumed = operator.resume("charge").await.expect("it exists");
    assert!(operator.wait(&resumed, SOON).await.expect("the store answers"));
    for job in far {
        assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Cancelled));
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_of_a_run_that_does_not_stop_holds_up_no_other_request() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    // It takes a minute whatever it is asked, and is dropped after the grace.
    let stubborn = world.submit("ann", "slow").await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    world.engine.jobs().cancel(stubborn, world.env.token()).await.expect("it runs");
    let other = world.engine.operator().pause_lane("charge", &key("bob"), "anna").await.expect("it exists");
    let told = world.engine.operator().answer(other, Duration::from_secs(2)).await;
    assert_eq!(told.expect("the store answers"), Some(Answer::Applied), "long before the run is dropped");
    assert_ne!(world.status(stubborn).await, Status::Ended(Terminal::Cancelled));
    assert_eq!(world.settled(stubborn).await.status(), Status::Ended(Terminal::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn skip_means_the_head_it_names_and_no_other() {
    let world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    let done = event_of(world.submit("ann", "ok").await);
    let parked = world.submit("ann", "broken").await;
    let behind = world.submit("ann", "ok").await;
    assert_eq!(world.settled(parked).await.status(), Status::Parked);
    let operator = world.engine.operator().clone();
    for other in [done, event_of(behind)] {
        let filed = operator.skip("charge", &key("ann"), other).await.expect("it exists");
        assert_eq!(answer(&world, filed).await, Answer::Already);
    }
    assert_eq!(world.status(parked).await, Status::Parked);
    let filed = operator.skip("charge", &key("ann"), event_of(parked)).await.expect("it exists");
    assert_eq!(answer(&world, filed).await, Answer::Applied);
    assert_eq!(world.settled(parked).await.status(), Status::Ended(Terminal::Skipped));
    assert_eq!(world.settled(behind).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn skip_of_a_running_head_is_refused() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    world.process(ProcessorSettings::default()).await;
    let slow = event_of(world.submit("ann", "slow").await);
    assert_eq!(world.nexts(1).await, ["slow"]);
    let filed = world.engine.operator().skip("charge", &key("ann"), slow).await.expect("it exists");
    assert_eq!(answer(&world, filed).await, Answer::Refused(Refused::Running));
}

async fn given_up(on_failure: OnFailure) -> World {
    let world = World::with_partitions(Mode::Queue, 1).await;
    let policy = Policy { on_failure, ..Policy::default() };
    world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    world
}

#[tokio::test(start_paused = true)]
async fn redrive_into_a_place_that_others_have_passed_is_refused() {
    let world = given_up(OnFailure::DeadLetter).await;
    let dead = world.submit("ann", "broken").await;
    let after = world.submit("ann", "ok").await;
    world.settled(after).await;
    let operator = world.engine.operator();
    let redrive = async |to| {
        let filed = operator.redrive("charge", &key("ann"), Some(event_of(dead)), to).await;
        answer(&world, filed.expect("it exists")).await
    };
    assert_eq!(redrive(RedriveTo::Place).await, Answer::Refused(Refused::SuccessorsDone));
    let listed = world.engine.looker().dead_letters("charge", 10).await.expect("listed");
    assert_eq!(listed.len(), 1, "a refused redrive changes nothing");
    assert_eq!(redrive(RedriveTo::Tail).await, Answer::Applied);
    assert_eq!(redrive(RedriveTo::Tail).await, Answer::Already, "it is no dead letter any more");
}

#[tokio::test(start_paused = true)]
async fn diverting_lane_comes_back_as_a_whole_or_not_at_all() {
    let world = given_up(OnFailure::DeadLetterLane).await;
    let first = world.submit("ann", "broken").await;
    let second = world.submit("ann", "ok").await;
    world.settled(second).await;
    let operator = world.engine.operator();
    let redrive = async |id: Option<EventId>| {
        let filed = operator.redrive("charge", &key("ann"), id, RedriveTo::Place).await;
        answer(&world, filed.expect("it exists")).await
    };
    assert_eq!(redrive(Some(event_of(second))).await, Answer::Refused(Refused::EarlierDead));
    assert_eq!(redrive(Some(event_of(first))).await, Answer::Refused(Refused::WholeLane));
    assert_eq!(redrive(None).await, Answer::Applied);
}

#[tokio::test(start_paused = true)]
async fn discarded_dead_letters_are_gone_and_their_lane_diverts_until_it_is_resumed() {
    let world = given_up(OnFailure::DeadLetterLane).await;
    let first = world.submit("ann", "broken").await;
    world.settled(first).await;
    let operator = world.engine.operator();
    let discard = async || {
        let filed = operator.discard("charge", &key("ann"), None).await.expect("it exists");
        answer(&world, filed).await
    };
    assert_eq!(discard().await, Answer::Applied);
    assert_eq!(discard().await, Answer::Already);
    assert!(world.engine.looker().dead_letters("charge", 10).await.expect("listed").is_empty());
    let diverted = world.submit("ann", "ok").await;
    assert_eq!(world.settled(diverted).await.status(), Status::Ended(Terminal::Failed));
    let standing = world.engine.looker().lane("orders", &key("ann")).await.expect("known");
    assert!(matches!(standing.processors[0].why, Why::Diverting { .. }));
    let filed = operator.resume_lane("charge", &key("ann")).await.expect("it exists");
    assert_eq!(answer(&world, filed).await, Answer::Applied);
    let after = world.submit("ann", "ok").await;
    assert_eq!(world.settled(after).await.status(), Status::Ended(Terminal::Done));
}

#[tokio::test(start_paused = true)]
async fn cancel_in_the_middle_of_a_batch_ends_that_event_alone() {
    let mut world = World::with_partitions(Mode::Queue, 1).await;
    let batch = laneway_engine::Batch::lane(10);
    world.process(ProcessorSettings { batch, ..ProcessorSettings::default() }).await;
    let operator = world.engine.operator().clone();
    let paused = operator.pause("charge", "anna").await.expect("it exists");
    assert!(operator.wait(&paused, SOON).await.expect("the store answers"));
    let (first, second, third) =
        (world.submit("ann", "wait").await, world.submit("ann", "b").await, world.submit("ann", "c").await);
    operator.resume("charge").await.expect("it exists");
    assert_eq!(world.nexts(3).await, ["wait", "b", "c"]);
    world.engine.jobs().cancel(second, world.env.token()).await.expect("it runs");
    assert_eq!(world.settled(second).await.status(), Status::Ended(Terminal::Cancelled));
    // The others run again, and this was no failure of theirs.
    let again = world.next().await;
    assert_eq!((again.data.as_str(), again.attempt), ("wait", 1));
    assert_eq!(world.nexts(1).await, ["c"]);
    for job in [first, third] {
        assert!(!world.status(job).await.is_terminal());
    }
    seam::wait(Duration::from_secs(1)).await;
}
