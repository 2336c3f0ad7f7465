//! The smallest segments that are allowed: everything of ordinary size works, and what cannot fit is refused by name,
//! value and limit, without any effect.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::limits::PARTITIONS_MAX;
use laneway_core::store::Define;
use laneway_core::{Draft, ManualClock, Store, StoreError, StreamSettings};
use laneway_embedded::FileStore;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_testkit::bench::draft;

use super::harness::{SMALLEST, bench, long_draft, open, options};

fn assert_too_large(error: &StoreError) {
    let text = error.to_string();
    let parts = ["bytes of the call", "at most", "segment_bytes"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
}

#[tokio::test]
async fn what_cannot_fit_the_smallest_segment_is_refused_by_its_size() {
    let disk = SimulatedDisk::new();
    let (store, bench) = bench(Arc::new(disk.clone()), SMALLEST).await;
    let place = bench.place().await;
    let thousand = bench.try_send(&place, (0..1_000).map(long_draft).collect()).await;
    assert_too_large(&thousand.unwrap_err());
    let settings = StreamSettings { partitions: PARTITIONS_MAX, ..StreamSettings::default() };
    let wide = Define::Stream { name: "wide".to_owned(), expect: None, settings };
    assert_too_large(&store.define(wide).await.unwrap_err());
    let largest = Draft { data: Bytes::from(vec![1; 1 << 20]), ..long_draft(1) };
    bench.send(&place, vec![largest]).await;
    bench.send(&place, vec![draft("lane", "after")]).await;
    store.close().unwrap();
    let store = open(Arc::new(disk), SMALLEST, &ManualClock::default());
    let bench = crate::rich::on_file(&store, &ManualClock::default()).await;
    assert_eq!(bench.events(place.shard).await.len(), 2, "only what was accepted is there");
    assert_eq!(bench.streams().await.len(), 1);
}

#[tokio::test]
async fn segments_that_hold_no_largest_event_are_refused() {
    let disk = Arc::new(SimulatedDisk::new());
    let clock = Arc::new(ManualClock::default());
    let error = FileStore::open_on(disk, "/store", options(SMALLEST - 4096), clock).unwrap_err().to_string();
    assert!(error.contains("segment_bytes") && error.contains(&format!("at least {SMALLEST}")), "{error}");
}
