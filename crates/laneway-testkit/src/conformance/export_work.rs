//! Cases about the lists that copies read of jobs and seats: tickets, ends, sided ids and request tokens; and what
//! holds for all lists that copies read.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{
    EndRow, JobEnd, JobResult, JobState, Jobs, LaneChange, Promote, Query, Receipt, Request, RequestOp, Rows,
    TicketRow, Ticketed, TokenRow,
};
use laneway_core::{
    Draft, EventId, JobNumber, LaneName, LaneRecord, Partition, ProcessorId, Seat, Shard, StoreError,
    StreamSettings, Terminal, Timestamp, TokenId, limits,
};

use super::expect::{expect_error, paged, rows};
use crate::bench::{
    Bench, DraftExt, Place, delayed, draft, inline, job_draft, job_end, key, keyless, lane, passed,
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const MANY: usize = 37;

async fn calendar(bench: &Bench) -> Timestamp {
    rows!(bench, Query::Store, Store).calendar
}

/// Contract 1.11: a scheduled job that joined its lane or ended without is listed by ticket; what waits is not.
pub async fn tickets_tell_what_became_of_scheduled_jobs(bench: &Bench) {
    let place = bench.place().await;
    let job = job_draft("a", "x", place.seat.processor).job;
    let mut joined = Vec::new();
    for index in 0..MANY {
        let by = if index % 3 == 0 { Duration::ZERO } else { HOUR };
        let wish = if index % 5 == 4 { None } else { job };
        let given = Draft { job: wish, ..delayed("a", "x", by) };
        let receipt = bench.send(&place, vec![given]).await.remove(0);
        let Receipt::Scheduled { ticket, .. } = receipt else { panic!("{receipt:?}") };
        assert_eq!(ticket, index as u64 + 1);
        if index % 3 == 0 {
            joined.push((ticket, wish.is_some()));
        }
    }
    let promote = Promote { shard: place.shard, limit: MANY };
    assert_eq!(bench.store().promote(promote).await.expect("a shard").moved, joined.len());
    let mut expected: Vec<TicketRow> = (1..)
        .zip(&joined)
        .filter(|(_, (_, is_job))| *is_job)
        .map(|(id, (ticket, _))| TicketRow {
            ticket: *ticket,
            accepted_at: None,
            became: Ticketed::Joined(EventId(id)),
        })
        .collect();
    for index in (0..MANY).filter(|index| index % 3 == 1) {
        let (ticket, is_job) = (index as u64 + 1, index % 5 != 4);
        let cancel = Jobs::CancelScheduled { shard: place.shard, ticket };
        let state = bench.store().jobs(cancel).await.expect("it waits").remove(0).state;
        if let (true, JobState::Ended { end, keep_until, .. }) = (is_job, state) {
            assert_eq!(end.end, Terminal::Cancelled);
            let row = Box::new(EndRow { end: *end, keep_until });
            expected.push(TicketRow { ticket, accepted_at: None, became: Ticketed::Ended(row) });
        }
    }
    expected.sort_by_key(|row| row.ticket);
    let mut listed = paged!(bench, Tickets(place.shard, 0), |row| row.ticket);
    // Not every store keeps it.
    listed.iter_mut().for_each(|row| row.accepted_at = None);
    assert_eq!(listed, expected);
}

/// A place with many jobs, every second of which has ended.
async fn half_ended(bench: &Bench, settings: StreamSettings) -> (Place, Vec<JobEnd>) {
    let place = bench.place_with(settings).await;
    let drafts = (0..MANY).map(|index| job_draft("a", &index.to_string(), place.seat.processor));
    bench.send(&place, drafts.collect()).await;
    let ended = (1..=MANY as u64).step_by(2);
    let ends: Vec<JobEnd> =
        ended.map(|id| job_end(EventId(id), inline(&format!("result of {id}")))).collect();
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ends.iter().map(|end| end.id).collect::<Vec<_>>());
    commit.jobs = ends.clone();
    bench.commit(commit).await;
    (place, ends)
}

