//! What a call writes never exceeds what it was said to cost: the store compares the two in every call of a test,
//! and here are the calls that write the most for what they carry.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{
    DeadLetter, Define, Jobs, LaneChange, Promote, Receipt, Request, RequestOp, StateWrite,
};
use laneway_core::{
    Delay, DelayMode, Draft, Due, EventId, LaneName, LaneRecord, Partition, Seat, StartAfter, StartAt,
    Steady, StreamSettings, Terminal, TokenId,
};
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_testkit::Bench;
use laneway_testkit::bench::{Place, ending, passed, retrying};

use super::harness::{SMALLEST, bench, long_draft, long_key};

/// One trim takes so many rows of a table.
const ROWS: usize = 200;

async fn send_long(bench: &Bench, place: &Place, numbers: std::ops::Range<usize>) {
    for from in numbers.clone().step_by(50) {
        let drafts = (from..numbers.end.min(from + 50)).map(long_draft).collect();
        bench.send(place, drafts).await;
    }
}

#[tokio::test]
async fn trim_of_the_longest_rows_costs_no_more_than_it_says() {
    let (_store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let second = Duration::from_secs(1);
    let settings = StreamSettings { keep: Duration::ZERO, dead_keep: second, ..Bench::settings() };
    let place = bench.place_with(settings).await;
    let mut seats = vec![place.seat];
    for _ in 0..3 {
        let processor = bench.processor(place.stream.id, StartAt::Beginning).await;
        seats.push(Seat { processor, ..place.seat });
    }
    send_long(&bench, &place, 0..ROWS + 50).await;
    let events = bench.events(place.shard).await;
    for seat in seats {
        for number in 0..ROWS as u128 {
            let op = RequestOp::Resume { lane: None };
            bench.store().request(Request { seat, token: TokenId(number + 1), op }).await.unwrap();
        }
        let fence = bench.seize(seat).await.progress.fence;
        let mut commit = bench.commit_of(seat, fence);
        commit.passed = passed(&events.iter().map(|event| event.id).collect::<Vec<_>>());
        commit.endings = events.iter().map(|event| ending(event.id, Terminal::Skipped)).collect();
        let letter = |event: &laneway_core::Event| DeadLetter {
            event: event.clone(),
            cause: Bytes::from_static(b"x"),
            attempts: 1,
            at: event.time,
        };
        commit.dead = events.iter().take(ROWS).map(letter).collect();
        commit.requests_applied = Some(ROWS as u64);
        bench.commit(commit).await;
    }
    bench.advance(Duration::from_secs(400 * 24 * 3600));
    let trimmed = bench.store().trim(laneway_core::store::Trim { shard: place.shard }).await.unwrap();
    assert!(trimmed.rows >= (7 * ROWS) as u64, "{trimmed:?}");
}

#[tokio::test]
async fn trim_that_forgets_the_longest_lanes_costs_no_more_than_it_says() {
    let (_store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let minute = Duration::from_secs(60);
    let forget_lanes_after = Some(minute);
    let settings = StreamSettings { keep: Duration::ZERO, forget_lanes_after, ..Bench::settings() };
    let place = bench.place_with(settings).await;
    send_long(&bench, &place, 0..1_100).await;
    let ids: Vec<_> = bench.events(place.shard).await.iter().map(|event| event.id).collect();
    bench.pass(place.seat, &ids).await;
    while bench.trim(place.shard).await.rows > 0 {}
    bench.advance(2 * minute);
    let mut forgotten = 0;
    while forgotten < 1_100 {
        let rows = bench.store().trim(laneway_core::store::Trim { shard: place.shard }).await.unwrap().rows;
        assert!(rows >= 100, "{forgotten} of 1,100 lanes went, then {rows}");
        forgotten += rows;
    }
}

#[tokio::test]
async fn appends_that_let_dedup_ids_go_cost_no_more_than_they_say() {
    let (_store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let place = bench.place_with(StreamSettings { dedup_max: 100, ..Bench::settings() }).await;
    send_long(&bench, &place, 0..400).await;
    // Fewer are allowed now, so that one append lets more go than it brings.
    let settings = StreamSettings { dedup_max: 10, ..place.stream.settings.clone() };
    let expect = Some(bench.stream_info(place.stream.id).await.unwrap().version);
    bench.define(Define::Stream { name: place.stream.name.clone(), expect, settings }).await;
    for number in 400..410 {
        bench.send(&place, vec![long_draft(number)]).await;
    }
}

fn later(draft: Draft, seconds: u64) -> Draft {
    let until = StartAfter::Delay(Duration::from_secs(seconds));
    Draft { delay: Some(Delay { until, mode: DelayMode::Join }), ..draft }
}

#[tokio::test]
async fn promotions_of_any_size_cost_no_more_than_they_say() {
    let (_store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let place = bench.place().await;
    let mut waiting = 0;
    for from in (0..600).step_by(50) {
        let drafts: Vec<Draft> = (from..from + 50).map(|number| later(long_draft(number), 60)).collect();
        waiting += drafts.len();
        bench.send(&place, drafts).await;
    }
    let largest = Draft { data: Bytes::from(vec![1; 1 << 20]), ..later(long_draft(1_000), 60) };
    let receipts = bench.send(&place, vec![largest]).await;
    assert!(matches!(receipts[0], Receipt::Scheduled { .. }));
    let cancelled = bench.send(&place, vec![later(long_draft(1_001), 60)]).await;
    let Receipt::Scheduled { ticket, .. } = cancelled[0] else { panic!("{cancelled:?}") };
    bench.store().jobs(Jobs::CancelScheduled { shard: place.shard, ticket }).await.unwrap();
    bench.advance(Duration::from_secs(100));
    let (mut moved, mut calls) = (0, 0);
    while moved < waiting + 1 {
        let promoted = bench.store().promote(Promote { shard: place.shard, limit: 10_000 }).await.unwrap();
        assert!(promoted.moved > 0, "{moved} of {} moved", waiting + 1);
        (moved, calls) = (moved + promoted.moved, calls + 1);
    }
    assert!(calls > 2, "{calls} calls");
    assert_eq!(bench.shard_info(place.shard).await.head, EventId(waiting as u64 + 1));
}

#[tokio::test]
async fn commits_on_the_longest_lanes_cost_no_more_than_they_say() {
    let (_store, bench) = bench(Arc::new(SimulatedDisk::new()), SMALLEST).await;
    let place = bench.place().await;
    for _ in 0..4 {
        send_one_of_each(&bench, &place, 25).await;
    }
    let fence = bench.seize(place.seat).await.progress.fence;
    let ids: Vec<EventId> = (1..=100).map(EventId).collect();
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    let sided = |number: usize| ids.iter().skip(number).step_by(25).copied().collect::<Vec<_>>();
    commit.lanes = (0..25)
        .map(|number| {
            let lane = LaneName::Key(long_key(number));
            let record = Some(LaneRecord::new(lane.clone()));
            LaneChange { lane, record, side: sided(number), unside: Vec::new() }
        })
        .collect();
    commit.states = (0..25)
        .map(|number| StateWrite { key: long_key(number), value: Some(Bytes::from_static(b"v")) })
        .collect();
    let fence = bench.commit(commit).await.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.lanes = (0..25)
        .map(|number| {
            let lane = LaneName::Key(long_key(number));
            let record = retrying(lane.clone(), ids[number], Due::Steady(Steady(u64::MAX)));
            LaneChange { lane, record: Some(record), side: Vec::new(), unside: sided(number) }
        })
        .collect();
    commit.states = (0..25).map(|number| StateWrite { key: long_key(number), value: None }).collect();
    bench.commit(commit).await;
}

/// One plain draft for each of so many lanes.
async fn send_one_of_each(bench: &Bench, place: &Place, lanes: usize) {
    let draft = |number| Draft { dedup: None, ..long_draft(number) };
    bench.send(place, (0..lanes).map(draft).collect()).await;
}

#[tokio::test]
async fn definitions_over_all_partitions_cost_no_more_than_they_say() {
    let (_store, bench) = bench(Arc::new(SimulatedDisk::new()), 8 << 20).await;
    let partitions = laneway_core::limits::PARTITIONS_MAX;
    let stream = bench.stream(StreamSettings { partitions, ..StreamSettings::default() }).await;
    let mut processors = Vec::new();
    for _ in 0..40 {
        processors.push(bench.processor(stream.id, StartAt::Beginning).await);
    }
    for partition in 0..8 {
        let shard = stream.shard(Partition(partition));
        bench.seize(Seat { shard, processor: processors[0] }).await;
    }
    bench.define(Define::Seal { shard: stream.shard(Partition(1)) }).await;
    bench.define(Define::RemoveProcessor { processor: processors[0] }).await;
    let expect = bench.stream_info(stream.id).await.unwrap().version;
    bench.define(Define::RemoveStream { stream: stream.id, expect }).await;
    assert!(bench.streams().await.is_empty());
}
