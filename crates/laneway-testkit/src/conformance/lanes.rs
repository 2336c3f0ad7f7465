//! Cases about `lanes`: records, states and sidings of lanes that are not plain (contract 1.9).

use std::time::Duration;

use bytes::Bytes;
use laneway_core::lane::Claim;
use laneway_core::store::{LaneChange, LaneSelect, LaneView, Lanes, StateWrite};
use laneway_core::{
    Block, BlockKind, Due, EventId, Fence, LaneName, LaneRecord, Nonce, ProcessorId, Seat, Steady,
    StoreError, Timestamp,
};

use super::expect::expect_error;
use crate::bench::{Bench, Place, draft, key, keyless, lane, lane_change, parked, passed, retrying};

async fn put(bench: &Bench, place: &Place, fence: Fence, changes: Vec<LaneChange>) -> Fence {
    let mut commit = bench.commit_of(place.seat, fence);
    commit.lanes = changes;
    bench.commit(commit).await.fence
}

fn names(views: &[LaneView]) -> Vec<String> {
    views.iter().map(|view| view.record.lane.to_string()).collect()
}

async fn blocked(bench: &Bench, seat: Seat, kind: Option<BlockKind>) -> Vec<String> {
    names(&bench.lanes(seat, LaneSelect::Blocked { kind, after: None, limit: 100 }).await)
}

/// Contract 1.9: a plain lane has no record and is left out.
pub async fn a_plain_lane_has_no_record(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 3).await;
    assert_eq!(bench.lane_view(place.seat, &lane("a")).await, None);
    assert!(blocked(bench, place.seat, None).await.is_empty());
}

/// Contract 2, lane: a record comes back as it was written, for every kind of block.
pub async fn every_kind_of_record_is_kept(bench: &Bench) {
    let place = bench.place().await;
    // No lane is ahead of the log.
    bench.fill(&place, "a", 50).await;
    let bytes = Bytes::from_static(b"why");
    let blocks = [
        Block::Retry { due: Due::Steady(Steady(9)), cause: bytes.clone() },
        Block::Hold { due: Due::Calendar(Timestamp(8)) },
        Block::Paused { by: bytes.clone(), at: Timestamp(1) },
        Block::Parked { cause: bytes.clone(), at: Timestamp(2) },
        Block::Diverting { since: EventId(3) },
        Block::Running { since: Timestamp(4), progress: bytes.clone() },
        Block::Claimed(Claim { nonce: Nonce(5), worker: bytes, through: EventId(6), expires: Steady(7) }),
    ];
    let mut fence = bench.seize(place.seat).await.progress.fence;
    for (index, block) in blocks.into_iter().enumerate() {
        let name = lane(&format!("lane-{index}"));
        let record = LaneRecord {
            block: Some(block),
            head: Some(EventId(40)),
            attempts: 2,
            crashes: 3,
            started: true,
            ahead: Some(EventId(50)),
            ..LaneRecord::new(name.clone())
        };
        fence = put(bench, &place, fence, vec![lane_change(record.clone())]).await;
        let view = bench.lane_view(place.seat, &name).await.expect("it has a record");
        assert_eq!((view.record, view.state, view.siding), (record, None, Vec::new()));
    }
    for (index, kind) in BlockKind::ALL.into_iter().enumerate() {
        assert_eq!(blocked(bench, place.seat, Some(kind)).await, [format!("lane-{index}")], "{kind:?}");
    }
    assert_eq!(blocked(bench, place.seat, None).await.len(), 7);
}

/// Contract 2, lane: a changed record leaves the lists of its old block; `None` makes the lane plain again.
pub async fn a_changed_record_moves_between_lists(bench: &Bench) {
    let place = bench.place().await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let due = Due::Steady(Steady(1));
    let fence = put(bench, &place, fence, vec![lane_change(retrying(lane("a"), EventId(1), due))]).await;
    assert_eq!(blocked(bench, place.seat, Some(BlockKind::Retry)).await, ["a"]);
    let fence = put(bench, &place, fence, vec![lane_change(parked(lane("a"), EventId(1)))]).await;
    assert!(blocked(bench, place.seat, Some(BlockKind::Retry)).await.is_empty());
    assert_eq!(blocked(bench, place.seat, Some(BlockKind::Parked)).await, ["a"]);
    let soon = LaneSelect::Due { within: Duration::from_secs(1 << 30), limit: 10 };
    assert!(bench.lanes(place.seat, soon.clone()).await.is_empty(), "time alone does not free a parked lane");
    let plain = LaneChange { lane: lane("a"), record: None, side: Vec::new(), unside: Vec::new() };
    put(bench, &place, fence, vec![plain]).await;
    assert_eq!(bench.lane_view(place.seat, &lane("a")).await, None);
    assert!(blocked(bench, place.seat, None).await.is_empty());
    assert!(bench.lanes(place.seat, soon).await.is_empty());
}

