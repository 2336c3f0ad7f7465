//! Cases about `jobs`: the submitter's view (contract 1.11 and 1.12).

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{JobEnd, JobResult, JobState, JobView, Jobs, LaneChange, Promote, Receipt};
use laneway_core::{
    ConflictReason, Draft, EventId, JobDraft, JobNumber, Partition, Shard, StoreError, Terminal, Timestamp,
};

use super::expect::{expect_conflict, expect_error};
use crate::bench::{
    Bench, Place, delayed, draft, inline, job_draft, job_end, key, keyless, lane, lane_change, parked, passed,
};

const HOUR: Duration = Duration::from_secs(3_600);

async fn submit(bench: &Bench, place: &Place) -> EventId {
    bench.send_one(place, job_draft("a", "job", place.seat.processor)).await
}

async fn end(bench: &Bench, place: &Place, job: JobEnd) {
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[job.id]);
    commit.jobs = vec![job];
    bench.commit(commit).await;
}

async fn ended(bench: &Bench) -> (Place, EventId) {
    let place = bench.place().await;
    let id = submit(bench, &place).await;
    end(bench, &place, job_end(id, inline("result"))).await;
    (place, id)
}

async fn call(bench: &Bench, jobs: Jobs) -> JobState {
    let mut views: Vec<JobView> = bench.store().jobs(jobs).await.expect("a job that may be asked for");
    assert_eq!(views.len(), 1);
    views.remove(0).state
}

/// Contract 1.11: a job that has joined its lane is pending and needs no record until it ends.
pub async fn a_job_in_its_lane_is_pending(bench: &Bench) {
    let place = bench.place().await;
    let id = submit(bench, &place).await;
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert_eq!(state, JobState::Pending { id, key: Some(key("a")), lane: None });
    let job = JobDraft { responder: place.seat.processor, keep: HOUR };
    let bare = bench.send_one(&place, Draft { job: Some(job), ..keyless("x") }).await;
    let state = bench.job(place.shard, JobNumber::Event(bare)).await;
    assert_eq!(state, JobState::Pending { id: bare, key: None, lane: None });
}

/// Contract 3.2: a job whose lane is held up by it shows why.
pub async fn a_pending_job_shows_its_lane(bench: &Bench) {
    let place = bench.place().await;
    let (head, next) = (submit(bench, &place).await, submit(bench, &place).await);
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    let record = parked(lane("a"), head);
    commit.lanes = vec![lane_change(record.clone())];
    bench.commit(commit).await;
    let state = bench.job(place.shard, JobNumber::Event(head)).await;
    assert_eq!(state, JobState::Pending { id: head, key: Some(key("a")), lane: Some(record) });
    let state = bench.job(place.shard, JobNumber::Event(next)).await;
    assert_eq!(state, JobState::Pending { id: next, key: Some(key("a")), lane: None });
}

/// Contract 1.9: a job in a siding is pending, although the floor is beyond it, and ends from there.
pub async fn a_sided_job_is_pending(bench: &Bench) {
    let place = bench.place().await;
    let id = submit(bench, &place).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.lanes = vec![LaneChange { side: vec![id], ..lane_change(parked(lane("a"), id)) }];
    let fence = bench.commit(commit).await.fence;
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert!(matches!(state, JobState::Pending { .. }), "{state:?}");
    let mut commit = bench.commit_of(place.seat, fence);
    commit.lanes = vec![LaneChange { lane: lane("a"), record: None, side: Vec::new(), unside: vec![id] }];
    commit.jobs = vec![job_end(id, inline("late"))];
    bench.commit(commit).await;
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert!(matches!(state, JobState::Ended { .. }), "{state:?}");
}

