//! Processors come, change and go one by one: what is stored of them, and that nothing is lost on the way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use laneway_core::store::{Define, Entry, Read, ReadFrom};
use laneway_core::{
    EventId, Mode, Partition, StartAt, Status, Store, StoreError, StreamSettings, Terminal, Timestamp,
};
use laneway_engine::handler::{ClaimWish, LaneAnswer, Run};
use laneway_engine::{DefineError, ProcessorSettings, Registration};

use crate::faulty::Faulty;
use crate::world::{SOON, World};

fn registration(concurrency: usize) -> Registration {
    Registration {
        settings: ProcessorSettings { concurrency, ..ProcessorSettings::default() },
        handler: "exec: ./charge.sh".into(),
        ..Registration::new("charge", "orders")
    }
}

#[tokio::test(start_paused = true)]
async fn settings_and_description_are_listed_by_another_engine_of_the_store() {
    let world = World::new(Mode::Queue).await;
    world.engine.register(&registration(3)).await.expect("registered");
    let handler = |run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect() };
    let audit =
        Registration { settings: ProcessorSettings::default(), ..Registration::new("audit", "orders") };
    world.engine.process_as(audit, Arc::new(handler)).await.expect("runs");
    let listed = world.engine.processors().await.expect("listed");
    let told: Vec<_> = listed.iter().map(|view| (view.name.as_str(), view.runs_here)).collect();
    assert_eq!(told, [("audit", true), ("charge", false)]);
    let elsewhere = world.again().engine.processors().await.expect("listed");
    let stored = elsewhere[1].stored.clone().expect("readable");
    assert_eq!((stored.settings, stored.handler), (registration(3).settings, registration(3).handler));
    assert_eq!((elsewhere[0].runs_here, elsewhere[1].stream.as_str()), (false, "orders"));
    world.engine.register(&registration(5)).await.expect("changed");
    let changed = world.again().engine.processors().await.expect("listed")[1].stored.clone();
    assert_eq!(changed.expect("readable").settings.concurrency, 5);
}

#[tokio::test(start_paused = true)]
async fn one_processor_is_stopped_while_another_runs_and_goes_on_where_it_was() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let handler = |run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect() };
    world
        .engine
        .process("audit", "orders", ProcessorSettings::default(), Arc::new(handler))
        .await
        .expect("a second processor");
    world.send(&[("ann", "one")]).await;
    assert_eq!(world.nexts(1).await, ["one"]);
    world.engine.stop_processor("charge", SOON).await.expect("it runs");
    let stopped = world.engine.stop_processor("charge", SOON).await;
    assert!(matches!(stopped, Err(DefineError::NotRunning(_))), "{stopped:?}");
    world.send(&[("ann", "two")]).await;
    let audited = job_of(&world, "audit", "three").await;
    assert_eq!(world.settled(audited).await.status(), Status::Ended(Terminal::Done), "audit runs on");
    assert!(world.ran.try_recv().is_err(), "charge is stopped");
    world.process(ProcessorSettings::default()).await;
    assert_eq!(world.nexts(2).await, ["two", "three"]);
}

async fn job_of(world: &World, processor: &str, data: &str) -> laneway_core::JobId {
    let job = laneway_engine::job::Submit {
        draft: crate::world::draft("ann", data),
        processor: Some(processor.to_owned()),
        keep: None,
    };
    let submitted = world.engine.jobs().submit("orders", vec![job]).await.expect("the stream exists");
    submitted.into_iter().next().expect("one answer").expect("accepted").id
}

#[tokio::test(start_paused = true)]
async fn changed_settings_count_at_once_and_no_run_is_lost_or_repeated() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() }).await;
    let slow = world.submit("ann", "slow").await;
    let behind = world.submit("bob", "behind").await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    assert_eq!(world.status(behind).await, Status::Waiting);
    // The slow run takes a minute, and may finish within the time.
    world.engine.change_processor(registration(2), 2 * SOON).await.expect("it runs");
    assert_eq!(world.status(slow).await, Status::Ended(Terminal::Done));
    world.settled(behind).await;
    assert_eq!(world.nexts(1).await, ["behind"], "the slow one ran once");
    let (one, other) = (world.submit("ann", "slow").await, world.submit("bob", "slow").await);
    assert_eq!(world.nexts(2).await, ["slow", "slow"], "both at once now");
    for job in [one, other] {
        let ended = world.engine.jobs().wait(job, 2 * SOON).await.expect("known").status;
        assert_eq!(ended.status(), Status::Ended(Terminal::Done));
    }
    let refused = world.engine.change_processor(registration(0), SOON).await.expect_err("no place to run");
    assert_eq!(refused.to_string(), "concurrency is 0, must be 1 to 100,000");
    let after = world.submit("ann", "after").await;
    world.settled(after).await;
}

