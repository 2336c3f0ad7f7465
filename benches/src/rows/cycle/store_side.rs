//! The cycle on the store: producers append jobs, consumers own 16 seats each, read pages in order and commit
//! passed ids with the end of every job; one commit in flight per seat.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{join_all, select, select_all};
use laneway_core::limits::PAGE_BYTES_MAX;
use laneway_core::store::{Commit, Committed, Entry, JobEnd, JobResult, Page, Read, ReadFrom, Seize, Trim};
use laneway_core::{
    CommitId, EventId, Fence, JobDraft, Nonce, ProcessorId, Seat, Store, Terminal, Timestamp, Topic, Wakeups,
};

use super::flow::{CONSUMERS, Flow, shards_of};
use crate::measured::{Measured, Stopwatch, Times, window};
use crate::producers::{Producers, Target};
use crate::store::BenchStore;
use crate::workload::{self, Keys, RESULT_BYTES, SHARDS, Sender};
use crate::{Failure, seam};

/// Events of one page, so that a commit stays a modest call.
const PAGE: usize = 1_000;
/// How often every shard is trimmed.
const TRIM_EVERY: Duration = Duration::from_secs(1);

/// The store with its seats, from round to round.
pub(super) struct StoreSide {
    pub(super) store: BenchStore,
    processor: ProcessorId,
    keep: Duration,
    /// Seats of each consumer.
    seats: Vec<Vec<OwnedSeat>>,
}

/// A seat and how far its owner got.
struct OwnedSeat {
    seat: Seat,
    fence: Fence,
    last: EventId,
    seen: u64,
}

impl StoreSide {
    /// Registers the processor and takes its seats.
    pub(super) async fn start(mut store: BenchStore, keep: Duration) -> Result<Self, Failure> {
        let processor = store.register().await?;
        let mut seats = Vec::new();
        for consumer in 0..CONSUMERS {
            let mut owned = Vec::new();
            for shard in shards_of(consumer) {
                owned.push(seize(&store, processor, shard).await?);
            }
            seats.push(owned);
        }
        Ok(Self { store, processor, keep, seats })
    }

    pub(super) async fn round(&mut self, keys: &Arc<Keys>, times: Times) -> Result<Measured, Failure> {
        let flow = Flow::new();
        let trimming = seam::spawn(trim_all_the_time(self.store.clone(), flow.clone()));
        let consume = |seats| seam::spawn(consume(self.store.clone(), seats, flow.clone(), self.keep));
        let consumers: Vec<_> = self.seats.drain(..).map(consume).collect();
        let job = workload::job(self.processor, self.keep);
        let target = JobTarget { store: self.store.clone(), job };
        let producers = Producers::start(&target, keys, &flow.round);
        let counts = || self.store.counts_with(flow.settled.load(Ordering::Relaxed));
        let mut measured = window(&flow.round.phase, times, counts).await;
        let produced = producers.join().await;
        let closed = flow.close().await;
        for consumer in consumers {
            let (seats, calls) = consumer.await??;
            self.seats.push(seats);
            measured.calls.extend(calls);
        }
        trimming.await??;
        produced.and(closed).map(|()| measured)
    }
}

/// The store, given jobs.
#[derive(Clone)]
struct JobTarget {
    store: BenchStore,
    job: JobDraft,
}

impl Target for JobTarget {
    async fn append(&self, sender: &mut Sender, count: usize) -> Result<(), Failure> {
        let shard = sender.shard();
        let drafts = sender.drafts(shard, count, Some(self.job))?;
        self.store.append_to(shard, drafts).await.map(drop)
    }
}

async fn seize(store: &BenchStore, processor: ProcessorId, shard: u32) -> Result<OwnedSeat, Failure> {
    let seat = Seat { shard: store.shard(shard), processor };
    let seize = Seize {
        seat,
        incarnation: store.store.about().incarnation,
        expect: None,
        nonce: Nonce(u128::from(shard) + 1),
        node: Bytes::from_static(b"bench"),
    };
    let resume = store.store.seize(seize).await?;
    Ok(OwnedSeat { seat, fence: resume.progress.fence, last: resume.progress.window.floor(), seen: 0 })
}

