//! Dead letters that come back late: after retention took their events, or after newer ones were accepted.

use std::time::Duration;

use laneway_core::store::{RedriveTo, Trim};
use laneway_core::{
    EventId, Headers, JobId, JobNumber, Key, Mode, Partition, Status, Store, StreamSettings, Terminal,
};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{OnFailure, Policy};
use laneway_engine::job::Submit;
use laneway_engine::lane::{Answer, Refused};

use crate::seam;
use crate::world::{SOON, World, draft};

fn key(text: &str) -> Key {
    Key::new(text.to_owned()).expect("a short key")
}

fn event_of(job: JobId) -> EventId {
    let JobNumber::Event(id) = job.number() else { panic!("job {job} was scheduled") };
    id
}

async fn world(settings: StreamSettings, on_failure: OnFailure) -> World {
    let world = World::with_settings(StreamSettings { partitions: 1, ..settings }).await;
    let policy = Policy { on_failure, ..Policy::default() };
    world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    world
}

async fn redrive(world: &World, id: Option<EventId>, to: RedriveTo) -> Answer {
    let operator = world.engine.operator();
    let filed = operator.redrive("charge", &key("ann"), id, to).await.expect("it exists");
    operator.answer(filed, SOON).await.expect("the store answers").expect("its owner decides soon")
}

async fn dead(world: &World) -> Vec<String> {
    let listed = world.engine.looker().dead_letters("charge", 10).await.expect("listed");
    listed.iter().map(|dead| String::from_utf8_lossy(&dead.letter.event.data).into_owned()).collect()
}

/// Lets retention take everything that is settled.
async fn trim(world: &World, last: EventId) {
    seam::wait(Duration::from_secs(60)).await;
    let info = world.engine.catalogue().stream("orders").await.expect("it exists");
    let trimmed = world.store.trim(Trim { shard: info.shard(Partition(0)) }).await.expect("it is there");
    assert!(trimmed.first > last, "the events are gone: {trimmed:?}");
}

#[tokio::test(start_paused = true)]
async fn dead_letter_whose_event_is_trimmed_comes_back_as_a_copy_only() {
    let settings = StreamSettings { keep: Duration::from_secs(1), ..StreamSettings::default() };
    let mut world = world(settings, OnFailure::DeadLetter).await;
    let broken = world.submit("ann", "broken").await;
    world.settled(broken).await;
    assert_eq!(world.nexts(1).await, ["broken"]);
    trim(&world, event_of(broken)).await;
    assert_eq!(redrive(&world, None, RedriveTo::Place).await, Answer::Refused(Refused::Trimmed));
    assert_eq!(dead(&world).await, ["broken"], "the only copy is still there");
    // Nothing else of the partition is held up by it.
    let other = world.submit("bob", "fail twice").await;
    assert_eq!(world.settled(other).await.status(), Status::Ended(Terminal::Done));
    assert_eq!(world.nexts(3).await, ["fail twice", "fail twice", "fail twice"]);
    assert_eq!(redrive(&world, None, RedriveTo::Tail).await, Answer::Applied);
    assert_eq!(world.nexts(1).await, ["broken"], "the copy runs");
}

#[tokio::test(start_paused = true)]
async fn diverting_lane_whose_first_events_are_trimmed_stays_aside() {
    let settings = StreamSettings { keep: Duration::from_secs(1), ..StreamSettings::default() };
    let mut world = world(settings, OnFailure::DeadLetterLane).await;
    let first = world.submit("ann", "broken").await;
    world.settled(first).await;
    assert_eq!(world.nexts(1).await, ["broken"]);
    trim(&world, event_of(first)).await;
    let second = world.submit("ann", "second").await;
    assert_eq!(world.settled(second).await.status(), Status::Ended(Terminal::Failed));
    assert_eq!(redrive(&world, None, RedriveTo::Place).await, Answer::Refused(Refused::Trimmed));
    assert_eq!(dead(&world).await, ["broken", "second"]);
    let other = world.submit("bob", "ok").await;
    assert_eq!(world.settled(other).await.status(), Status::Ended(Terminal::Done));
}

