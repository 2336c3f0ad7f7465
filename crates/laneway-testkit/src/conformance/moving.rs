//! A shard with something of everything, the pieces that carry it to another store, and how the two are compared.
//! Holds no case.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{
    DeadLetter, Define, Import, Jobs, LaneChange, LaneSelect, ObjectWrite, Origin, Promote, Query, Receipt,
    Request, RequestOp, Rows, Source, StateWrite, StoreView,
};
use laneway_core::{
    Delay, DelayMode, Draft, Due, EventId, Fence, Headers, Incarnation, JobId, LaneRecord, Partition, Seat,
    Shard, StartAfter, StartAt, StreamInfo, StreamSettings, Term, Terminal, Timestamp, TokenId,
};

use super::expect::{pages, rows};
use crate::bench::{
    Bench, DraftExt, Place, Snapshot, draft, emit, ending, inline, job_draft, job_end, key, keyless, lane,
    lane_change, parked, passed, retrying,
};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);
/// Rows of one piece: few, so that every list takes several.
const PIECE: usize = 3;

/// What was made.
pub(super) struct Furnished {
    /// Where, with the processor that worked.
    pub(super) place: Place,
    /// The seat of a processor that only passed three events.
    pub(super) idle: Seat,
    /// The worker's fence after its last commit.
    pub(super) fence: Fence,
    /// Tokens of an applied request and of one that waits.
    pub(super) tokens: [TokenId; 2],
    /// Jobs: ended, open, waiting in the schedule, joined from there.
    pub(super) jobs: [JobId; 4],
}

/// Fills a shard. Due times are dates, which mean the same on every store.
pub(super) async fn furnish(bench: &Bench) -> Furnished {
    let place = bench.place_with(StreamSettings { keep: Duration::ZERO, ..Bench::settings() }).await;
    let idle = Seat { processor: bench.processor(place.stream.id, StartAt::Beginning).await, ..place.seat };
    let place = Place { stream: bench.stream_info(place.stream.id).await.expect("it is there"), ..place };
    bench.fill(&place, "idle", 2).await;
    bench.fill(&place, "busy", 1).await;
    for seat in [place.seat, idle] {
        bench.pass(seat, &[EventId(1), EventId(2), EventId(3)]).await;
    }
    assert_eq!(bench.trim(place.shard).await.events, 3);
    let date = view(bench).await.calendar.after(HOUR);
    let jobs = send_all(bench, &place, date).await;
    let tokens = [bench.token(), bench.token()];
    for token in tokens {
        let request = Request { seat: place.seat, token, op: RequestOp::Resume { lane: None } };
        bench.store().request(request).await.expect("a seat that exists");
    }
    let fence = settle(bench, &place, date).await;
    bench.fill(&place, "busy", 5).await;
    Furnished { place, idle, fence, tokens, jobs }
}

fn at(date: Timestamp, mode: DelayMode) -> Option<Delay> {
    Some(Delay { until: StartAfter::At(date), mode })
}

fn job_of(receipt: &Receipt) -> JobId {
    match receipt {
        Receipt::New { job: Some(job), .. } | Receipt::Scheduled { job: Some(job), .. } => *job,
        other => panic!("expected a job: {other:?}"),
    }
}

