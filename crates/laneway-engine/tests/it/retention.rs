//! Retention: what is past its time goes about as fast as it comes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{EventId, Mode, Partition, Seat, StreamSettings};
use laneway_embedded::MemoryStore;
use laneway_engine::service::TokioClock;
use laneway_engine::{Env, ProcessorSettings};
use tokio::sync::Barrier;

use crate::faulty::Faulty;
use crate::seam;
use crate::world::World;

/// Superseded events; many more than one call of trim removes.
const SUPERSEDED: usize = 5_000;

async fn endings(world: &World) -> usize {
    let info = world.engine.catalogue().stream("orders").await.expect("it exists");
    let seat = Seat { shard: info.shard(Partition(0)), processor: info.processors[0].id };
    let Rows::Endings(endings) = world.store_query(Query::Endings(seat, EventId(0), SUPERSEDED)).await else {
        panic!("asked for endings")
    };
    endings.len()
}

#[tokio::test(start_paused = true)]
async fn thousands_of_ends_past_their_time_go_within_two_turns() {
    let mut world = World::with_partitions(Mode::Latest, 1).await;
    let keep = Duration::from_secs(600);
    let settings = StreamSettings { partitions: 1, mode: Mode::Latest, keep, ..StreamSettings::default() };
    world.engine.define_stream("orders", settings).await.expect("changed");
    world.process(ProcessorSettings::default()).await;
    world.send(&[("ann", "slow")]).await;
    world.next().await;
    for _ in 0..SUPERSEDED / 1_000 {
        world.send(&[("ann", "newer"); 1_000]).await;
    }
    world.next().await;
    seam::wait(Duration::from_secs(60)).await;
    assert!(endings(&world).await >= 1_000, "most were superseded");
    seam::wait(keep).await;
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(25)).await;
    assert_eq!(endings(&world).await, 0);
}

const HOUR: Duration = Duration::from_secs(3_600);

/// A world with a stream of so many partitions, and its store.
async fn watched(partitions: u32, keep: Duration) -> (World, Arc<Faulty>) {
    let clock = Arc::new(TokioClock::start());
    let (env, memory) = (Env::seeded(clock.clone(), 7), Arc::new(MemoryStore::new(clock)));
    let store = Faulty::new(memory.clone());
    let world = World::through(store.clone(), memory, env);
    let settings = StreamSettings { partitions, keep, ..StreamSettings::default() };
    world.engine.define_stream("orders", settings).await.expect("a new stream");
    (world, store)
}

#[tokio::test(start_paused = true)]
async fn shard_without_events_is_trimmed_once_a_minute_and_one_with_events_at_once() {
    let (world, store) = watched(4, HOUR).await;
    let trims = || store.trims.swap(0, Ordering::Relaxed);
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(605)).await;
    let idle = trims();
    assert!((4 * 9..=4 * 11).contains(&idle), "{idle} calls for 4 shards in ten minutes");
    seam::wait(Duration::from_secs(20)).await;
    trims();
    world.send(&[("ann", "ok")]).await;
    seam::wait(Duration::from_secs(10)).await;
    assert_eq!(trims(), 1, "the shard of the event, and no other");
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_stream_that_keeps_events_for_a_minute_do_not_rest() {
    let (world, store) = watched(4, Duration::from_secs(60)).await;
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(605)).await;
    assert_eq!(store.trims.load(Ordering::Relaxed), 4 * 60);
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_store_that_others_change_do_not_rest() {
    let (world, store) = watched(4, HOUR).await;
    store.shared.store(true, Ordering::Relaxed);
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(605)).await;
    assert_eq!(store.trims.load(Ordering::Relaxed), 4 * 60);
}

#[tokio::test(start_paused = true)]
async fn several_shards_are_trimmed_at_the_same_time() {
    let (world, store) = watched(16, HOUR).await;
    *store.trims_together.lock() = Some(Arc::new(Barrier::new(8)));
    world.engine.start_upkeep();
    seam::wait(Duration::from_secs(15)).await;
    assert_eq!(store.trims.load(Ordering::Relaxed), 16);
}
