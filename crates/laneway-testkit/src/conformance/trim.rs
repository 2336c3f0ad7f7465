//! Cases about `trim`: events go only when every registered processor has passed them (contract 3.7).

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{
    DeadLetter, Define, JobResult, Jobs, LaneChange, Promote, Query, Request, RequestOp, Stash, Trim,
};
use laneway_core::{
    Draft, EventId, JobNumber, Partition, Seat, Seq, Shard, StartAt, StoreError, StreamSettings, Terminal,
    Timestamp,
};

use super::expect::{expect_error, rows};
use crate::bench::{
    Bench, DraftExt, Place, chain_of, delayed, draft, ending, job_draft, job_end, keyless, lane, lane_change,
    parked, passed,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn at_once() -> StreamSettings {
    StreamSettings { keep: Duration::ZERO, ..Bench::settings() }
}

async fn first_left(bench: &Bench, place: &Place) -> u64 {
    let trimmed = bench.trim(place.shard).await;
    assert_eq!(bench.shard_info(place.shard).await.trimmed.0 + 1, trimmed.first.0);
    trimmed.first.0
}

/// Promise nothing lost: an event that a registered processor has not passed is never trimmed.
pub async fn unprocessed_events_are_never_trimmed(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let ids = bench.fill(&place, "a", 5).await;
    assert_eq!(first_left(bench, &place).await, 1);
    bench.pass(place.seat, &[ids[0], ids[1], ids[3], ids[4]]).await;
    let trimmed = bench.trim(place.shard).await;
    assert_eq!((trimmed.first, trimmed.events, trimmed.expired), (ids[2], 2, 0));
    assert_eq!(bench.events(place.shard).await.iter().map(|event| event.id).collect::<Vec<_>>(), ids[2..]);
    bench.pass(place.seat, &ids[2..3]).await;
    assert_eq!(first_left(bench, &place).await, 6);
    assert!(bench.events(place.shard).await.is_empty());
}

/// Contract 3.7: trim stops at the slowest registered processor, and goes on when it is removed.
pub async fn the_slowest_processor_holds_the_trim(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let slow = Seat { processor: bench.processor(place.stream.id, StartAt::Beginning).await, ..place.seat };
    let ids = bench.fill(&place, "a", 4).await;
    bench.pass(place.seat, &ids).await;
    assert_eq!(first_left(bench, &place).await, 1);
    bench.pass(slow, &ids[..2]).await;
    assert_eq!(first_left(bench, &place).await, 3);
    bench.define(Define::RemoveProcessor { processor: slow.processor }).await;
    assert_eq!(first_left(bench, &place).await, 5);
}

/// Contract 1.9: a sided event counts as passed for the floor, not for retention.
pub async fn a_sided_event_holds_the_trim(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let ids = bench.fill(&place, "a", 4).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    commit.lanes = vec![LaneChange { side: vec![ids[1]], ..lane_change(parked(lane("a"), ids[1])) }];
    let fence = bench.commit(commit).await.fence;
    assert_eq!(first_left(bench, &place).await, 2);
    bench.event(place.shard, ids[1]).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.lanes = vec![LaneChange { lane: lane("a"), record: None, side: Vec::new(), unside: vec![ids[1]] }];
    bench.commit(commit).await;
    assert_eq!(first_left(bench, &place).await, 5);
}

/// Design 3: processed events stay readable for `keep`, by the time they joined their lane.
pub async fn processed_events_stay_for_their_time(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(StreamSettings { keep: HOUR, ..Bench::settings() }).await;
    let old = bench.send_one(&place, draft("a", "old")).await;
    bench.advance(HOUR / 2);
    let young = bench.send_one(&place, draft("a", "young")).await;
    bench.pass(place.seat, &[old, young]).await;
    assert_eq!(first_left(bench, &place).await, 1);
    bench.advance(HOUR / 2 + Duration::from_secs(1));
    assert_eq!(first_left(bench, &place).await, 2);
    bench.advance(HOUR);
    assert_eq!(first_left(bench, &place).await, 3);
}

/// Contract 3.7: without any processor age alone decides, and what goes unprocessed is counted.
pub async fn without_a_processor_age_decides(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let settings = StreamSettings { keep: HOUR, ..Bench::settings() };
    let place = bench.place_with(settings).await;
    bench.define(Define::RemoveProcessor { processor: place.seat.processor }).await;
    bench.fill(&place, "a", 3).await;
    assert_eq!(first_left(bench, &place).await, 1);
    bench.advance(HOUR + Duration::from_secs(1));
    let trimmed = bench.trim(place.shard).await;
    assert_eq!((trimmed.first, trimmed.events, trimmed.expired), (EventId(4), 3, 3));
    assert_eq!(rows!(bench, Query::Counts(place.shard), Counts).expired, 3);
}

/// Contract 3.9: the tail of a lane outlives its events: the chain goes on over a trim.
pub async fn the_chain_goes_on_over_a_trim(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let ids = bench.fill(&place, "a", 2).await;
    bench.pass(place.seat, &ids).await;
    bench.trim(place.shard).await;
    let next = bench.send(&place, vec![draft("a", "next")]).await;
    assert_eq!(chain_of(&next[0]), (EventId(3), Some(EventId(2)), Some(Seq(3))));
}

/// Contract 2, trim: anybody may repeat it; the second time nothing goes.
pub async fn trimming_twice_is_harmless(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let ids = bench.fill(&place, "a", 3).await;
    bench.pass(place.seat, &ids[..2]).await;
    bench.trim(place.shard).await;
    let again = bench.trim(place.shard).await;
    assert_eq!((again.first, again.events, again.expired, again.rows), (ids[2], 0, 0, 0));
}

/// Contract 3.1: ends other than done are kept until the event is trimmed, and so are entries of the urgent list.
pub async fn endings_go_with_their_events(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let drafts = vec![Draft { priority: 2, ..draft("a", "1") }, Draft { priority: 2, ..draft("a", "2") }];
    bench.send(&place, drafts).await;
    bench.fill(&place, "a", 1).await;
    let ids = [EventId(1), EventId(2)];
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    commit.endings = ids.iter().map(|id| ending(*id, Terminal::Skipped)).collect();
    bench.commit(commit).await;
    assert_eq!(rows!(bench, Query::Endings(place.seat, EventId(0), 9), Endings).len(), 2);
    bench.trim(place.shard).await;
    assert!(rows!(bench, Query::Endings(place.seat, EventId(0), 9), Endings).is_empty());
    assert!(rows!(bench, Query::Urgent(place.shard, EventId(0), 9), Urgent).is_empty());
}

/// Contract 1.17: a dead letter holds a copy, so it outlives retention; it has a time of its own.
pub async fn a_dead_letter_outlives_its_event(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(StreamSettings { dead_keep: HOUR, ..at_once() }).await;
    let ids = bench.fill(&place, "a", 1).await;
    let event = bench.event(place.shard, ids[0]).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    let (cause, at) = (Bytes::from_static(b"why"), bench.now());
    commit.dead = vec![DeadLetter { event: event.clone(), cause, attempts: 1, at }];
    bench.commit(commit).await;
    assert_eq!(first_left(bench, &place).await, 2);
    bench.advance(HOUR - Duration::from_secs(1));
    bench.trim(place.shard).await;
    assert_eq!(rows!(bench, Query::Dead(place.seat, EventId(0), 9), Dead)[0].event, event);
    bench.advance(Duration::from_secs(2));
    assert_eq!(bench.trim(place.shard).await.rows, 1);
    assert!(rows!(bench, Query::Dead(place.seat, EventId(0), 9), Dead).is_empty());
}

/// Invariant A3: the end of a job outlives its event for as long as it is kept.
pub async fn a_job_end_outlives_its_event(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let id = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.jobs = vec![job_end(id, JobResult::Inline(Bytes::from_static(b"result")))];
    bench.commit(commit).await;
    assert_eq!(first_left(bench, &place).await, 2);
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert!(matches!(state, laneway_core::store::JobState::Ended { .. }), "{state:?}");
}

/// Contract 1.11: a job whose event was trimmed and whose end is forgotten is gone, not unknown.
pub async fn a_trimmed_job_is_gone(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let id = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    bench.pass(place.seat, &[id]).await;
    assert_eq!(first_left(bench, &place).await, 2);
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert_eq!(state, laneway_core::store::JobState::Gone);
}

/// Design 3: a processor registered at the beginning holds the trim from that moment.
pub async fn a_new_processor_holds_the_trim_at_once(bench: &Bench) {
    let place = bench.place_with(at_once()).await;
    let ids = bench.fill(&place, "a", 3).await;
    bench.pass(place.seat, &ids).await;
    bench.processor(place.stream.id, StartAt::Id(ids[1])).await;
    assert_eq!(first_left(bench, &place).await, 2);
}

/// Contract 2, trim: no such shard.
pub async fn trimming_an_unknown_shard_is_not_found(bench: &Bench) {
    let place = bench.place().await;
    let shard = Shard { partition: Partition(4), ..place.shard };
    expect_error!(bench.store().trim(Trim { shard }).await, StoreError::NotFound { .. });
}

/// Contract 2, trim: rows past their own time are counted, each once. Ends of jobs are not: nobody could read them any
/// more, and when their bytes go is the store's own matter.
pub async fn rows_that_went_are_counted_and_job_ends_are_not(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let settings = StreamSettings { keep: 10 * HOUR, dead_keep: HOUR, ..Bench::settings() };
    let place = bench.place_with(settings).await;
    let (shard, seat, store) = (place.shard, place.seat, bench.store());
    let job = |by| Draft { job: job_draft("a", "x", seat.processor).job, ..delayed("a", "x", by) };
    let jobs = (0..5).map(|_| job_draft("a", "x", seat.processor));
    bench
        .send(&place, jobs.chain([draft("a", "x").dedup("d", 1), keyless("x").dedup("d", 1)]).collect())
        .await;
    bench.send(&place, vec![job(Duration::ZERO), job(9 * HOUR)]).await;
    store.promote(Promote { shard, limit: 9 }).await.expect("a shard that exists");
    store.jobs(Jobs::CancelScheduled { shard, ticket: 2 }).await.expect("it waits");
    let op = RequestOp::Resume { lane: None };
    store.request(Request { seat, token: bench.token(), op }).await.expect("a seat that exists");
    for index in 0..3 {
        let (id, nonce) = (EventId(7), bench.nonce());
        let bytes = Bytes::from_static(b"never named");
        store.stash(Stash { shard, id, nonce, index, bytes }).await.expect("a small chunk");
    }
    let ids: Vec<EventId> = (1..=8).map(EventId).collect();
    let fence = bench.seize(seat).await.progress.fence;
    let mut commit = bench.commit_of(seat, fence);
    commit.passed = passed(&ids);
    commit.jobs = [1, 2, 3, 4, 5, 8].map(|id| job_end(EventId(id), JobResult::None)).to_vec();
    commit.requests_applied = Some(1);
    for event in bench.events(shard).await.into_iter().take(4) {
        commit.dead.push(DeadLetter { event, cause: Bytes::new(), attempts: 1, at: Timestamp(0) });
    }
    bench.commit(commit).await;
    let number = JobNumber::Event(EventId(1));
    store.jobs(Jobs::Take { shard, number, grace: Duration::from_secs(9) }).await.expect("it has ended");
    let went = bench.trim(shard).await;
    assert_eq!((went.events, went.rows), (0, 0), "nothing is past its time");
    bench.advance(2 * HOUR);
    // Dead letters 4, dedup ids 2, chunks 3, the shortened life 1, the tickets of a joined and of a cancelled job 2.
    let went = bench.trim(shard).await;
    assert_eq!((went.events, went.rows), (0, 4 + 2 + 3 + 1 + 2));
    bench.advance(30 * HOUR);
    // With the events go the ends of their jobs, uncounted; the token of the applied request is one row.
    let went = bench.trim(shard).await;
    assert_eq!((went.events, went.rows), (8, 1));
}