/// Contract 1.11 and 1.12: ends are listed by event id, with until when they can be read.
pub async fn ends_are_listed_with_their_life(bench: &Bench) {
    let (place, ends) = half_ended(bench, Bench::settings()).await;
    let listed = paged!(bench, Ends(place.shard, EventId(0)), |row| row.end.id);
    assert_eq!(listed.len(), ends.len());
    for (row, given) in listed.iter().zip(&ends) {
        let finished_at = row.end.finished_at;
        assert_eq!(row.end, JobEnd { finished_at, ..given.clone() });
        assert_eq!(row.keep_until, finished_at.after(HOUR));
    }
    let now = calendar(bench).await;
    let take = Jobs::Take { shard: place.shard, number: JobNumber::Event(EventId(3)), grace: 9 * SECOND };
    bench.store().jobs(take).await.expect("it has ended");
    let taken = rows!(bench, Query::Ends(place.shard, EventId(2), 1), Ends).remove(0);
    assert!(taken.keep_until >= now.after(9 * SECOND) && taken.keep_until < now.after(HOUR), "{taken:?}");
    assert_eq!(taken.end, listed[1].end);
}

/// Invariant A3: an end that can no longer be read is listed for as long as its event is there, without its result:
/// a copy must know that the job has ended.
pub async fn ends_past_their_life_are_listed_while_their_event_is_there(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let settings = StreamSettings { keep: 3 * HOUR, ..Bench::settings() };
    let (place, ends) = half_ended(bench, settings).await;
    let forget = Jobs::Forget { shard: place.shard, number: JobNumber::Event(EventId(5)) };
    bench.store().jobs(forget).await.expect("it has ended");
    let forgotten = rows!(bench, Query::Ends(place.shard, EventId(4), 1), Ends).remove(0);
    assert_eq!((forgotten.end.id, forgotten.end.result), (EventId(5), JobResult::None));
    bench.advance(2 * HOUR);
    bench.trim(place.shard).await;
    let listed = paged!(bench, Ends(place.shard, EventId(0)), |row| row.end.id);
    assert_eq!(listed.len(), ends.len());
    assert!(listed.iter().all(|row| row.end.result == JobResult::None && row.keep_until < bench.now()));
    bench.pass(place.seat, &(1..=MANY as u64).map(EventId).collect::<Vec<_>>()).await;
    bench.advance(2 * HOUR);
    bench.trim(place.shard).await;
    assert!(rows!(bench, Query::Ends(place.shard, EventId(0), 100), Ends).is_empty());
}

/// Contract 1.9: ids in sidings are listed by id, each with its lane, whichever lanes they are in.
pub async fn sided_ids_are_listed_with_their_lanes(bench: &Bench) {
    let place = bench.place().await;
    let name = |index: usize| format!("lane-{}", index % 3);
    let drafts = (0..MANY).map(|index| if index == 9 { keyless("x") } else { draft(&name(index), "x") });
    bench.send(&place, drafts.collect()).await;
    let in_siding = (0..MANY).filter(|index| index % 4 != 0);
    let mut sided: Vec<(EventId, LaneName)> = in_siding
        .map(|index| {
            let id = EventId(index as u64 + 1);
            (id, if index == 9 { LaneName::Event(id) } else { lane(&name(index)) })
        })
        .collect();
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&sided.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    for lane in [lane("lane-0"), lane("lane-1"), lane("lane-2"), LaneName::Event(EventId(10))] {
        let ids = sided.iter().filter(|(_, found)| *found == lane).map(|(id, _)| *id).collect();
        let record = Some(LaneRecord::new(lane.clone()));
        commit.lanes.push(LaneChange { lane, record, side: ids, unside: Vec::new() });
    }
    let fence = bench.commit(commit).await.fence;
    assert_eq!(paged!(bench, Sided(place.seat, EventId(0)), |row| row.0), sided);
    let (out, its_lane) = sided.remove(1);
    let mut commit = bench.commit_of(place.seat, fence);
    let record = Some(LaneRecord::new(its_lane.clone()));
    commit.lanes = vec![LaneChange { lane: its_lane, record, side: Vec::new(), unside: vec![out] }];
    bench.commit(commit).await;
    assert_eq!(paged!(bench, Sided(place.seat, EventId(0)), |row| row.0), sided);
}