/// Contract 3.15: lanes that time alone frees are paged in the order in which they become due.
pub async fn due_lanes_come_soonest_first(bench: &Bench) {
    let place = bench.place().await;
    let now = bench.store_steady().await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let after = |seconds: u64| Due::Steady(now.after(Duration::from_secs(seconds)));
    let claim = Claim {
        nonce: Nonce(1),
        worker: Bytes::new(),
        through: EventId(1),
        expires: now.after(Duration::from_secs(2_000)),
    };
    let claimed = LaneRecord { block: Some(Block::Claimed(claim)), ..LaneRecord::new(lane("claimed")) };
    let held = LaneRecord { block: Some(Block::Hold { due: after(1_000) }), ..LaneRecord::new(lane("held")) };
    let changes = vec![
        lane_change(retrying(lane("late"), EventId(1), after(9_000_000))),
        lane_change(retrying(lane("third"), EventId(2), after(3_000))),
        lane_change(claimed),
        lane_change(held),
        lane_change(parked(lane("parked"), EventId(5))),
        lane_change(retrying(lane("past"), EventId(6), Due::Steady(Steady(0)))),
    ];
    put(bench, &place, fence, changes).await;
    let due = async |seconds: u64, limit: usize| {
        let select = LaneSelect::Due { within: Duration::from_secs(seconds), limit };
        names(&bench.lanes(place.seat, select).await)
    };
    assert_eq!(due(10_000, 10).await, ["past", "held", "claimed", "third"]);
    assert_eq!(due(10_000, 2).await, ["past", "held"]);
    assert_eq!(due(0, 10).await, ["past"]);
}

/// Contract 3.15: dates are due by the wall clock, and sorted together with delays.
pub async fn due_lanes_follow_both_clocks(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let now = bench.store_steady().await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let second = Duration::from_secs(1);
    let changes = vec![
        lane_change(retrying(lane("steady-2"), EventId(1), Due::Steady(now.after(2 * second)))),
        lane_change(retrying(lane("date-1"), EventId(2), Due::Calendar(bench.now().after(second)))),
        lane_change(retrying(lane("date-3"), EventId(3), Due::Calendar(bench.now().after(3 * second)))),
    ];
    put(bench, &place, fence, changes).await;
    let select = LaneSelect::Due { within: 10 * second, limit: 10 };
    assert_eq!(names(&bench.lanes(place.seat, select.clone()).await), ["date-1", "steady-2", "date-3"]);
    let near = LaneSelect::Due { within: second, limit: 10 };
    assert_eq!(names(&bench.lanes(place.seat, near).await), ["date-1"]);
}

/// Contract 2, lanes: the list of records is paged by name.
pub async fn blocked_lanes_are_paged_by_name(bench: &Bench) {
    let place = bench.place().await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let changes = ["d", "a", "c", "b"].map(|name| lane_change(parked(lane(name), EventId(1)))).to_vec();
    put(bench, &place, fence, changes).await;
    for kind in [None, Some(BlockKind::Parked)] {
        let page = async |after: Option<&str>, limit: usize| {
            let select = LaneSelect::Blocked { kind, after: after.map(lane), limit };
            names(&bench.lanes(place.seat, select).await)
        };
        assert_eq!(page(None, 3).await, ["a", "b", "c"]);
        assert_eq!(page(Some("c"), 3).await, ["d"]);
        assert!(page(Some("d"), 3).await.is_empty());
    }
}

/// Contract 3.4: a keyless event's lane is named by the event and listed like any other.
pub async fn a_keyless_events_lane_is_named_by_its_id(bench: &Bench) {
    let place = bench.place().await;
    let id = bench.send_one(&place, keyless("x")).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    put(bench, &place, fence, vec![lane_change(parked(LaneName::Event(id), id))]).await;
    let view = bench.lane_view(place.seat, &LaneName::Event(id)).await.expect("it has a record");
    assert_eq!(view.record.head, Some(id));
    assert_eq!(blocked(bench, place.seat, Some(BlockKind::Parked)).await, [format!("#{id}")]);
}

