//! A store with some of everything in it: what copies and checks must cope with.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::store::{
    DeadLetter, Define, JobResult, Jobs, LaneChange, ObjectWrite, Origin, Promote, Query, Receipt, Request,
    RequestOp, Rows, Source, Stash, StateWrite,
};
use laneway_core::{
    Delay, DelayMode, Draft, Due, EventId, Headers, JobNumber, LaneRecord, ManualClock, Mode, Nonce,
    Partition, Seat, StartAfter, StartAt, StreamSettings, Term, Terminal, TokenId,
};
use laneway_embedded::{FileStore, MemoryStore};
use laneway_testkit::bench::{
    DraftExt, Place, delayed, draft, emit, ending, inline, job_draft, job_end, key, keyless, lane,
    lane_change, parked, passed, retrying,
};
use laneway_testkit::{Bench, Fixture, TestStore};

const SECOND: Duration = Duration::from_secs(1);

/// The token of a request that had its effect.
pub(crate) const APPLIED: TokenId = TokenId(11);
/// The token of a request that waits.
pub(crate) const WAITING: TokenId = TokenId(12);

/// Hands one store to a bench.
struct Given(TestStore);

#[async_trait]
impl Fixture for Given {
    async fn open(&self) -> TestStore {
        self.0.clone()
    }

    async fn reopen(&self, _: TestStore) -> TestStore {
        unreachable!("these tests open their stores themselves")
    }

    async fn restored(&self, _: TestStore) -> TestStore {
        unreachable!("these tests open their stores themselves")
    }
}

/// A bench around a memory store.
pub(crate) async fn on_memory(store: &Arc<MemoryStore>, clock: &ManualClock) -> Bench {
    Bench::open(Arc::new(Given(TestStore::of(Arc::clone(store), clock.clone())))).await
}

/// A bench around a file store.
pub(crate) async fn on_file(store: &FileStore, clock: &ManualClock) -> Bench {
    Bench::open(Arc::new(Given(TestStore::of(Arc::new(store.clone()), clock.clone())))).await
}

/// What was made.
pub(crate) struct Rich {
    /// A stream of mode queue with two partitions; this is the first.
    pub(crate) queue: Place,
    /// A stream of mode latest.
    pub(crate) latest: Place,
    /// Receipts of jobs: ended inline, ended with chunks, open, waiting in the schedule.
    pub(crate) jobs: [Receipt; 4],
    /// The bytes that the chunks hold.
    pub(crate) large: Bytes,
}

/// Fills a store.
pub(crate) async fn rich(bench: &Bench) -> Rich {
    remove_something(bench).await;
    let settings = StreamSettings { partitions: 2, keep: 10 * SECOND, ..StreamSettings::default() };
    let queue = bench.place_with(settings).await;
    let second = Seat { processor: bench.processor(queue.stream.id, StartAt::Beginning).await, ..queue.seat };
    let settings = StreamSettings { partitions: 1, mode: Mode::Latest, ..StreamSettings::default() };
    let latest = bench.place_with(settings).await;
    old_events(bench, &queue, second).await;
    let (jobs, large) = work(bench, &queue, latest.stream.id).await;
    fill_latest(bench, &latest).await;
    let other = Place { shard: queue.stream.shard(Partition(1)), ..queue.clone() };
    bench.fill(&other, "elsewhere", 25).await;
    Rich { queue, latest, jobs, large }
}

/// A stream and a processor that are no more: their numbers must never come again.
async fn remove_something(bench: &Bench) {
    let gone = bench.place().await;
    bench.fill(&gone, "gone", 3).await;
    bench.define(Define::RemoveStream { stream: gone.stream.id, expect: gone.stream.version }).await;
}