async fn trim_all_the_time(store: BenchStore, flow: Flow) -> Result<(), Failure> {
    loop {
        for shard in 0..SHARDS {
            if flow.is_closing() {
                return Ok(());
            }
            store.store.trim(Trim { shard: store.shard(shard) }).await?;
            seam::pause(TRIM_EVERY / SHARDS).await;
        }
    }
}

type Consumed = (Vec<OwnedSeat>, Vec<u32>);

async fn consume(
    store: BenchStore,
    seats: Vec<OwnedSeat>,
    flow: Flow,
    keep: Duration,
) -> Result<Consumed, Failure> {
    let outcome = consume_until_closed(&store, seats, &flow, keep).await;
    flow.leave(outcome)
}

async fn consume_until_closed(
    store: &BenchStore,
    mut seats: Vec<OwnedSeat>,
    flow: &Flow,
    keep: Duration,
) -> Result<Consumed, Failure> {
    let mut stopwatch = Stopwatch::default();
    let result = Bytes::from(vec![7; RESULT_BYTES]);
    loop {
        let mut commits = Vec::new();
        for (at, seat) in seats.iter_mut().enumerate() {
            let page = store.store.read(seat.next_page()).await?;
            if let Some(last) = page.entries.last() {
                seat.last = last.id();
                commits.push((at, page.entries.len(), seat.commit_of(page, &result, keep)));
            }
        }
        if commits.is_empty() {
            if flow.is_closing() {
                return Ok((seats, stopwatch.into_calls()));
            }
            wait_for_events(store, &mut seats, flow).await?;
            continue;
        }
        let begun = seam::now();
        let answers = commits
            .into_iter()
            .map(|(at, events, commit)| store.store.commit(commit).map(move |answer| (at, events, answer)));
        for (at, events, answer) in join_all(answers).await {
            let Committed { fence, .. } = answer?;
            seats[at].fence = fence;
            flow.settle(&mut stopwatch, begun, events);
        }
    }
}

/// Waits until one of the shards has new events, or the round closes.
async fn wait_for_events(store: &BenchStore, seats: &mut [OwnedSeat], flow: &Flow) -> Result<(), Failure> {
    let wait = |(at, seat): (usize, &OwnedSeat)| {
        let (topic, seen) = (Topic::Shard(seat.seat.shard), seat.seen);
        async move { (at, store.store.wait(topic, seen).await) }.boxed()
    };
    let news = select_all(seats.iter().enumerate().map(wait).collect::<Vec<_>>());
    let heard = match select(news, flow.closed().boxed()).await {
        futures::future::Either::Left((((at, point), _, others), _)) => {
            let others = others.into_iter().filter_map(FutureExt::now_or_never);
            std::iter::once((at, point)).chain(others).collect::<Vec<_>>()
        }
        futures::future::Either::Right(_) => Vec::new(),
    };
    for (at, point) in heard {
        seats[at].seen = point?;
    }
    Ok(())
}

impl OwnedSeat {
    fn next_page(&self) -> Read {
        Read {
            shard: self.seat.shard,
            from: ReadFrom::After(self.last),
            limit: PAGE,
            bytes: PAGE_BYTES_MAX,
            processor: None,
            states: false,
        }
    }

    /// Settles a page: every event passed, every job ended with a result.
    fn commit_of(&self, page: Page, result: &Bytes, keep: Duration) -> Commit {
        let mut commit = Commit::new(self.seat, self.fence, CommitId(u128::from(self.fence.version) + 1));
        commit.passed = page.entries.iter().map(Entry::id).collect();
        commit.jobs = page.entries.iter().map(|entry| job_end(entry.id(), result, keep)).collect();
        commit
    }
}

fn job_end(id: EventId, result: &Bytes, keep: Duration) -> JobEnd {
    JobEnd {
        id,
        end: Terminal::Done,
        error: Bytes::new(),
        attempts: 1,
        started_at: None,
        finished_at: Timestamp::default(),
        result: JobResult::Inline(result.clone()),
        keep,
    }
}
