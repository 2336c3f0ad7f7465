//! Cases about `promote`: delayed drafts join the end of their lanes when they are due (contract 1.10).

use std::time::Duration;

use laneway_core::store::{JobState, Promote, Promoted, Query, Receipt};
use laneway_core::{
    Delay, DelayMode, Draft, Due, EventId, JobNumber, Mode, Seq, StartAfter, StoreError, StreamSettings,
    Terminal, Timestamp,
};

use super::expect::{expect_error, rows};
use crate::bench::{Bench, DraftExt, Place, chain_of, delayed, draft, job_draft};

const MINUTE: Duration = Duration::from_secs(60);

async fn promote(bench: &Bench, place: &Place, limit: usize) -> Promoted {
    bench.store().promote(Promote { shard: place.shard, limit }).await.expect("a shard that exists")
}

fn at(lane: &str, data: &str, time: Timestamp) -> Draft {
    Draft { delay: Some(Delay { until: StartAfter::At(time), mode: DelayMode::Join }), ..draft(lane, data) }
}

async fn texts(bench: &Bench, place: &Place) -> Vec<String> {
    let events = bench.events(place.shard).await;
    events.iter().map(|event| String::from_utf8_lossy(&event.data).into_owned()).collect()
}

/// Contract 1.10: a delayed draft has a ticket and no id; it is not in the log and its lane has no tail.
pub async fn a_delayed_draft_is_not_in_the_log(bench: &Bench) {
    let place = bench.place().await;
    let receipts = bench.send(&place, vec![delayed("a", "1", MINUTE), delayed("a", "2", MINUTE)]).await;
    let tickets: Vec<_> = receipts
        .iter()
        .map(|receipt| match receipt {
            Receipt::Scheduled { ticket, due: Due::Steady(_), job: None, .. } => *ticket,
            other => panic!("a delay is scheduled by steady time: {other:?}"),
        })
        .collect();
    assert_eq!(tickets, [1, 2]);
    let snapshot = bench.snapshot(place.shard).await;
    assert!(snapshot.entries.is_empty() && snapshot.tails.is_empty());
    assert_eq!((snapshot.info.head, snapshot.info.scheduled, snapshot.counts.scheduled), (EventId(0), 2, 2));
    let next = bench.send(&place, vec![draft("a", "now")]).await;
    assert_eq!(chain_of(&next[0]), (EventId(1), None, Some(Seq(1))));
}

/// Contract 1.10: `run_at` follows the wall clock, and the receipt says when.
pub async fn a_date_is_kept_as_a_date(bench: &Bench) {
    let place = bench.place().await;
    let date = Timestamp(1_900_000_000_000_000);
    let receipts = bench.send(&place, vec![at("a", "1", date)]).await;
    let [Receipt::Scheduled { due, due_at, .. }] = receipts[..] else { panic!("scheduled: {receipts:?}") };
    assert_eq!((due, due_at), (Due::Calendar(date), date));
}

/// Contract 1.10: the receipt of a delay shows the date for people.
pub async fn a_delay_shows_its_date(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let receipts = bench.send(&place, vec![delayed("a", "1", MINUTE)]).await;
    let [Receipt::Scheduled { due_at, .. }] = receipts[..] else { panic!("scheduled: {receipts:?}") };
    assert_eq!(due_at, bench.now().after(MINUTE));
    let row = bench.snapshot(place.shard).await.scheduled.remove(0);
    assert_eq!((row.ticket, row.accepted_at), (1, bench.now()));
    assert_eq!(row.draft, delayed("a", "1", MINUTE));
}

/// Contract 1.10: nothing moves before it is due; then it joins the end of its lane.
pub async fn a_due_draft_joins_the_end_of_its_lane(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    bench.send(&place, vec![delayed("a", "late", MINUTE)]).await;
    bench.send_one(&place, draft("a", "early")).await;
    bench.advance(MINUTE - Duration::from_micros(1));
    assert_eq!(promote(bench, &place, 10).await, Promoted { moved: 0, next: Some(Duration::from_micros(1)) });
    bench.advance(Duration::from_micros(1));
    assert_eq!(promote(bench, &place, 10).await, Promoted { moved: 1, next: None });
    let event = bench.event(place.shard, EventId(2)).await;
    assert_eq!((event.prev, event.seq, event.time), (Some(EventId(1)), Some(Seq(2)), bench.now()));
    assert_eq!(texts(bench, &place).await, ["early", "late"]);
    assert!(bench.snapshot(place.shard).await.scheduled.is_empty());
}

/// Contract 1.10: promote is idempotent and open to anybody; what was moved is not moved again.
pub async fn promoting_twice_moves_nothing_twice(bench: &Bench) {
    let place = bench.place().await;
    bench.send(&place, vec![delayed("a", "1", Duration::ZERO)]).await;
    assert!(bench.events(place.shard).await.is_empty(), "also a zero delay goes through the schedule");
    assert_eq!(promote(bench, &place, 10).await, Promoted { moved: 1, next: None });
    assert_eq!(promote(bench, &place, 10).await, Promoted { moved: 0, next: None });
    assert_eq!(bench.events(place.shard).await.len(), 1);
}

/// Contract 1.10: drafts join in the order in which they became due, then by ticket.
pub async fn drafts_join_in_order_of_due_time(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let date = bench.now().after(2 * MINUTE);
    let drafts = vec![
        delayed("a", "third", 3 * MINUTE),
        delayed("a", "first", MINUTE),
        delayed("b", "first too", MINUTE),
        at("a", "second by date", date),
    ];
    bench.send(&place, drafts).await;
    bench.advance(5 * MINUTE);
    assert_eq!(promote(bench, &place, 10).await.moved, 4);
    assert_eq!(texts(bench, &place).await, ["first", "first too", "second by date", "third"]);
}