#[tokio::test(start_paused = true)]
async fn desk_is_replaced_with_the_settings_and_old_claims_settle_before() {
    let world = World::new(Mode::Queue).await;
    let first = world.engine.process_at_desk_as(registration(1)).await.expect("a new processor");
    let (one, two) = (world.submit("ann", "one").await, world.submit("bob", "two").await);
    let wish = ClaimWish {
        lanes: 9,
        events: 1,
        lease: Duration::from_secs(30),
        wait: Duration::from_secs(5),
        worker: "w1".to_owned(),
        request: None,
    };
    let claim = first.claim(wish.clone()).await.remove(0);
    let changing = world.engine.change_processor(registration(8), SOON);
    let settling = first.settle(&claim.token, LaneAnswer::done(None));
    let (changed, settled) = tokio::join!(changing, settling);
    changed.expect("changed");
    settled.expect("the claim was ours until it was settled");
    let second = world.engine.desk("charge").expect("it runs at a desk");
    let claims = second.claim(wish).await;
    assert_eq!(claims.len(), 1);
    second.settle(&claims[0].token, LaneAnswer::done(None)).await.expect("it is ours");
    for job in [one, two] {
        assert_eq!(world.settled(job).await.status(), Status::Ended(Terminal::Done));
    }
}

#[tokio::test(start_paused = true)]
async fn removed_processor_is_gone_from_the_store_and_its_name_is_free() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "one")]).await;
    assert_eq!(world.nexts(1).await, ["one"]);
    world.engine.remove_processor("charge", SOON).await.expect("removed");
    assert!(world.engine.processors().await.expect("listed").is_empty());
    let unknown = world.engine.remove_processor("charge", SOON).await.expect_err("it is gone");
    assert_eq!(unknown.to_string(), "processor \"charge\" does not exist");
    world.process(ProcessorSettings::default()).await;
    assert_eq!(world.nexts(1).await, ["one"], "a new processor begins at the beginning");
}

#[tokio::test(start_paused = true)]
async fn removed_stream_takes_its_processors_along_and_can_be_made_again() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "one")]).await;
    assert_eq!(world.nexts(1).await, ["one"]);
    world.engine.remove_stream("orders", SOON).await.expect("removed");
    assert!(world.engine.processors().await.expect("listed").is_empty());
    let unknown = world.engine.remove_stream("orders", SOON).await.expect_err("it is gone");
    assert_eq!(unknown.to_string(), "stream \"orders\" does not exist");
    world.engine.define_stream("orders", StreamSettings::default()).await.expect("a new stream");
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "again")]).await;
    assert_eq!(world.nexts(1).await, ["again"], "nothing of the old stream is left");
}

