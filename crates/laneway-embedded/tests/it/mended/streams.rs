//! Streams that come and go: numbers are never given again, and a store must not come to its end by that.

use std::sync::Arc;

use laneway_core::store::{Define, JobState, Receipt};
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_testkit::Bench;
use laneway_testkit::bench::job_draft;

use super::harness::{SMALLEST, bench};

/// More than the 13 bits that the first layout of job ids had for them.
const STREAMS: u32 = 8_200;

#[tokio::test]
async fn more_streams_than_job_ids_first_had_room_for_can_come_and_go() {
    let (store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let mut last = bench.stream(Bench::settings()).await;
    for number in 2..=STREAMS {
        let next = bench.stream(Bench::settings()).await;
        assert_eq!(next.id.0, number);
        bench.define(Define::RemoveStream { stream: last.id, expect: last.version }).await;
        last = next;
    }
    store.checkpoint().unwrap();
    let place = bench.place().await;
    let receipts = bench.send(&place, vec![job_draft("a", "x", place.seat.processor)]).await;
    let [Receipt::New { job: Some(job), .. }] = receipts[..] else { panic!("{receipts:?}") };
    assert_eq!(job.shard(), place.shard);
    assert!(matches!(bench.job(place.shard, job.number()).await, JobState::Pending { .. }));
    assert_eq!(bench.streams().await.len(), 2);
}
