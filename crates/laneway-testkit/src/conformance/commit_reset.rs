//! Cases about beginning a processor anew on one shard (contract 1.18).

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{DeadLetter, JobState, Jobs, LaneChange, Query, Reset, StateWrite};
use laneway_core::{EventId, Fence, JobNumber, StartAt, StreamSettings, Terminal, Timestamp};

use super::define::starts_at_times;
use super::expect::rows;
use crate::bench::{Bench, Place, draft, emit, ending, key, lane, lane_change, parked, passed};

/// A seat with progress, a siding, a state, an ending, a dead letter and an emit.
async fn busy(bench: &Bench) -> (Place, Vec<EventId>, Fence) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 4).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids[..3]);
    commit.endings = vec![ending(ids[0], Terminal::Failed)];
    commit.lanes = vec![LaneChange { side: vec![ids[1]], ..lane_change(parked(lane("a"), ids[1])) }];
    commit.states = vec![StateWrite { key: key("a"), value: Some(Bytes::from_static(b"kept")) }];
    let event = bench.event(place.shard, ids[0]).await;
    commit.dead = vec![DeadLetter { event, cause: Bytes::new(), attempts: 1, at: Timestamp(0) }];
    commit.emits = vec![emit(place.stream.id, "b", "emitted")];
    let fence = bench.commit(commit).await.fence;
    (place, ids, fence)
}

async fn reset(bench: &Bench, place: &Place, fence: Fence, start: StartAt, clear_states: bool) -> Fence {
    let mut commit = bench.commit_of(place.seat, fence);
    commit.reset = Some(Reset { start, clear_states, quiet: false });
    bench.commit(commit).await.fence
}

/// Contract 1.18: a reset begins the next life of the processor at its start; lanes and ends of the old life go.
pub async fn a_reset_begins_a_new_life(bench: &Bench) {
    let (place, ids, fence) = busy(bench).await;
    let before = bench.seat_view(place.seat).await.progress.incarnation;
    let after_reset = reset(bench, &place, fence, StartAt::Beginning, false).await;
    assert_eq!(after_reset, Fence { version: fence.version + 1, ..fence }, "the owner stays the owner");
    let snapshot = bench.snapshot(place.shard).await;
    let seat = snapshot.seat(place.seat.processor);
    assert_eq!((seat.floor, seat.view.progress.incarnation), (EventId(0), before + 1));
    assert!(seat.above.is_empty() && seat.lanes.is_empty() && seat.endings.is_empty(), "{seat:?}");
    let mut commit = bench.commit_of(place.seat, after_reset);
    commit.passed = passed(&ids);
    assert_eq!(bench.commit(commit).await.floor, ids[3]);
}

/// Contract 1.18: outbox and dead letters outlive a reset, and numbers of emits go on.
pub async fn a_reset_keeps_outbox_and_dead_letters(bench: &Bench) {
    let (place, _, fence) = busy(bench).await;
    let fence = reset(bench, &place, fence, StartAt::End, true).await;
    assert_eq!(rows!(bench, Query::Outbox(place.seat, 0, 10), Outbox).len(), 1);
    assert_eq!(rows!(bench, Query::Dead(place.seat, EventId(0), 10), Dead).len(), 1);
    let mut commit = bench.commit_of(place.seat, fence);
    commit.emits = vec![emit(place.stream.id, "b", "next")];
    assert_eq!(bench.commit(commit).await.emitted, 2);
    let outbox = rows!(bench, Query::Outbox(place.seat, 0, 10), Outbox);
    let lives: Vec<(u64, u32)> = outbox.iter().map(|row| (row.number, row.incarnation)).collect();
    assert_eq!(lives, [(1, 0), (2, 1)], "an emit is forwarded under the life that made it");
}

/// Contract 1.18: states are kept or cleared, as the reset says; cleared ones count anew.
pub async fn a_reset_keeps_or_clears_states(bench: &Bench) {
    for clear in [false, true] {
        let (place, _, fence) = busy(bench).await;
        let fence = reset(bench, &place, fence, StartAt::Beginning, clear).await;
        let states = rows!(bench, Query::States(place.seat, None, 10), States);
        assert_eq!(states.is_empty(), clear, "{states:?}");
        let mut commit = bench.commit_of(place.seat, fence);
        commit.states = vec![StateWrite { key: key("a"), value: Some(Bytes::from_static(b"new")) }];
        bench.commit(commit).await;
        let states = rows!(bench, Query::States(place.seat, None, 10), States);
        assert_eq!(states[0].1.version, if clear { 1 } else { 2 });
    }
}

