//! A store reports which event keeps its oldest segment, and why.

use std::time::Duration;

use futures::executor::block_on;
use laneway_core::store::{Commit, Define, HeldBy, LaneChange, Trim};
use laneway_core::{Block, Bytes, CommitId, EventId, LaneName, LaneRecord, Store, StreamSettings, Timestamp};

use super::harness::{append, open, shard};
use super::marks::{end, jobs};
use crate::file::FileStore;
use crate::file::disk::simulated::SimulatedDisk;

fn holder(store: &FileStore) -> (EventId, HeldBy) {
    let held = block_on(store.held()).unwrap();
    assert_eq!(held.len(), 1, "{held:?}");
    let first = store.shared().log.segments().iter().map(|segment| segment.end).sum::<u64>();
    assert_eq!(held[0].bytes, first, "everything since the oldest segment");
    (held[0].event, held[0].by)
}

#[test]
fn store_reports_what_keeps_its_oldest_segment() {
    let disk = SimulatedDisk::new();
    let store = open(&disk);
    assert_eq!(block_on(store.held()).unwrap(), [], "one segment, which takes frames");
    let (stream, seat, fence) = jobs(&store);
    for _ in 0..3 {
        append(&store, &stream, 10, 100_000).unwrap();
    }
    store.checkpoint().unwrap();
    assert_eq!(holder(&store), (EventId(1), HeldBy::Processor(seat.processor)));

    // Two are parked, the rest is passed.
    let parked = |id| {
        let block = Block::Parked { cause: Bytes::from_static(b"no"), at: Timestamp(7) };
        let lane = LaneName::Event(EventId(id));
        let record =
            LaneRecord { block: Some(block), head: Some(EventId(id)), ..LaneRecord::new(lane.clone()) };
        LaneChange { lane, record: Some(record), side: vec![EventId(id)], unside: Vec::new() }
    };
    let mut commit = Commit::new(seat, fence, CommitId(1));
    commit.passed = (1..=3_000).map(EventId).collect();
    commit.lanes = vec![parked(3), parked(5)];
    let fence = block_on(store.commit(commit)).unwrap().fence;
    assert_eq!(holder(&store), (EventId(1), HeldBy::Keep), "the stream keeps what it has for a day");
    let settings = StreamSettings { keep: Duration::ZERO, ..stream.settings.clone() };
    let define = Define::Stream { name: stream.name.clone(), expect: Some(stream.version), settings };
    block_on(store.define(define)).unwrap();
    assert_eq!(holder(&store), (EventId(3), HeldBy::Lane(seat.processor)));

    // They are skipped, and one of them ends as a job whose result is kept.
    let skipped = |id| LaneChange { record: None, side: Vec::new(), unside: vec![EventId(id)], ..parked(id) };
    let mut commit = Commit::new(seat, fence, CommitId(2));
    commit.passed = (3_001..=3_030).map(EventId).collect();
    commit.lanes = vec![skipped(3), skipped(5)];
    commit.jobs = vec![end(EventId(3))];
    block_on(store.commit(commit)).unwrap();
    assert_eq!(block_on(store.held()).unwrap(), [], "the next trim lets it go");
    let trimmed = block_on(store.trim(Trim { shard: shard(&stream) })).unwrap();
    assert_eq!(trimmed.events, 3_030, "the report agrees with what a trim does");
}
