//! Events read back: page by page, one by its name, each with how it stands for every processor.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{EventId, Mode, Partition, Ref, Status, StoreError, StreamSettings, Terminal};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, OnFailure, Policy, Run};
use laneway_engine::observe::{EventView, LookError};

use crate::seam;
use crate::world::World;

/// A world with one partition, so that ids tell the order.
async fn world(mode: Mode, on_failure: OnFailure) -> World {
    let world = World::new(mode).await;
    world.engine.remove_stream("orders", Duration::ZERO).await.expect("empty");
    let settings = StreamSettings { partitions: 1, mode, ..StreamSettings::default() };
    world.engine.define_stream("orders", settings).await.expect("a new stream");
    let policy = Policy { max_attempts: 1, on_failure, ..Policy::default() };
    world.process(ProcessorSettings { policy, ..ProcessorSettings::default() }).await;
    world
}

fn statuses(view: &EventView) -> Vec<(&str, Status)> {
    view.statuses.iter().map(|told| (told.processor.as_str(), told.status)).collect()
}

#[tokio::test(start_paused = true)]
async fn page_tells_how_each_event_stands_for_each_processor() {
    let mut world = world(Mode::Queue, OnFailure::Park).await;
    let handler = |run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect() };
    let settings = ProcessorSettings::default();
    world.engine.process("audit", "orders", settings, Arc::new(handler)).await.expect("a processor");
    world.send(&[("ann", "ok"), ("bob", "fail"), ("bob", "behind"), ("cid", "slow"), ("", "ok")]).await;
    world.nexts(4).await;
    // Long enough for the slow run to show.
    seam::wait(Duration::from_secs(3)).await;
    let looker = world.engine.looker();
    let page = looker.events("orders", Partition(0), EventId(0), 100).await.expect("readable");
    let done = Status::Ended(Terminal::Done);
    let expected = [done, Status::Parked, Status::Waiting, Status::Running, done];
    for (view, expected) in page.events.iter().zip(expected) {
        assert_eq!(statuses(view), [("charge", expected), ("audit", done)], "{}", view.reference);
    }
    assert_eq!((page.events.len(), page.head, page.after), (5, EventId(5), EventId(5)));
    let one = looker.event(&"orders/0/2".parse().expect("a ref")).await.expect("there");
    assert_eq!(one, page.events[1]);
    let rest = looker.events("orders", Partition(0), EventId(3), 1).await.expect("readable");
    assert_eq!((rest.events, rest.after), (vec![page.events[3].clone()], EventId(4)));
    let after_all = looker.events("orders", Partition(0), EventId(5), 10).await.expect("readable");
    assert_eq!((after_all.events.len(), after_all.after), (0, EventId(5)), "nothing new yet");
}

#[tokio::test(start_paused = true)]
async fn ends_other_than_done_say_why() {
    let mut world = world(Mode::Latest, OnFailure::DeadLetter).await;
    world.send(&[("ann", "slow")]).await;
    world.next().await;
    world.send(&[("ann", "lost"), ("ann", "broken")]).await;
    seam::wait(Duration::from_secs(120)).await;
    let looker = world.engine.looker();
    let page = looker.events("orders", Partition(0), EventId(0), 100).await.expect("readable");
    let [_, lost, broken] = &page.events[..] else { panic!("three events, also the superseded one") };
    assert_eq!(lost.statuses[0].status, Status::Ended(Terminal::Superseded));
    assert_eq!(lost.statuses[0].winner, Some(EventId(3)));
    assert_eq!(&lost.event.data[..], b"lost");
    assert_eq!(broken.statuses[0].status, Status::Ended(Terminal::Failed));
    assert_eq!(&broken.statuses[0].reason[..], b"broken for good");
}

#[tokio::test(start_paused = true)]
async fn wrong_places_are_refused_and_trimmed_ones_say_where_to_go_on() {
    let world = world(Mode::Queue, OnFailure::Park).await;
    let settings =
        StreamSettings { partitions: 1, keep: Duration::from_secs(60), ..StreamSettings::default() };
    world.engine.define_stream("orders", settings).await.expect("changed");
    for data in ["one", "two", "three"] {
        let job = world.submit("ann", data).await;
        world.settled(job).await;
    }
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(300)).await;
    world.send(&[("ann", "four")]).await;
    let looker = world.engine.looker();
    let reference = |id| Ref { stream: "orders".to_owned(), partition: Partition(0), id: EventId(id) };
    let below = looker.events("orders", Partition(0), EventId(1), 10).await;
    let first = |error| matches!(error, Err(LookError::Store(StoreError::Trimmed { first, .. })) if first == EventId(4));
    assert!(first(below.map(drop)), "below the trim");
    assert!(first(looker.event(&reference(2)).await.map(drop)), "below the trim");
    let page = looker.events("orders", Partition(0), EventId(0), 10).await.expect("from the first there is");
    assert_eq!(page.events.iter().map(|view| view.event.id).collect::<Vec<_>>(), [EventId(4)]);
    let unknown = looker.event(&reference(5)).await.expect_err("never was").to_string();
    assert_eq!(unknown, "event orders/0/5 does not exist");
    let refused = looker.events("orders", Partition(1), EventId(0), 10).await.expect_err("no partition");
    assert_eq!(refused.to_string(), "partition is 1, must be 0 to 0");
    let refused = looker.events("orders", Partition(0), EventId(0), 0).await.expect_err("no limit");
    assert_eq!(refused.to_string(), "limit is 0, must be 1 to 1000");
}

#[tokio::test(start_paused = true)]
async fn stream_tells_heads_lag_and_what_is_held_up() {
    let mut world = world(Mode::Queue, OnFailure::Park).await;
    world.send(&[("ann", "ok"), ("bob", "fail"), ("bob", "behind")]).await;
    world.nexts(2).await;
    seam::wait(Duration::from_secs(1)).await;
    world.engine.stop_processor("charge", crate::world::SOON).await.expect("it runs");
    world.send(&[("ann", "four"), ("cid", "five")]).await;
    let stream = world.engine.looker().stream("orders").await.expect("there");
    let [partition] = &stream.partitions[..] else { panic!("one partition") };
    assert_eq!((partition.head, stream.lag("charge")), (EventId(5), 2));
    let seat = &partition.processors[0];
    assert_eq!((seat.processor.as_str(), seat.floor, seat.held_lanes), ("charge", EventId(3), 1));
}