/// Events 4 to 18 and tickets 1 to 4.
async fn send_all(bench: &Bench, place: &Place, date: Timestamp) -> [JobId; 4] {
    let headers = Headers::new([("trace", "00-ab")]).expect("a short header");
    let plain = vec![
        keyless("no lane"),
        Draft { headers, priority: 3, ttl: Some(HOUR), ..draft("dressed", "up") },
        Draft { delay: at(date, DelayMode::Hold), ..draft("held", "back") },
        draft("once", "only").dedup("name", 5),
        keyless("named without a lane").dedup("name", 6),
        Draft { delay: at(date, DelayMode::Join), ..draft("later", "named").dedup("waits", 7) },
    ];
    bench.send(place, plain).await;
    for (name, value) in [("kept", Some("1")), ("kept", Some("2")), ("removed", Some("1")), ("removed", None)]
    {
        let mut append = bench.append_to(place, vec![draft(name, "with an object")]);
        append.object = Some(ObjectWrite { expect: None, value: value.map(Bytes::from) });
        bench.store().append(append).await.expect("any version is replaced");
    }
    let origin = Origin { source: Source::Named(Bytes::from_static(b"input")), term: Term(4) };
    let drafts = (1..=3).map(|number| draft("sourced", "numbered").at_origin(number)).collect();
    let append = bench.append_from(place, origin, drafts);
    bench.store().append(append).await.expect("a new source");
    let job = job_draft("work", "job", place.seat.processor);
    let later = Draft { delay: at(date, DelayMode::Join), ..job.clone() };
    let now = Draft { delay: at(Timestamp(1), DelayMode::Join), ..job.clone() };
    let receipts = bench.send(place, vec![job.clone(), job, later.clone(), later, now]).await;
    let cancel = Jobs::CancelScheduled { shard: place.shard, ticket: 3 };
    bench.store().jobs(cancel).await.expect("it waits");
    let promote = Promote { shard: place.shard, limit: 10 };
    assert_eq!(bench.store().promote(promote).await.expect("a shard that exists").moved, 1);
    [0, 1, 2, 4].map(|index| job_of(&receipts[index]))
}

/// A commit with everything a commit can hold.
async fn settle(bench: &Bench, place: &Place, date: Timestamp) -> Fence {
    let seat = place.seat;
    let resume = bench.seize(seat).await;
    let mut commit = bench.commit_of(seat, resume.progress.fence);
    let sided = vec![EventId(13), EventId(14)];
    commit.passed = passed(&[4, 5, 13, 14, 16].map(EventId));
    commit.endings = vec![ending(EventId(5), Terminal::Skipped)];
    let record = Some(LaneRecord::new(lane("sourced")));
    let retry = retrying(lane("kept"), EventId(9), Due::Calendar(date));
    commit.lanes = vec![
        LaneChange { lane: lane("sourced"), record, side: sided, unside: Vec::new() },
        lane_change(retry),
        lane_change(parked(lane("removed"), EventId(11))),
    ];
    commit.states = ["kept", "idle"]
        .map(|name| StateWrite { key: key(name), value: Some(Bytes::from_static(b"state")) })
        .to_vec();
    let event = bench.event(place.shard, EventId(5)).await;
    commit.dead = vec![DeadLetter { event, cause: Bytes::new(), attempts: 4, at: Timestamp(0) }];
    commit.emits = ["one", "two", "three"].map(|text| emit(place.stream.id, "x", text)).to_vec();
    commit.jobs = vec![job_end(EventId(16), inline("result"))];
    commit.requests_applied = Some(1);
    let fence = bench.commit(commit).await.fence;
    let mut commit = bench.commit_of(seat, fence);
    commit.forwarded = Some(1);
    commit.clean = true;
    bench.commit(commit).await.fence
}

pub(super) async fn view(bench: &Bench) -> StoreView {
    rows!(bench, Query::Store, Store)
}

/// The pieces of one stream, in an order in which they can be imported; the last ones finish its shards.
pub(super) async fn pieces(from: &Bench, to: Incarnation, stream: &StreamInfo) -> Vec<Import> {
    let mut pieces = vec![Import::Stream(stream.clone())];
    let shards = (0..stream.settings.partitions).map(|part| stream.shard(Partition(part)));
    let shards: Vec<Shard> = shards.collect();
    for shard in &shards {
        shard_pieces(from, *shard, &mut pieces).await;
        for view in from.seats(*shard).await.1 {
            seat_pieces(from, Seat { shard: *shard, processor: view.processor }, &mut pieces).await;
        }
    }
    let view = view(from).await;
    pieces.push(Import::Numbers(view.streams, view.processors));
    for shard in shards {
        let mut info = from.shard_info(shard).await;
        if info.incarnation == from.incarnation() {
            info.incarnation = to;
        }
        pieces.push(Import::Finish(shard, info));
    }
    pieces
}

