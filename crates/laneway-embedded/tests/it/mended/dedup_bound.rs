//! The bound on dedup ids: room is made for several appends at once, and never by forgetting more than must go.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::event::Dedup;
use laneway_core::store::Receipt;
use laneway_core::{Draft, StreamSettings};
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_testkit::Bench;
use laneway_testkit::bench::draft;

use super::harness::{SMALLEST, bench};

#[tokio::test]
async fn shard_remembers_as_many_dedup_ids_as_it_may_and_hardly_more() {
    const MAX: u64 = 4_096;
    let (_store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let place = bench.place_with(StreamSettings { dedup_max: MAX, ..Bench::settings() }).await;
    let named = |number: u64| {
        let dedup =
            Dedup { id: number.to_be_bytes().to_vec().into(), body: 1, window: Duration::from_secs(600) };
        Draft { dedup: Some(dedup), ..draft("key", "data") }
    };
    for number in 0..MAX + 100 {
        bench.send(&place, vec![named(number)]).await;
    }
    // Newest first: one that was forgotten would be remembered again, in place of the oldest.
    let is_remembered = async |number: u64| {
        matches!(bench.send(&place, vec![named(number)]).await[..], [Receipt::Duplicate { .. }])
    };
    for number in (100..MAX + 100).rev() {
        assert!(is_remembered(number).await, "id {number} of {}", MAX + 100);
    }
    assert!(!is_remembered(90).await, "more than a thousandth too many are remembered");
}