/// Contract 1.11: an ended job shows everything its commit said of it, with the store's times.
pub async fn an_ended_job_shows_its_end(bench: &Bench) {
    let place = bench.place().await;
    let id = submit(bench, &place).await;
    let written = JobEnd {
        end: Terminal::Failed,
        error: Bytes::from_static(b"broken pipe"),
        attempts: 3,
        started_at: Some(Timestamp(77)),
        finished_at: Timestamp(5),
        keep: 2 * HOUR,
        ..job_end(id, JobResult::None)
    };
    end(bench, &place, written.clone()).await;
    let JobState::Ended { end, result, keep_until } = bench.job(place.shard, JobNumber::Event(id)).await
    else {
        panic!("the job has ended");
    };
    assert_ne!(end.finished_at, Timestamp(5), "the store says when");
    assert_eq!(keep_until, end.finished_at.after(2 * HOUR));
    assert_eq!((JobEnd { finished_at: Timestamp(5), ..*end }, result), (written, None));
    if bench.clock_moves() {
        assert_eq!(keep_until, bench.now().after(2 * HOUR));
    }
}

/// Contract 1.11: results are added only when they are asked for.
pub async fn results_come_when_asked_for(bench: &Bench) {
    let (place, id) = ended(bench).await;
    for (results, expected) in [(true, Some(Bytes::from_static(b"result"))), (false, None)] {
        let get = Jobs::Get { shard: place.shard, numbers: vec![JobNumber::Event(id)], results };
        let JobState::Ended { result, .. } = call(bench, get).await else { panic!("the job has ended") };
        assert_eq!(result, expected);
    }
}

/// Invariant A3: the first end of a job stays.
pub async fn the_first_end_of_a_job_stays(bench: &Bench) {
    let place = bench.place().await;
    let id = submit(bench, &place).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.lanes = vec![LaneChange { side: vec![id], ..lane_change(parked(lane("a"), id)) }];
    commit.jobs = vec![job_end(id, inline("first"))];
    let fence = bench.commit(commit).await.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.jobs = vec![JobEnd { end: Terminal::Failed, ..job_end(id, inline("second")) }];
    bench.commit(commit).await;
    let JobState::Ended { end, result, .. } = bench.job(place.shard, JobNumber::Event(id)).await else {
        panic!("the job has ended");
    };
    assert_eq!((end.end, result), (Terminal::Done, Some(Bytes::from_static(b"first"))));
}

/// Invariant A3: a refused commit ends no job.
pub async fn no_result_without_its_commit(bench: &Bench) {
    let place = bench.place().await;
    let id = submit(bench, &place).await;
    let stale = bench.seize(place.seat).await.progress.fence;
    bench.seize(place.seat).await;
    let mut commit = bench.commit_of(place.seat, stale);
    commit.passed = passed(&[id]);
    commit.jobs = vec![job_end(id, inline("late"))];
    expect_error!(bench.store().commit(commit).await, StoreError::Fenced { .. });
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert!(matches!(state, JobState::Pending { .. }), "{state:?}");
}

/// Contract 1.11: above the counters, and events that are no jobs, are unknown: there never was such a job.
pub async fn a_job_that_never_was_is_unknown(bench: &Bench) {
    let place = bench.place().await;
    let plain = bench.send_one(&place, draft("a", "plain")).await;
    for number in [JobNumber::Event(EventId(plain.0 + 1)), JobNumber::Schedule(1), JobNumber::Event(plain)] {
        assert_eq!(bench.job(place.shard, number).await, JobState::Unknown, "{number:?}");
    }
}

/// Contract 1.11: several jobs are answered in the order in which they were asked for.
pub async fn jobs_are_answered_in_order(bench: &Bench) {
    let (place, first) = ended(bench).await;
    let second = submit(bench, &place).await;
    let numbers = vec![JobNumber::Event(second), JobNumber::Event(EventId(99)), JobNumber::Event(first)];
    let get = Jobs::Get { shard: place.shard, numbers: numbers.clone(), results: false };
    let views = bench.store().jobs(get).await.expect("a shard that exists");
    assert_eq!(views.iter().map(|view| view.number).collect::<Vec<_>>(), numbers);
    assert!(matches!(views[0].state, JobState::Pending { .. }));
    assert!(matches!(views[1].state, JobState::Unknown));
    assert!(matches!(views[2].state, JobState::Ended { .. }));
}