/// Contract 2, promote: a limit bounds the step, and zero until the next says that more are due now.
pub async fn promote_moves_no_more_than_its_limit(bench: &Bench) {
    let place = bench.place().await;
    bench.send(&place, (0..5).map(|index| delayed("a", &index.to_string(), Duration::ZERO)).collect()).await;
    assert_eq!(promote(bench, &place, 2).await, Promoted { moved: 2, next: Some(Duration::ZERO) });
    assert_eq!(promote(bench, &place, 2).await, Promoted { moved: 2, next: Some(Duration::ZERO) });
    assert_eq!(promote(bench, &place, 2).await, Promoted { moved: 1, next: None });
    assert_eq!(texts(bench, &place).await, ["0", "1", "2", "3", "4"]);
}

/// Design 3, time: a delay keeps its length when the wall clock jumps; a date follows the wall clock.
pub async fn delays_ignore_the_wall_clock_and_dates_follow_it(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let start = bench.now();
    bench.send(&place, vec![delayed("a", "delay", MINUTE), at("a", "date", start.after(MINUTE))]).await;
    // Less than a minute is not a jump.
    bench.jump_to(start.after(MINUTE));
    assert_eq!(promote(bench, &place, 10).await, Promoted { moved: 1, next: Some(MINUTE) });
    assert_eq!(texts(bench, &place).await, ["date"]);
    bench.jump_to(start.before(60 * MINUTE));
    bench.advance(MINUTE);
    assert_eq!(promote(bench, &place, 10).await.moved, 1);
    assert_eq!(texts(bench, &place).await, ["date", "delay"]);
}

/// Contract 1.10: a date in the past is moved at once.
pub async fn a_date_in_the_past_is_due_now(bench: &Bench) {
    let place = bench.place().await;
    let receipts = bench.send(&place, vec![at("a", "old", Timestamp(1))]).await;
    assert!(matches!(receipts[..], [Receipt::Scheduled { .. }]), "{receipts:?}");
    assert_eq!(promote(bench, &place, 1).await.moved, 1);
}

/// Contract 1.14: the generation of a delayed draft is judged when it joins, not when it is accepted.
pub async fn the_generation_is_judged_at_promotion(bench: &Bench) {
    let place = bench.place_with(StreamSettings { mode: Mode::Latest, ..Bench::settings() }).await;
    let later = |generation: u64| {
        let job = job_draft("a", "later", place.seat.processor);
        Draft { delay: delayed("a", "x", Duration::ZERO).delay, ..job }.generation(0, Some(generation))
    };
    bench.send(&place, vec![later(3), later(9)]).await;
    bench.send_one(&place, draft("a", "now").generation(0, Some(5))).await;
    assert_eq!(promote(bench, &place, 10).await.moved, 2, "both left the schedule");
    let tail = bench.tail(place.shard, &crate::bench::key("a")).await.expect("there");
    assert_eq!((tail.id, tail.generation), (EventId(2), Some(9)), "only the newer one joined");
    let stale = bench.job(place.shard, JobNumber::Schedule(1)).await;
    assert!(
        matches!(&stale, JobState::Ended { end, .. } if end.end == Terminal::Superseded),
        "a job that is dropped is told: {stale:?}"
    );
    assert!(matches!(bench.job(place.shard, JobNumber::Schedule(2)).await, JobState::Pending { .. }));
}

/// Contract 1.11: a scheduled job keeps the id it got at acceptance after it has joined its lane.
pub async fn a_scheduled_job_keeps_its_id(bench: &Bench) {
    let place = bench.place().await;
    let given =
        Draft { delay: delayed("a", "x", Duration::ZERO).delay, ..job_draft("a", "1", place.seat.processor) };
    let receipts = bench.send(&place, vec![given]).await;
    let [Receipt::Scheduled { ticket, job: Some(job), .. }] = receipts[..] else {
        panic!("a job: {receipts:?}")
    };
    assert_eq!((job.shard(), job.number()), (place.shard, JobNumber::Schedule(ticket)));
    assert!(matches!(bench.job(place.shard, job.number()).await, JobState::Scheduled { .. }));
    promote(bench, &place, 1).await;
    let mark = bench.event(place.shard, EventId(1)).await.job.expect("the event is the job");
    assert_eq!(mark.id, job);
    let state = bench.job(place.shard, job.number()).await;
    assert!(matches!(state, JobState::Pending { id: EventId(1), .. }), "{state:?}");
}

/// Design 3: time to live of a delayed draft counts from joining its lane, and priority is kept.
pub async fn a_promoted_event_keeps_its_options(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let given = Draft { ttl: Some(MINUTE), priority: 4, ..delayed("a", "1", MINUTE) };
    bench.send(&place, vec![given]).await;
    bench.advance(2 * MINUTE);
    promote(bench, &place, 1).await;
    let event = bench.event(place.shard, EventId(1)).await;
    assert_eq!(event.expires_at, Some(bench.now().after(MINUTE)));
    assert_eq!((event.priority, event.hold_until), (4, None));
    assert_eq!(rows!(bench, Query::Urgent(place.shard, EventId(0), 9), Urgent), [(EventId(1), 4)]);
}

/// Contract 2, promote: no such shard.
pub async fn promoting_an_unknown_shard_is_not_found(bench: &Bench) {
    let place = bench.place().await;
    let shard = laneway_core::Shard { partition: laneway_core::Partition(9), ..place.shard };
    let answer = bench.store().promote(Promote { shard, limit: 1 }).await;
    expect_error!(answer, StoreError::NotFound { .. });
}