/// Contract 1.7: tokens are listed by token, with their numbers and, once applied, until when they are known.
pub async fn tokens_are_listed_with_their_requests(bench: &Bench) {
    let place = bench.place().await;
    let mut expected = Vec::new();
    for number in 1..=MANY as u64 {
        // Neither ascending nor descending.
        let token = TokenId(u128::from(number * 7 % MANY as u64) << 100 | u128::from(number));
        let request = Request { seat: place.seat, token, op: RequestOp::Resume { lane: None } };
        let accepted = bench.store().request(request).await.expect("a seat that exists");
        assert!(!accepted.repeated && accepted.number == number, "{accepted:?}");
        expected.push(TokenRow { token, number, until: None, answer: Bytes::new() });
    }
    expected.sort_by_key(|row| row.token);
    assert_eq!(paged!(bench, Tokens(place.seat, None), |row| Some(row.token)), expected);
    let now = calendar(bench).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(20);
    bench.commit(commit).await;
    let listed = paged!(bench, Tokens(place.seat, None), |row| Some(row.token));
    for (row, before) in listed.iter().zip(&expected) {
        assert_eq!((row.token, row.number), (before.token, before.number));
        let applied = row.until.is_some_and(|until| until >= now.after(limits::TOKEN_KEEP));
        assert_eq!((applied, row.until.is_none()), (row.number <= 20, row.number > 20), "{row:?}");
    }
    assert_eq!(listed.len(), MANY);
}

fn lists(shard: Shard, seat: Seat) -> [Query; 8] {
    let zero = EventId(0);
    [
        Query::Events(shard, zero, 10),
        Query::Objects(shard, None, 10),
        Query::Dedup(shard, None, 10),
        Query::Sources(shard, None, 10),
        Query::Tickets(shard, 0, 10),
        Query::Ends(shard, zero, 10),
        Query::Sided(seat, zero, 10),
        Query::Tokens(seat, None, 10),
    ]
}

fn is_empty(rows: &Rows) -> bool {
    match rows {
        Rows::Events(rows) => rows.is_empty(),
        Rows::Objects(rows) => rows.is_empty(),
        Rows::Dedup(rows) => rows.is_empty(),
        Rows::Sources(rows) => rows.is_empty(),
        Rows::Tickets(rows) => rows.is_empty(),
        Rows::Ends(rows) => rows.is_empty(),
        Rows::Sided(rows) => rows.is_empty(),
        Rows::Tokens(rows) => rows.is_empty(),
        other => panic!("rows of another kind were answered: {other:?}"),
    }
}

/// Contract 2, query: a list with nothing in it is an empty page, whatever its neighbours have.
pub async fn lists_of_a_new_shard_are_empty(bench: &Bench) {
    let settings = StreamSettings { partitions: 2, ..StreamSettings::default() };
    let place = bench.place_with(settings).await;
    let busy = bench.send_one(&place, job_draft("a", "x", place.seat.processor).dedup("d", 1)).await;
    bench.pass(place.seat, &[busy]).await;
    let request = Request { seat: place.seat, token: bench.token(), op: RequestOp::Resume { lane: None } };
    bench.store().request(request).await.expect("a seat that exists");
    let neighbour = place.stream.shard(Partition(1));
    let other = bench.place().await;
    for (shard, seat) in [(neighbour, Seat { shard: neighbour, ..place.seat }), (other.shard, other.seat)] {
        for query in lists(shard, seat) {
            let rows = bench.query(query.clone()).await;
            assert!(is_empty(&rows), "{query:?}: {rows:?}");
        }
    }
    let lane_of_place = Query::Lane(neighbour, key("a"));
    assert_eq!(rows!(bench, lane_of_place, Lane), None);
}

/// Contract 2, query: no such shard, no such seat.
pub async fn copies_of_the_unknown_are_not_found(bench: &Bench) {
    let place = bench.place().await;
    let shard = Shard { partition: Partition(8), ..place.shard };
    let seat = Seat { processor: ProcessorId(9_999), ..place.seat };
    for query in lists(shard, seat) {
        expect_error!(bench.store().query(query).await, StoreError::NotFound { .. });
    }
}