/// Contract 1.11: an end is readable for as long as it is kept, and then gone, which is not the same as unknown.
pub async fn an_end_is_gone_after_its_time(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let (place, id) = ended(bench).await;
    bench.advance(HOUR - Duration::from_secs(1));
    bench.trim(place.shard).await;
    assert!(matches!(bench.job(place.shard, JobNumber::Event(id)).await, JobState::Ended { .. }));
    bench.advance(Duration::from_secs(2));
    assert_eq!(bench.job(place.shard, JobNumber::Event(id)).await, JobState::Gone);
    bench.trim(place.shard).await;
    assert_eq!(bench.job(place.shard, JobNumber::Event(id)).await, JobState::Gone);
}

/// Contract 1.12: take gives the result and shortens its life to the grace; repeating does not lengthen it.
pub async fn take_shortens_the_life_of_a_result(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let (place, id) = ended(bench).await;
    let grace = Duration::from_secs(60);
    let take = Jobs::Take { shard: place.shard, number: JobNumber::Event(id), grace };
    let until = bench.now().after(grace);
    for _ in 0..2 {
        let JobState::Ended { result, keep_until, .. } = call(bench, take.clone()).await else {
            panic!("the job has ended");
        };
        assert_eq!((result, keep_until), (Some(Bytes::from_static(b"result")), until));
        bench.advance(Duration::from_secs(40));
    }
    assert_eq!(call(bench, take).await, JobState::Gone);
    assert_eq!(bench.job(place.shard, JobNumber::Event(id)).await, JobState::Gone);
}

/// Contract 1.12: take never lengthens the life of a result.
pub async fn take_never_lengthens_a_life(bench: &Bench) {
    let (place, id) = ended(bench).await;
    let JobState::Ended { keep_until: before, .. } = bench.job(place.shard, JobNumber::Event(id)).await
    else {
        panic!("the job has ended");
    };
    let take = Jobs::Take { shard: place.shard, number: JobNumber::Event(id), grace: 100 * HOUR };
    let JobState::Ended { keep_until, .. } = call(bench, take).await else { panic!("the job has ended") };
    assert_eq!(keep_until, before);
}

/// Contract 1.12: an unfinished job can be neither taken nor forgotten.
pub async fn an_unfinished_job_is_neither_taken_nor_forgotten(bench: &Bench) {
    let place = bench.place().await;
    let id = submit(bench, &place).await;
    let (shard, number) = (place.shard, JobNumber::Event(id));
    expect_conflict!(
        bench.store().jobs(Jobs::Take { shard, number, grace: HOUR }).await,
        ConflictReason::Unfinished
    );
    expect_conflict!(bench.store().jobs(Jobs::Forget { shard, number }).await, ConflictReason::Unfinished);
    let scheduled =
        Draft { delay: delayed("a", "x", HOUR).delay, ..job_draft("a", "x", place.seat.processor) };
    bench.send(&place, vec![scheduled]).await;
    let number = JobNumber::Schedule(1);
    expect_conflict!(bench.store().jobs(Jobs::Forget { shard, number }).await, ConflictReason::Unfinished);
    assert!(matches!(bench.job(shard, JobNumber::Event(id)).await, JobState::Pending { .. }));
}

/// Contract 1.12: forgetting is at once, and fine for what is gone already.
pub async fn a_forgotten_job_is_gone(bench: &Bench) {
    let (place, id) = ended(bench).await;
    let forget = Jobs::Forget { shard: place.shard, number: JobNumber::Event(id) };
    for _ in 0..2 {
        bench.store().jobs(forget.clone()).await.expect("forgetting twice is fine");
        assert_eq!(bench.job(place.shard, JobNumber::Event(id)).await, JobState::Gone);
    }
    let take = Jobs::Take { shard: place.shard, number: JobNumber::Event(id), grace: HOUR };
    assert_eq!(call(bench, take).await, JobState::Gone);
    assert!(bench.snapshot(place.shard).await.ended.is_empty(), "a forgotten job is not listed");
}

/// Contract 1.12: taking a job that never was says so.
pub async fn taking_an_unknown_job_says_so(bench: &Bench) {
    let place = bench.place().await;
    let number = JobNumber::Event(EventId(5));
    let take = Jobs::Take { shard: place.shard, number, grace: HOUR };
    assert_eq!(call(bench, take).await, JobState::Unknown);
}