async fn shard_pieces(from: &Bench, shard: Shard, pieces: &mut Vec<Import>) {
    let (info, seats) = from.seats(shard).await;
    let zero = EventId(0);
    pieces.push(Import::Shard(shard, Rows::Seats(info, seats)));
    macro_rules! list {
        ($kind:ident, $first:expr, $cursor:expr) => {
            for piece in pages!(from, PIECE, $kind(shard, $first), $cursor).chunks(PIECE) {
                pieces.push(Import::Shard(shard, Rows::$kind(piece.to_vec())));
            }
        };
    }
    list!(Events, zero, |row| row.id);
    list!(Tails, None, |row| Some(row.key.clone()));
    list!(Objects, None, |row| Some(row.key.clone()));
    list!(Dedup, None, |row| Some(row.name.clone()));
    list!(Sources, None, |row| Some(row.source.clone()));
    list!(Scheduled, 0, |row| row.ticket);
    list!(Tickets, 0, |row| row.ticket);
    list!(Ends, zero, |row| row.end.id);
    pieces.push(Import::Shard(shard, from.query(Query::Counts(shard)).await));
}

async fn seat_pieces(from: &Bench, seat: Seat, pieces: &mut Vec<Import>) {
    let zero = EventId(0);
    let select = LaneSelect::Blocked { kind: None, after: None, limit: 1_000 };
    let lanes = from.lanes(seat, select).await.into_iter().map(|view| view.record).collect();
    pieces.push(Import::Lanes(seat, lanes));
    macro_rules! list {
        ($kind:ident, $first:expr, $cursor:expr) => {
            for piece in pages!(from, PIECE, $kind(seat, $first), $cursor).chunks(PIECE) {
                pieces.push(Import::Seat(seat, Rows::$kind(piece.to_vec())));
            }
        };
    }
    list!(Sided, zero, |row| row.0);
    list!(States, None, |row| Some(row.0.clone()));
    list!(Endings, zero, |row| row.id);
    list!(Dead, zero, |row| row.event.id);
    list!(Outbox, 0, |row| row.number);
    list!(Requests, 0, |row| row.number);
    list!(Tokens, None, |row| Some(row.token));
}

/// Takes one piece over.
pub(super) async fn import(to: &Bench, piece: &Import) {
    to.define(Define::Import(piece.clone())).await;
}

/// Carries a whole stream to another store.
pub(super) async fn carry(from: &Bench, to: &Bench, stream: &StreamInfo) {
    for piece in pieces(from, to.incarnation(), stream).await {
        import(to, &piece).await;
    }
}

/// Everything that can be read of a shard, without what belongs to the store: owners, incarnation, term floor.
#[derive(Debug, PartialEq)]
pub(super) struct Everything {
    snapshot: Snapshot,
    lists: Vec<Rows>,
}

pub(super) async fn everything(bench: &Bench, shard: Shard) -> Everything {
    let mut snapshot = bench.snapshot(shard).await;
    let zero = EventId(0);
    let mut queries = vec![
        Query::Events(shard, zero, 1_000),
        Query::Objects(shard, None, 1_000),
        Query::Dedup(shard, None, 1_000),
        Query::Sources(shard, None, 1_000),
        Query::Tickets(shard, 0, 1_000),
        Query::Ends(shard, zero, 1_000),
    ];
    (snapshot.info.incarnation, snapshot.info.first_term) = Default::default();
    for found in &mut snapshot.seats {
        let seat = Seat { shard, processor: found.view.processor };
        queries.extend([Query::Sided(seat, zero, 1_000), Query::Tokens(seat, None, 1_000)]);
        let progress = &mut found.view.progress;
        (progress.fence.term, progress.fence.nonce) = Default::default();
        progress.node = Bytes::new();
    }
    let mut lists = Vec::new();
    for query in queries {
        lists.push(bench.query(query).await);
    }
    Everything { snapshot, lists }
}