/// Contract 2, lanes: a lane with nothing but a state is answered with an empty record.
pub async fn a_lane_with_a_state_only_has_an_empty_record(bench: &Bench) {
    let place = bench.place().await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.states = vec![StateWrite { key: key("a"), value: Some(Bytes::from_static(b"s")) }];
    bench.commit(commit).await;
    let view = bench.lane_view(place.seat, &lane("a")).await.expect("it has a state");
    assert_eq!(view.record, LaneRecord::new(lane("a")));
    assert_eq!(view.state.expect("there").bytes, Bytes::from_static(b"s"));
    assert!(blocked(bench, place.seat, None).await.is_empty(), "a state is no record");
    let select = LaneSelect::Names(vec![lane("a")]);
    let without = Lanes { seat: place.seat, select, siding: 0, states: false };
    assert_eq!(
        bench.store().lanes(without).await.expect("a seat that exists"),
        [],
        "nobody asked for its state"
    );
}

/// Contract 2, lanes: states come only where they are asked for.
pub async fn states_of_lanes_come_when_asked_for(bench: &Bench) {
    let place = bench.place().await;
    let id = bench.send_one(&place, draft("a", "x")).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.states = vec![StateWrite { key: key("a"), value: Some(Bytes::from_static(b"s")) }];
    commit.lanes = vec![lane_change(parked(lane("a"), id))];
    bench.commit(commit).await;
    for states in [true, false] {
        let select = LaneSelect::Blocked { kind: None, after: None, limit: 10 };
        let lanes = Lanes { seat: place.seat, select, siding: 0, states };
        let views = bench.store().lanes(lanes).await.expect("a seat that exists");
        assert_eq!((views.len(), views[0].record.head), (1, Some(id)));
        assert_eq!(views[0].state.is_some(), states);
    }
}

/// Contract 1.9: sided ids come ascending, no more than asked for; an emptied siding makes the lane plain.
pub async fn a_siding_is_read_in_order(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 5).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    let side = vec![ids[3], ids[0], ids[1], ids[2]];
    commit.lanes = vec![LaneChange { side, ..lane_change(parked(lane("a"), ids[0])) }];
    let committed = bench.commit(commit).await;
    assert_eq!(committed.floor, ids[4], "a sided event counts as passed for the floor");
    let select = LaneSelect::Names(vec![lane("a"), lane("b")]);
    let slice = Lanes { seat: place.seat, select, siding: 2, states: true };
    let views = bench.store().lanes(slice).await.expect("a seat that exists");
    assert_eq!(views.len(), 1);
    assert_eq!(views[0].siding, ids[..2]);
    let record = LaneRecord { head: Some(ids[1]), ..LaneRecord::new(lane("a")) };
    let fence =
        put(bench, &place, committed.fence, vec![LaneChange { unside: vec![ids[0]], ..lane_change(record) }])
            .await;
    assert_eq!(bench.lane_view(place.seat, &lane("a")).await.expect("there").siding, ids[1..4]);
    let plain = LaneChange { lane: lane("a"), record: None, side: Vec::new(), unside: ids[1..4].to_vec() };
    put(bench, &place, fence, vec![plain]).await;
    assert_eq!(bench.lane_view(place.seat, &lane("a")).await, None);
}

/// Contract 2: lane records of two processors are told apart.
pub async fn records_belong_to_their_processor(bench: &Bench) {
    let place = bench.place().await;
    let other = bench.processor(place.stream.id, laneway_core::StartAt::Beginning).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    put(bench, &place, fence, vec![lane_change(parked(lane("a"), EventId(1)))]).await;
    assert!(blocked(bench, Seat { processor: other, ..place.seat }, None).await.is_empty());
}

/// Contract 2, lanes: no such seat.
pub async fn lanes_of_an_unknown_seat_are_not_found(bench: &Bench) {
    let place = bench.place().await;
    let seat = Seat { processor: ProcessorId(9_999), ..place.seat };
    let lanes = Lanes { seat, select: LaneSelect::Names(Vec::new()), siding: 1, states: true };
    expect_error!(bench.store().lanes(lanes).await, StoreError::NotFound { .. });
}
