//! Cases about commits that no owner may make: each is refused, names what is wrong and writes nothing.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Commit, DeadLetter, JobResult, LaneChange, StateWrite};
use laneway_core::{EventId, Fence, StreamSettings, Terminal, Timestamp, limits};

use super::expect::expect_refused;
use crate::bench::{
    Bench, Place, draft, emit, ending, inline, job_draft, job_end, key, keyless, lane, lane_change, parked,
    passed,
};

async fn owned(bench: &Bench, events: usize) -> (Place, Vec<EventId>, Fence) {
    let place = bench.place().await;
    let ids = if events == 0 { Vec::new() } else { bench.fill(&place, "a", events).await };
    let fence = bench.seize(place.seat).await.progress.fence;
    (place, ids, fence)
}

/// Refuses what `change` makes of an otherwise empty commit, and checks that nothing was written.
async fn refuse(bench: &Bench, place: &Place, fence: Fence, change: impl FnOnce(&mut Commit)) {
    let before = bench.snapshot(place.shard).await;
    let mut commit = bench.commit_of(place.seat, fence);
    change(&mut commit);
    expect_refused!(bench.store().commit(commit).await);
    assert_eq!(bench.snapshot(place.shard).await, before, "a refusal writes nothing");
}

/// Contract 1.9: no id above the head is passed.
pub async fn an_id_above_the_head_is_not_passed(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 2).await;
    refuse(bench, &place, fence, |commit| commit.passed = passed(&[ids[0], EventId(3)])).await;
    refuse(bench, &place, fence, |commit| commit.passed = passed(&[EventId(u64::from(u32::MAX))])).await;
}

/// Contract 1.9: no id is passed that lies more than the window above the floor.
pub async fn an_id_above_the_window_is_not_passed(bench: &Bench) {
    let (place, _, fence) = owned(bench, 0).await;
    let page = vec![keyless(""); limits::EVENTS_PER_APPEND_MAX];
    let calls = usize::try_from(limits::WINDOW_IDS).expect("small") / page.len() + 1;
    for _ in 0..calls {
        bench.send(&place, page.clone()).await;
    }
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[EventId(limits::WINDOW_IDS + 1)]);
    expect_refused!(bench.store().commit(commit).await);
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[EventId(1), EventId(limits::WINDOW_IDS)]);
    let committed = bench.commit(commit).await;
    assert_eq!(committed.floor, EventId(1));
    let mut commit = bench.commit_of(place.seat, committed.fence);
    commit.passed = passed(&[EventId(limits::WINDOW_IDS + 1)]);
    assert_eq!(bench.commit(commit).await.floor, EventId(1), "the window moved with the floor");
}

/// Contract 3.1: an ending belongs to an event that is passed; done is never written.
pub async fn endings_need_a_passed_event(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 2).await;
    refuse(bench, &place, fence, |commit| {
        commit.passed = passed(&ids[..1]);
        commit.endings = vec![ending(ids[1], Terminal::Failed)];
    })
    .await;
    refuse(bench, &place, fence, |commit| {
        commit.passed = passed(&ids[..1]);
        commit.endings = vec![ending(ids[0], Terminal::Done)];
    })
    .await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids[..1]);
    let fence = bench.commit(commit).await.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.endings = vec![ending(ids[0], Terminal::Failed)];
    bench.commit(commit).await;
}

/// Contract 1.9: only passed ids join a siding, and only sided ids leave it.
pub async fn sidings_are_checked(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 3).await;
    refuse(bench, &place, fence, |commit| {
        commit.lanes = vec![LaneChange { side: vec![ids[0]], ..lane_change(parked(lane("a"), ids[0])) }];
    })
    .await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids[..2]);
    commit.lanes = vec![LaneChange { side: ids[..1].to_vec(), ..lane_change(parked(lane("a"), ids[0])) }];
    let fence = bench.commit(commit).await.fence;
    let leave =
        |name: &str, id: EventId| LaneChange { unside: vec![id], ..lane_change(parked(lane(name), ids[0])) };
    for wrong in [leave("a", ids[1]), leave("a", EventId(99)), leave("b", ids[0])] {
        refuse(bench, &place, fence, |commit| commit.lanes = vec![wrong]).await;
    }
}