/// Contract 1.18: a reset begins at the beginning, the end or an id, never below the trim.
pub async fn a_reset_begins_where_it_is_told(bench: &Bench) {
    let place = bench.place_with(StreamSettings { keep: Duration::ZERO, ..Bench::settings() }).await;
    let ids = bench.fill(&place, "a", 5).await;
    let mut fence = bench.pass(place.seat, &ids[..2]).await.fence;
    bench.trim(place.shard).await;
    let starts = [
        (StartAt::End, ids[4]),
        (StartAt::Id(ids[3]), ids[2]),
        (StartAt::Beginning, ids[1]),
        (StartAt::Id(EventId(1)), ids[1]),
    ];
    for (start, floor) in starts {
        fence = reset(bench, &place, fence, start, false).await;
        assert_eq!(bench.seat_view(place.seat).await.progress.window.floor(), floor, "{start:?}");
    }
}

/// Contract 1.18: a reset to a time begins at the first event of that time or a later one.
pub async fn a_reset_begins_at_a_time(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let mut fence = bench.seize(place.seat).await.progress.fence;
    for (start, floor) in starts_at_times(bench, &place).await {
        fence = reset(bench, &place, fence, start, false).await;
        assert_eq!(bench.seat_view(place.seat).await.progress.window.floor(), floor, "{start:?}");
    }
}

/// Contract 1.7: a reset does not bring applied requests back.
pub async fn a_reset_keeps_applied_requests(bench: &Bench) {
    let place = bench.place().await;
    let op = laneway_core::store::RequestOp::Resume { lane: None };
    let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
    bench.store().request(request).await.expect("a seat that exists");
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(1);
    commit.reset = Some(Reset { start: StartAt::Beginning, clear_states: true, quiet: false });
    bench.commit(commit).await;
    let view = bench.seat_view(place.seat).await;
    assert_eq!((view.progress.requests_applied, view.request_no), (1, 1));
    assert!(rows!(bench, Query::Requests(place.seat, 0, 10), Requests).is_empty());
}

/// Contract 1.18: replay never touches job records: the first end stays.
pub async fn a_replay_does_not_touch_job_ends(bench: &Bench) {
    let place = bench.place().await;
    let job = crate::bench::job_draft("a", "job", place.seat.processor);
    let id = bench.send_one(&place, job).await;
    bench.send_one(&place, draft("a", "next")).await;
    let end = |text: &str| crate::bench::job_end(id, crate::bench::inline(text));
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.jobs = vec![end("first")];
    let fence = bench.commit(commit).await.fence;
    let fence = reset(bench, &place, fence, StartAt::Beginning, false).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.jobs = vec![end("second")];
    bench.commit(commit).await;
    let ended = rows!(bench, Query::Ended(place.shard, EventId(0), 10), Ended).ends;
    assert_eq!((ended.len(), &ended[0].result), (1, &crate::bench::inline("first")));
}

/// Invariant A3: a job that has ended never ends again, also when its end could no longer be read before the replay.
pub async fn a_replay_does_not_end_a_forgotten_job_again(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let job = || crate::bench::job_draft("a", "job", place.seat.processor);
    let ids = [bench.send_one(&place, job()).await, bench.send_one(&place, job()).await];
    let ends = |text: &str| ids.map(|id| crate::bench::job_end(id, crate::bench::inline(text))).to_vec();
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    commit.jobs = ends("first");
    let fence = bench.commit(commit).await.fence;
    let forget = Jobs::Forget { shard: place.shard, number: JobNumber::Event(ids[1]) };
    bench.store().jobs(forget).await.expect("it has ended");
    bench.advance(Duration::from_secs(3_601));
    bench.trim(place.shard).await;
    let fence = reset(bench, &place, fence, StartAt::Beginning, false).await;
    for id in ids {
        assert_eq!(bench.job(place.shard, JobNumber::Event(id)).await, JobState::Gone, "before the replay");
    }
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    commit.jobs = ends("second");
    bench.commit(commit).await;
    for id in ids {
        assert_eq!(bench.job(place.shard, JobNumber::Event(id)).await, JobState::Gone, "after the replay");
    }
    assert!(rows!(bench, Query::Ended(place.shard, EventId(0), 10), Ended).ends.is_empty());
}