#[tokio::test(start_paused = true)]
async fn change_that_cannot_be_stored_leaves_the_processor_running() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    let elsewhere = Registration { stream: "nowhere".to_owned(), ..registration(2) };
    let refused = world.engine.change_processor(elsewhere, SOON).await;
    assert!(matches!(refused, Err(DefineError::Catalogue(_))), "{refused:?}");
    world.send(&[("ann", "after")]).await;
    assert_eq!(world.nexts(1).await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn change_that_the_store_does_not_answer_leaves_the_processor_running() {
    let inner = World::new(Mode::Queue).await;
    let store = Faulty::new(inner.store.clone());
    let mut world = World::through(store.clone(), inner.store.clone(), inner.env.clone());
    world.process(ProcessorSettings::default()).await;
    let nobody = |_: Run| async { Vec::<LaneAnswer>::new() };
    store.unlisted.store(true, Ordering::Relaxed);
    for change in [
        world.engine.change_processor(registration(3), SOON).boxed(),
        world.engine.change_handler(registration(3), Arc::new(nobody), SOON).boxed(),
    ] {
        let failed = change.await;
        assert!(matches!(failed, Err(DefineError::Catalogue(_))), "{failed:?}");
    }
    world.send(&[("ann", "before")]).await;
    assert_eq!(world.nexts(1).await, ["before"], "the old handler goes on");
    store.unlisted.store(false, Ordering::Relaxed);
    let concurrency = async |world: &World| {
        let view = world.engine.processors().await.expect("listed").remove(0);
        view.stored.expect("readable").settings.concurrency
    };
    assert_ne!(concurrency(&world).await, 3, "nothing was changed");
    world.engine.change_processor(registration(3), SOON).await.expect("it is tried again");
    assert_eq!(concurrency(&world).await, 3);
    world.send(&[("ann", "after")]).await;
    assert_eq!(world.nexts(1).await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn other_handler_has_the_runs_after_those_of_the_old_one() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "slow")]).await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    let (sender, mut others) = tokio::sync::mpsc::unbounded_channel();
    let other = move |run: Run| {
        sender.send(run.lanes[0].events[0].data.clone()).expect("the test listens");
        async move { run.lanes.iter().map(LaneAnswer::all_done).collect::<Vec<_>>() }
    };
    world.engine.change_handler(registration(3), Arc::new(other), 2 * SOON).await.expect("it runs");
    world.send(&[("ann", "after")]).await;
    assert_eq!(
        others.recv().await.as_deref(),
        Some(&b"after"[..]),
        "the slow one was done, and is not repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn change_that_nobody_waits_for_any_more_is_carried_out() {
    let mut world = World::new(Mode::Queue).await;
    world.process(ProcessorSettings { concurrency: 1, ..ProcessorSettings::default() }).await;
    world.send(&[("ann", "slow")]).await;
    assert_eq!(world.nexts(1).await, ["slow"]);
    let mut changing = Box::pin(world.engine.change_processor(registration(2), 2 * SOON));
    assert!(changing.as_mut().now_or_never().is_none(), "a run goes on");
    drop(changing);
    world.send(&[("ann", "after")]).await;
    assert_eq!(world.nexts(1).await, ["after"]);
    let stored = world.engine.processors().await.expect("listed").remove(0);
    assert!(stored.runs_here);
    assert_eq!(stored.stored.expect("readable").settings.concurrency, 2);
}

#[tokio::test(start_paused = true)]
async fn processor_begins_where_it_is_told() {
    let mut ran = Vec::new();
    let from = |start| ProcessorSettings { start, ..ProcessorSettings::default() };
    for case in 0..4 {
        let mut world = World::with_partitions(Mode::Queue, 1).await;
        world.send(&[("ann", "1"), ("ann", "2")]).await;
        crate::seam::wait(Duration::from_secs(60)).await;
        world.send(&[("ann", "3")]).await;
        let start = match case {
            0 => StartAt::Beginning,
            1 => StartAt::Id(EventId(2)),
            2 => StartAt::Time(time_of(&world, EventId(3)).await),
            _ => StartAt::End,
        };
        world.process(from(start)).await;
        world.send(&[("ann", "4")]).await;
        let mut seen = Vec::new();
        while seen.last().is_none_or(|data| data != "4") {
            seen.extend(world.nexts(1).await);
        }
        ran.push(seen.join(" "));
    }
    assert_eq!(ran, ["1 2 3 4", "2 3 4", "3 4", "4"]);
}

async fn time_of(world: &World, id: EventId) -> Timestamp {
    let stream = world.engine.catalogue().stream("orders").await.expect("it exists");
    let read = Read {
        shard: stream.shard(Partition(0)),
        from: ReadFrom::Ids(vec![id]),
        limit: 1,
        bytes: 1 << 20,
        processor: None,
        states: false,
    };
    let page = world.store.read(read).await.expect("the store answers");
    let Some(Entry::Event(event)) = page.entries.first() else { panic!("event {id} is there") };
    event.time
}

/// Nodes that start together make the same streams.
#[tokio::test(start_paused = true)]
async fn whoever_is_slower_finds_the_stream_as_it_wants_it() {
    let world = World::new(Mode::Queue).await;
    let store = Faulty::new(world.store.clone());
    let other = World::through(store.clone(), world.store.clone(), world.env.clone());
    let settings = |partitions| StreamSettings { partitions, ..StreamSettings::default() };
    for (name, partitions) in [("same", 3), ("another", 5)] {
        let define = Define::Stream { name: name.to_owned(), expect: None, settings: settings(partitions) };
        *store.quicker.lock() = Some(define);
        let defined = other.engine.define_stream(name, settings(3)).await;
        match defined {
            Ok(info) => assert_eq!((name, info.settings.partitions), ("same", 3)),
            Err(DefineError::Store(StoreError::Conflict(_))) => assert_eq!(name, "another"),
            Err(error) => panic!("{name}: {error}"),
        }
        assert!(store.quicker.lock().is_none(), "nobody was quicker");
    }
}
