//! Retention of a shard where nothing happens: it must not read what others wrote. And of lanes where nothing happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::store::{Query, Rows, Trim};
use laneway_core::{EventId, Key, StreamSettings};
use laneway_embedded::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use laneway_testkit::Bench;
use laneway_testkit::bench::draft;

use super::harness::{SMALLEST, bench};

#[tokio::test]
async fn trim_of_an_idle_shard_does_not_walk_the_log() {
    let disk = WatchedDisk::new(SimulatedDisk::new());
    let (store, bench) = bench(Arc::new(disk.clone()), SMALLEST).await;
    let keep = Duration::from_secs(10);
    let settings = || StreamSettings { keep, ..Bench::settings() };
    let (idle, busy) = (bench.place_with(settings()).await, bench.place_with(settings()).await);
    bench.fill(&idle, "idle", 3).await;
    bench.pass(idle.seat, &[EventId(1), EventId(2), EventId(3)]).await;
    bench.advance(Duration::from_secs(11));
    let data = "x".repeat(5_000);
    for _ in 0..10 {
        bench.send(&busy, (0..100).map(|_| draft("busy", &data)).collect()).await;
        store.checkpoint().unwrap();
    }
    let reads = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&reads);
    disk.watch(move |call, path| {
        let in_log = path.parent().is_some_and(|parent| parent.ends_with("log"));
        count.fetch_add(u64::from(in_log && call == Call::Read), Ordering::Relaxed);
        Ok(())
    });
    let trimmed = bench.store().trim(Trim { shard: idle.shard }).await.unwrap();
    assert_eq!(trimmed.events, 3);
    assert_eq!(reads.load(Ordering::Relaxed), 0, "events of others were read");
    bench.store().trim(Trim { shard: idle.shard }).await.unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 0, "an empty shard was looked for");
    bench.events(busy.shard).await;
    assert!(reads.load(Ordering::Relaxed) > 10, "the busy shard's events are in files");
}

async fn lanes(bench: &Bench, shard: laneway_core::Shard, page: usize) -> Vec<Key> {
    let mut lanes = Vec::new();
    loop {
        let query = Query::Tails(shard, lanes.last().cloned(), page);
        let Rows::Tails(tails) = bench.query(query).await else { panic!("tails") };
        let is_last = tails.len() < page;
        lanes.extend(tails.into_iter().map(|tail| tail.key));
        if is_last {
            return lanes;
        }
    }
}

/// Before a checkpoint the index still has what was forgotten.
#[tokio::test]
async fn lanes_that_were_forgotten_are_in_no_list_before_and_after_a_checkpoint() {
    let (store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let minute = Duration::from_secs(60);
    let settings =
        StreamSettings { keep: Duration::ZERO, forget_lanes_after: Some(minute), ..Bench::settings() };
    let place = bench.place_with(settings).await;
    let names: Vec<String> = (0..400).map(|number| format!("lane-{number:03}")).collect();
    bench.send(&place, names.iter().map(|name| draft(name, "x")).collect()).await;
    bench.pass(place.seat, &(1..=400).map(EventId).collect::<Vec<_>>()).await;
    bench.trim(place.shard).await;
    store.checkpoint().unwrap();
    bench.advance(2 * minute);
    let kept: Vec<Key> =
        names.iter().skip(50).step_by(97).map(|name| Key::new(name.clone()).unwrap()).collect();
    bench.send(&place, names.iter().skip(50).step_by(97).map(|name| draft(name, "x")).collect()).await;
    assert_eq!(bench.trim(place.shard).await.rows, 400 - kept.len() as u64);
    for _ in 0..3 {
        for page in [1, 3, 7, 1_000] {
            assert_eq!(lanes(&bench, place.shard, page).await, kept, "in pages of {page}");
        }
        store.checkpoint().unwrap();
    }
}