/// Contract 1.9: a lane becomes plain only when its siding is empty.
pub async fn a_lane_with_a_siding_keeps_its_record(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 3).await;
    let plain = |side: &[EventId], unside: &[EventId]| LaneChange {
        lane: lane("a"),
        record: None,
        side: side.to_vec(),
        unside: unside.to_vec(),
    };
    refuse(bench, &place, fence, |commit| {
        commit.passed = passed(&ids[..1]);
        commit.lanes = vec![plain(&ids[..1], &[])];
    })
    .await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids[..2]);
    commit.lanes = vec![LaneChange { side: ids[..2].to_vec(), ..lane_change(parked(lane("a"), ids[0])) }];
    let fence = bench.commit(commit).await.fence;
    refuse(bench, &place, fence, |commit| commit.lanes = vec![plain(&[], &ids[..1])]).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.lanes = vec![plain(&[], &ids[..2])];
    bench.commit(commit).await;
}

/// Contract 1.1: a commit holds a bounded number of emits; the bound itself is fine.
pub async fn the_number_of_emits_is_bounded(bench: &Bench) {
    let (place, _, fence) = owned(bench, 0).await;
    let many = |count: usize| vec![emit(place.stream.id, "b", ""); count];
    refuse(bench, &place, fence, |commit| commit.emits = many(limits::EMITS_PER_COMMIT_MAX + 1)).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.emits = many(limits::EMITS_PER_COMMIT_MAX);
    assert_eq!(bench.commit(commit).await.emitted, limits::EMITS_PER_COMMIT_MAX as u64);
}

/// Contract 1.1: emits are checked before the commit, or the outbox could hold what no shard accepts.
pub async fn an_emit_that_no_shard_accepts_is_refused(bench: &Bench) {
    let (place, _, fence) = owned(bench, 0).await;
    let mut big = emit(place.stream.id, "b", "");
    big.draft.data = Bytes::from(vec![b'x'; limits::DATA_BYTES_MAX + 1]);
    refuse(bench, &place, fence, |commit| commit.emits = vec![big]).await;
}

/// Invariant C1: values, results and causes have a largest size, which itself is fine.
pub async fn sizes_in_a_commit_are_bounded(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 1).await;
    let job = bench.send_one(&place, job_draft("j", "job", place.seat.processor)).await;
    let bytes = |count: usize| Bytes::from(vec![b'x'; count]);
    let state = |count: usize| vec![StateWrite { key: key("a"), value: Some(bytes(count)) }];
    refuse(bench, &place, fence, |commit| commit.states = state(limits::STATE_STORED_BYTES_MAX + 1)).await;
    refuse(bench, &place, fence, |commit| {
        commit.passed = passed(&[job]);
        commit.jobs = vec![job_end(job, JobResult::Inline(bytes(limits::RESULT_INLINE_BYTES_MAX + 1)))];
    })
    .await;
    refuse(bench, &place, fence, |commit| {
        commit.passed = passed(&ids);
        commit.endings = vec![ending(ids[0], Terminal::Failed)];
        commit.endings[0].reason = bytes(limits::CAUSE_BYTES_MAX + 1);
    })
    .await;
    let event = bench.event(place.shard, ids[0]).await;
    refuse(bench, &place, fence, |commit| {
        commit.passed = passed(&ids);
        let cause = bytes(limits::CAUSE_BYTES_MAX + 1);
        commit.dead = vec![DeadLetter { event, cause, attempts: 1, at: Timestamp(0) }];
    })
    .await;
    refuse(bench, &place, fence, |commit| {
        let values = limits::COMMIT_BYTES_MAX / limits::VALUE_BYTES_MAX + 1;
        let large = (0..values).map(|index| StateWrite {
            key: key(&format!("lane-{index}")),
            value: Some(bytes(limits::VALUE_BYTES_MAX)),
        });
        commit.states = large.collect();
    })
    .await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[job]);
    commit.states = state(limits::STATE_STORED_BYTES_MAX);
    commit.jobs = vec![job_end(job, JobResult::Inline(bytes(limits::RESULT_INLINE_BYTES_MAX)))];
    bench.commit(commit).await;
}