/// Events that retention has taken: their lanes have ends without events.
async fn old_events(bench: &Bench, queue: &Place, second: Seat) {
    let old = bench.fill(queue, "idle", 7).await;
    bench.fill(queue, "busy", 3).await;
    let ids: Vec<EventId> = (1..=10).map(EventId).collect();
    assert_eq!(old.len(), 7);
    bench.pass(queue.seat, &ids).await;
    bench.pass(second, &ids).await;
    bench.advance(11 * SECOND);
    assert_eq!(bench.trim(queue.shard).await.events, 10);
}

fn decorated() -> Vec<Draft> {
    let headers = Headers::new([("trace", "00-ab")]).unwrap();
    let hold = Delay { until: StartAfter::Delay(60 * SECOND), mode: DelayMode::Hold };
    let date = Delay {
        until: StartAfter::At(laneway_core::Timestamp(1_999_000_000_000_000)),
        mode: DelayMode::Join,
    };
    vec![
        keyless("no lane"),
        Draft { headers, priority: 3, ttl: Some(3_600 * SECOND), ..draft("dressed", "up") },
        Draft { delay: Some(hold), ..draft("held", "back") },
        delayed("later", "steady", 100 * SECOND),
        Draft { delay: Some(date), ..draft("later", "calendar") },
        draft("once", "only").dedup("name", 5),
        keyless("named without a lane").dedup("keyless name", 6),
        delayed("later", "named", 90 * SECOND).dedup("waits", 7),
    ]
}

async fn work(bench: &Bench, queue: &Place, target: laneway_core::StreamId) -> ([Receipt; 4], Bytes) {
    bench.send(queue, decorated()).await;
    objects(bench, queue).await;
    sources(bench, queue, target).await;
    let responder = queue.seat.processor;
    let mut receipts = Vec::new();
    for name in ["inline", "chunks", "open"] {
        receipts.extend(bench.send(queue, vec![job_draft(name, name, responder)]).await);
    }
    let waits = Draft { job: job_draft("x", "x", responder).job, ..delayed("wait", "job", 500 * SECOND) };
    receipts.extend(bench.send(queue, vec![waits]).await);
    promoted_and_cancelled(bench, queue).await;
    let large = Bytes::from(vec![7; 1_000_001]);
    settle(bench, queue, target, [new_id(&receipts[0]), new_id(&receipts[1])], &large).await;
    bench.fill(queue, "busy", 40).await;
    (receipts.try_into().expect("four receipts"), large)
}

fn new_id(receipt: &Receipt) -> EventId {
    match receipt {
        Receipt::New { id, .. } => *id,
        other => panic!("expected a new event: {other:?}"),
    }
}