async fn submit(world: &World, generation: u64, data: &str) -> JobId {
    let mut draft = draft("ann", data);
    draft.generation = Some(generation);
    let job = Submit { draft, processor: None, keep: None };
    let submitted = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    submitted.into_iter().next().expect("one answer").expect("the store takes it").id
}

#[tokio::test(start_paused = true)]
async fn copy_of_an_old_generation_is_refused_and_the_dead_letter_stays() {
    let settings = StreamSettings { mode: Mode::Latest, ..StreamSettings::default() };
    let mut world = world(settings, OnFailure::DeadLetter).await;
    let old = submit(&world, 1, "broken").await;
    world.settled(old).await;
    let new = submit(&world, 2, "ok").await;
    world.settled(new).await;
    assert_eq!(world.nexts(2).await, ["broken", "ok"]);
    let old = Some(event_of(old));
    assert_eq!(redrive(&world, old, RedriveTo::Tail).await, Answer::Refused(Refused::Stale));
    assert_eq!(redrive(&world, None, RedriveTo::Tail).await, Answer::Refused(Refused::Stale));
    assert_eq!(dead(&world).await, ["broken"]);
}

#[tokio::test(start_paused = true)]
async fn newest_of_several_dead_letters_is_the_one_that_is_copied() {
    let settings = StreamSettings { mode: Mode::Latest, ..StreamSettings::default() };
    let mut world = world(settings, OnFailure::DeadLetter).await;
    for generation in [1, 2] {
        let job = submit(&world, generation, "broken").await;
        world.settled(job).await;
    }
    assert_eq!(world.nexts(2).await, ["broken", "broken"]);
    assert_eq!(redrive(&world, None, RedriveTo::Tail).await, Answer::Applied);
    assert_eq!(world.nexts(1).await, ["broken"], "the newer one runs again");
    seam::wait(Duration::from_secs(5)).await;
    assert_eq!(dead(&world).await.len(), 2, "the older one, and the copy that failed again");
}

#[tokio::test(start_paused = true)]
async fn copy_is_as_urgent_as_it_was_and_names_the_event_it_was_last() {
    let mut world = world(StreamSettings::default(), OnFailure::DeadLetter).await;
    let mut urgent = draft("ann", "broken");
    urgent.priority = 2;
    let job = Submit { draft: urgent, processor: None, keep: None };
    let first = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    let first = first.into_iter().next().expect("one answer").expect("the store takes it").id;
    world.settled(first).await;
    assert_eq!(world.nexts(1).await, ["broken"]);
    let mut last = event_of(first);
    for _ in 0..2 {
        assert_eq!(redrive(&world, None, RedriveTo::Tail).await, Answer::Applied);
        assert_eq!(world.nexts(1).await, ["broken"]);
        seam::wait(Duration::from_secs(1)).await;
        let listed = world.engine.looker().dead_letters("charge", 10).await.expect("listed");
        let [copy] = &listed[..] else { panic!("one dead letter: {listed:?}") };
        let copy = &copy.letter.event;
        let from: Vec<_> = copy.headers.iter().filter(|(name, _)| *name == "laneway-redriven-from").collect();
        let [(_, from)] = from[..] else { panic!("one origin: {from:?}") };
        let from = String::from_utf8_lossy(from);
        assert!(from.ends_with(&format!("/{last}")), "{from} is not event {last}");
        assert_eq!(copy.priority, 2);
        last = copy.id;
    }
}

#[tokio::test(start_paused = true)]
async fn copy_that_has_no_room_to_say_where_it_comes_from_is_refused() {
    let world = world(StreamSettings::default(), OnFailure::DeadLetter).await;
    let mut full = draft("ann", "broken");
    let headers = (0..laneway_core::limits::HEADERS_MAX).map(|number| (format!("h{number}"), "v"));
    full.headers = Headers::new(headers).expect("as many as there may be");
    let sent = laneway_engine::log::Appending { drafts: vec![full], object: None };
    let sent = world.engine.producer().append("orders", sent).await.expect("the stream exists");
    assert!(sent[0].receipt.is_ok(), "{sent:?}");
    let behind = world.submit("ann", "ok").await;
    world.settled(behind).await;
    assert_eq!(redrive(&world, None, RedriveTo::Tail).await, Answer::Refused(Refused::HeadersFull));
    assert_eq!(dead(&world).await, ["broken"]);
}