async fn schedule(bench: &Bench, place: &Place, by: Duration) -> u64 {
    let given = Draft { delay: delayed("a", "x", by).delay, ..job_draft("a", "x", place.seat.processor) };
    let receipts = bench.send(place, vec![given]).await;
    let [Receipt::Scheduled { ticket, .. }] = receipts[..] else { panic!("scheduled: {receipts:?}") };
    ticket
}

/// Contract 2, jobs: cancelling a scheduled job removes the draft and ends the job in one step; a repeat is fine.
pub async fn a_scheduled_job_can_be_cancelled(bench: &Bench) {
    let place = bench.place().await;
    let ticket = schedule(bench, &place, Duration::ZERO).await;
    let cancel = Jobs::CancelScheduled { shard: place.shard, ticket };
    for _ in 0..2 {
        bench.store().jobs(cancel.clone()).await.expect("cancelling twice is fine");
        let state = bench.job(place.shard, JobNumber::Schedule(ticket)).await;
        assert!(matches!(&state, JobState::Ended { end, .. } if end.end == Terminal::Cancelled), "{state:?}");
    }
    let promoted = bench.store().promote(Promote { shard: place.shard, limit: 10 }).await.expect("a shard");
    assert_eq!((promoted.moved, bench.events(place.shard).await.len()), (0, 0));
}

/// Contract 2, jobs: an event that joined its lane is cancelled by request, not here.
pub async fn a_joined_job_is_not_cancelled_in_the_schedule(bench: &Bench) {
    let place = bench.place().await;
    let ticket = schedule(bench, &place, Duration::ZERO).await;
    bench.store().promote(Promote { shard: place.shard, limit: 10 }).await.expect("a shard that exists");
    let cancel = Jobs::CancelScheduled { shard: place.shard, ticket };
    expect_conflict!(bench.store().jobs(cancel).await, ConflictReason::AlreadyDue);
    let state = bench.job(place.shard, JobNumber::Schedule(ticket)).await;
    assert!(matches!(state, JobState::Pending { .. }), "{state:?}");
}

/// Contract 1.11: a cancelled timer that is no job simply goes; an unknown ticket is told as such.
pub async fn a_plain_timer_can_be_cancelled(bench: &Bench) {
    let place = bench.place().await;
    bench.send(&place, vec![delayed("a", "x", HOUR)]).await;
    let cancel = |ticket: u64| Jobs::CancelScheduled { shard: place.shard, ticket };
    bench.store().jobs(cancel(1)).await.expect("it is scheduled");
    assert!(bench.snapshot(place.shard).await.scheduled.is_empty());
    assert_eq!(call(bench, cancel(9)).await, JobState::Unknown);
}

/// Contract 1.11: a scheduled job is found by its ticket after it has joined its lane and after it has ended.
pub async fn a_scheduled_job_is_found_by_its_ticket(bench: &Bench) {
    let place = bench.place().await;
    let ticket = schedule(bench, &place, Duration::ZERO).await;
    let number = JobNumber::Schedule(ticket);
    assert!(matches!(bench.job(place.shard, number).await, JobState::Scheduled { .. }));
    bench.store().promote(Promote { shard: place.shard, limit: 10 }).await.expect("a shard that exists");
    let JobState::Pending { id, .. } = bench.job(place.shard, number).await else { panic!("it is pending") };
    end(bench, &place, job_end(id, inline("result"))).await;
    let JobState::Ended { result, .. } = bench.job(place.shard, number).await else { panic!("it has ended") };
    assert_eq!(result, Some(Bytes::from_static(b"result")));
    bench.store().jobs(Jobs::Forget { shard: place.shard, number }).await.expect("it has ended");
    assert_eq!(bench.job(place.shard, number).await, JobState::Gone);
}

/// Contract 2, jobs: no such shard.
pub async fn jobs_of_an_unknown_shard_are_not_found(bench: &Bench) {
    let place = bench.place().await;
    let shard = Shard { partition: Partition(7), ..place.shard };
    let get = Jobs::Get { shard, numbers: vec![JobNumber::Event(EventId(1))], results: false };
    expect_error!(bench.store().jobs(get).await, StoreError::NotFound { .. });
}