/// Contract 1.7: applied requests are counted up, and never above those that were filed.
pub async fn applied_requests_only_grow(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 1).await;
    for _ in 0..3 {
        let op = laneway_core::store::RequestOp::Cancel { id: ids[0] };
        let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
        bench.store().request(request).await.expect("a seat that exists");
    }
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(2);
    let fence = bench.commit(commit).await.fence;
    for wrong in [1, 4] {
        refuse(bench, &place, fence, |commit| commit.requests_applied = Some(wrong)).await;
    }
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(2);
    bench.commit(commit).await;
}

/// Contract 1.7: an answer is for a request that waits, given once, and short.
pub async fn answers_are_for_requests_that_wait(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 1).await;
    for _ in 0..2 {
        let op = laneway_core::store::RequestOp::Cancel { id: ids[0] };
        let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
        bench.store().request(request).await.expect("a seat that exists");
    }
    let answered = |number: u64, length: usize| laneway_core::store::Answered {
        number,
        answer: Bytes::from(vec![b'a'; length]),
    };
    let mut commit = bench.commit_of(place.seat, fence);
    commit.answers = vec![answered(2, limits::ANSWER_BYTES_MAX)];
    let fence = bench.commit(commit).await.fence;
    for wrong in [vec![answered(0, 0)], vec![answered(2, 0)], vec![answered(3, 0)]] {
        refuse(bench, &place, fence, |commit| commit.answers = wrong.clone()).await;
    }
    refuse(bench, &place, fence, |commit| commit.answers = vec![answered(1, 0), answered(1, 0)]).await;
    let long = answered(1, limits::ANSWER_BYTES_MAX + 1);
    refuse(bench, &place, fence, |commit| commit.answers = vec![long.clone()]).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.answers = vec![answered(1, 0)];
    bench.commit(commit).await;
}

/// Contract 1.1: forwarded emits are counted up, and never above those that were given a number.
pub async fn forwarded_emits_only_grow(bench: &Bench) {
    let (place, _, fence) = owned(bench, 0).await;
    refuse(bench, &place, fence, |commit| commit.forwarded = Some(1)).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.emits = vec![emit(place.stream.id, "b", "1"), emit(place.stream.id, "b", "2")];
    let fence = bench.commit(commit).await.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.forwarded = Some(1);
    let fence = bench.commit(commit).await.fence;
    for wrong in [0, 3] {
        refuse(bench, &place, fence, |commit| commit.forwarded = Some(wrong)).await;
    }
}

/// Contract 1.11: an end belongs to a job of this responder whose event is passed.
pub async fn a_job_end_needs_a_job_of_its_own(bench: &Bench) {
    let (place, _, fence) = owned(bench, 0).await;
    let other = bench.processor(place.stream.id, laneway_core::StartAt::Beginning).await;
    let plain = bench.send_one(&place, draft("a", "plain")).await;
    let foreign = bench.send_one(&place, job_draft("a", "foreign", other)).await;
    let own = bench.send_one(&place, job_draft("a", "own", place.seat.processor)).await;
    for id in [plain, foreign, EventId(99)] {
        refuse(bench, &place, fence, |commit| {
            commit.passed = passed(&[plain, foreign, own]);
            commit.jobs = vec![job_end(id, inline("x"))];
        })
        .await;
    }
    refuse(bench, &place, fence, |commit| {
        commit.passed = passed(&[plain, foreign]);
        commit.jobs = vec![job_end(own, inline("not passed"))];
    })
    .await;
}

/// Contract 1.11: the end of a job belongs to an event that is there: what is trimmed cannot end, whether or not the store
/// still has its bytes.
pub async fn a_job_end_needs_an_event_that_is_there(bench: &Bench) {
    let place = bench.place_with(StreamSettings { keep: Duration::ZERO, ..Bench::settings() }).await;
    let id = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.jobs = vec![job_end(id, JobResult::None)];
    let fence = bench.commit(commit).await.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.jobs = vec![job_end(id, JobResult::None)];
    let fence = bench.commit(commit).await.fence;
    assert_eq!(bench.trim(place.shard).await.events, 1);
    let mut commit = bench.commit_of(place.seat, fence);
    commit.jobs = vec![job_end(id, JobResult::None)];
    expect_refused!(bench.store().commit(commit).await);
}