async fn objects(bench: &Bench, queue: &Place) {
    for (name, values) in [("kept", vec![Some("one"), Some("two")]), ("removed", vec![Some("one"), None])] {
        for value in values {
            let value = value.map(text);
            let mut append = bench.append_to(queue, vec![draft(name, "with an object")]);
            append.object = Some(ObjectWrite { expect: None, value });
            bench.store().append(append).await.unwrap();
        }
    }
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

async fn sources(bench: &Bench, queue: &Place, stream: laneway_core::StreamId) {
    let shard = laneway_core::Shard { stream, partition: Partition(0) };
    let outbox = Source::Outbox { shard, processor: queue.seat.processor, incarnation: 0, adoptions: 0 };
    for source in [outbox, Source::Named(Bytes::from_static(b"input"))] {
        let drafts = (1..=3).map(|number| draft("sourced", "numbered").at_origin(number)).collect();
        let append = bench.append_from(queue, Origin { source, term: Term(4) }, drafts);
        bench.store().append(append).await.unwrap();
    }
}

/// A job that joined its lane late, one that was cancelled, and a plain draft that left no trace.
async fn promoted_and_cancelled(bench: &Bench, queue: &Place) {
    let wish = job_draft("x", "x", queue.seat.processor).job;
    let due = Draft { job: wish, ..delayed("late", "job", SECOND) };
    let cancelled = Draft { job: wish, ..delayed("late", "cancelled", 50 * SECOND) };
    let receipts = bench.send(queue, vec![due, cancelled, delayed("late", "plain", SECOND)]).await;
    let Receipt::Scheduled { ticket, .. } = receipts[1] else { panic!("{receipts:?}") };
    bench.store().jobs(Jobs::CancelScheduled { shard: queue.shard, ticket }).await.unwrap();
    bench.advance(2 * SECOND);
    assert_eq!(bench.store().promote(Promote { shard: queue.shard, limit: 10 }).await.unwrap().moved, 2);
}

/// One commit with everything a commit can hold, and what it needs before.
async fn settle(
    bench: &Bench,
    queue: &Place,
    target: laneway_core::StreamId,
    jobs: [EventId; 2],
    large: &Bytes,
) {
    let (store, seat, shard) = (bench.store(), queue.seat, queue.shard);
    for (token, op) in
        [(APPLIED, RequestOp::Resume { lane: None }), (WAITING, RequestOp::Cancel { id: EventId(12) })]
    {
        store.request(Request { seat, token, op }).await.unwrap();
    }
    for (index, bytes) in [large.slice(..400_000), large.slice(400_000..)].into_iter().enumerate() {
        let index = u32::try_from(index).unwrap();
        store.stash(Stash { shard, id: jobs[1], nonce: Nonce(9), index, bytes }).await.unwrap();
    }
    let events = bench.events(shard).await;
    let sided: Vec<EventId> =
        events.iter().filter(|event| event.key == Some(key("sourced"))).map(|event| event.id).collect();
    let fence = bench.seize(seat).await.progress.fence;
    let mut commit = bench.commit_of(seat, fence);
    commit.passed = passed(&[&[EventId(11), EventId(12), jobs[0], jobs[1]], &sided[..]].concat());
    commit.endings = vec![ending(EventId(12), Terminal::Skipped)];
    let side = LaneChange {
        record: Some(LaneRecord::new(lane("sourced"))),
        side: sided.clone(),
        lane: lane("sourced"),
        unside: Vec::new(),
    };
    let Rows::Store(view) = bench.query(Query::Store).await else { panic!("a store knows its clocks") };
    let retry = retrying(lane("kept"), EventId(15), Due::Steady(view.steady.after(900 * SECOND)));
    commit.lanes = vec![side, lane_change(retry), lane_change(parked(lane("removed"), EventId(18)))];
    commit.states = [("kept", "state"), ("idle", "state of an idle lane")]
        .map(|(name, value)| StateWrite { key: key(name), value: Some(text(value)) })
        .to_vec();
    let dead = events.iter().find(|event| event.id == EventId(12)).expect("event 12 is there").clone();
    let cause = Bytes::from_static(b"no luck");
    commit.dead = vec![DeadLetter { event: dead, cause, attempts: 4, at: laneway_core::Timestamp(0) }];
    commit.emits =
        vec![emit(target, "emitted", "one"), emit(target, "emitted", "two"), emit(target, "x", "three")];
    commit.jobs = vec![
        job_end(jobs[0], inline("result")),
        job_end(jobs[1], JobResult::Stashed { nonce: Nonce(9), chunks: 2 }),
    ];
    commit.requests_applied = Some(1);
    let fence = bench.commit(commit).await.fence;
    let mut commit = bench.commit_of(seat, fence);
    commit.forwarded = Some(1);
    commit.clean = true;
    bench.commit(commit).await;
    let number = JobNumber::Event(jobs[0]);
    store.jobs(Jobs::Take { shard, number, grace: 600 * SECOND }).await.unwrap();
}

async fn fill_latest(bench: &Bench, latest: &Place) {
    for generation in 1..=5 {
        let drafts = ["pod", "node"].map(|name| draft(name, "spec").generation(1, Some(generation)));
        bench.send(latest, drafts.to_vec()).await;
    }
    let gone = Draft { delete: true, ..draft("node", "gone").generation(1, Some(9)) };
    bench.send(latest, vec![gone]).await;
    bench.pass(latest.seat, &[EventId(1), EventId(2), EventId(4)]).await;
}
