//! Retention of a shard where nothing happens: it must not read what others wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::store::Trim;
use laneway_core::{EventId, StreamSettings};
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
