//! Getting one pending job while the log has many sealed segments whose ends reach far back, and what appends of others
//! notice of several pollers.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Commit, JobEnd, JobResult, JobState, Jobs, Receipt};
use laneway_core::{CommitId, Draft, EventId, JobDraft, JobNumber, Kind, ProcessorId, Terminal, Timestamp};
use laneway_embedded::FileOptions;

use super::figure::{at_most, undisturbed};
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Latencies, Stream, compare, keeping};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth job lookup";

const GET_MAX_MS: f64 = 0.3;
const GETS: u64 = 100;
const POLLERS: u64 = 8;
const POLL_EVERY: Duration = Duration::from_millis(100);
/// Jobs that were there first; one of the first few ends with every segment, the others stay pending.
const OLD_JOBS: u64 = 1_000;
const OLD_ENDED: u64 = 400;
/// Two of these fill a segment of the smallest size.
const LARGE_BYTES: usize = 700_000;
const SEGMENT_BYTES: u64 = 3 << 19;

#[derive(Clone, Copy)]
struct Sizes {
    segments: u64,
    polling: Duration,
}

const QUICK: Sizes = Sizes { segments: 80, polling: Duration::from_secs(1) };
const LONG: Sizes = Sizes { segments: 300, polling: Duration::from_secs(10) };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let segments = sizes.segments;
    progress(&format!("{NAME}: a pending job, {segments} segments with ends"));
    let runtime = seam::runtime()?;
    let options = FileOptions {
        segment_bytes: SEGMENT_BYTES,
        checkpoint_every: Duration::from_millis(500),
        ..FileOptions::default()
    };
    let folder = Folder::open(&context.place.join(NAME), options)?;
    let (gets, compared) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note =
        format!("median of {GETS} lookups of pending jobs, {segments} sealed segments: {}", gets.summary());
    let pollers = format!("appends beside {POLLERS} pollers that each ask every {POLL_EVERY:?}");
    Ok(vec![
        at_most(&format!("{NAME}, get"), gets.p50(), "ms", GET_MAX_MS, note),
        undisturbed(&format!("{NAME}, appends beside {POLLERS} pollers"), &compared, &pollers),
    ])
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Latencies, Compared), Failure> {
    let mut jobs = folder.stream("jobs", keeping(1, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    let responder = jobs.register("jobs").await?;
    fill(&jobs, responder, sizes.segments).await?;
    folder.store.checkpoint()?;
    let mut took = Vec::new();
    for number in 0..GETS {
        let begun = seam::now();
        get(&jobs, number).await?;
        took.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
    }
    let (compared, ()) = compare(&bystander, sizes.polling, poll(jobs, sizes.polling)).await?;
    Ok((Latencies::new(took), compared))
}

/// Every segment has the end of an old job and that of a new one, so that the ids of its ends reach far.
async fn fill(jobs: &Stream, responder: ProcessorId, segments: u64) -> Result<(), Failure> {
    let job = |bytes: usize| Draft {
        job: Some(JobDraft { responder, keep: DAY }),
        ..Draft::new(None, Kind::default(), vec![7; bytes])
    };
    jobs.append(0, (0..OLD_JOBS).map(|_| job(20)).collect()).await?;
    let seat = jobs.seat(0, responder);
    let mut fence = jobs.seize(seat).await?;
    for number in 0..segments {
        let appended = jobs.append(0, vec![job(LARGE_BYTES), job(LARGE_BYTES)]).await?;
        let Some(Receipt::New { id: new, .. }) = appended.receipts.last() else {
            return Err(format!("an append was answered with {:?}", appended.receipts).into());
        };
        let ended = [EventId(number % OLD_ENDED + 1), *new];
        let mut commit = Commit::new(seat, fence, CommitId(u128::from(number) + 1));
        commit.passed = ended.into_iter().collect();
        commit.jobs = ended.into_iter().map(done).collect();
        fence = jobs.store.commit(commit).await?.fence;
    }
    Ok(())
}

fn done(id: EventId) -> JobEnd {
    JobEnd {
        id,
        end: Terminal::Done,
        error: Bytes::new(),
        attempts: 0,
        started_at: None,
        finished_at: Timestamp(0),
        result: JobResult::None,
        keep: DAY,
    }
}

/// Gets one of the old jobs that are still pending.
async fn get(jobs: &Stream, number: u64) -> Result<(), Failure> {
    let id = EventId(OLD_ENDED + 1 + number % (OLD_JOBS - OLD_ENDED));
    let get = Jobs::Get { shard: jobs.shard(0), numbers: vec![JobNumber::Event(id)], results: false };
    match jobs.store.jobs(get).await?.first().map(|view| &view.state) {
        Some(JobState::Pending { .. }) => Ok(()),
        other => Err(format!("pending job {id} was found as {other:?}").into()),
    }
}

async fn poll(jobs: Stream, length: Duration) -> Result<(), Failure> {
    let poller = |number| {
        let jobs = jobs.clone();
        seam::spawn(async move {
            let start = seam::now();
            while seam::now().duration_since(start) < length {
                get(&jobs, number).await?;
                seam::pause(POLL_EVERY).await;
            }
            Ok::<_, Failure>(())
        })
    };
    let pollers: Vec<_> = (0..POLLERS).map(poller).collect();
    for poller in pollers {
        poller.await??;
    }
    Ok(())
}
