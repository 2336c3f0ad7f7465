//! Readers of results of 16 MiB, and what appends of others notice of them.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Commit, JobEnd, JobResult, Jobs, Stash, Trim};
use laneway_core::{
    CommitId, Draft, Fence, JobDraft, JobNumber, Nonce, ProcessorId, Seat, Terminal, Timestamp,
};
use laneway_embedded::FileOptions;

use super::figure::unblocked;
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Latencies, Stream, compare, draft, keeping};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth large results";

const CHUNKS: u32 = 16;
const CHUNK_BYTES: usize = 1 << 20;
const READERS: u64 = 2;
const BETWEEN_READS: Duration = Duration::from_millis(50);
const STASHED: Nonce = Nonce(7);

#[derive(Clone, Copy)]
struct Sizes {
    results: u64,
    /// How long they are read.
    reading: Duration,
    alone: Duration,
}

const QUICK: Sizes = Sizes { results: 4, reading: Duration::from_secs(1), alone: Duration::from_millis(500) };
const LONG: Sizes = Sizes { results: 20, reading: Duration::from_secs(10), alone: Duration::from_secs(2) };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let results = sizes.results;
    progress(&format!("{NAME}: {results} of 16 MiB, {READERS} readers"));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (compared, reads) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note = format!(
        "{results} results of 16 MiB, {READERS} readers that read one every {BETWEEN_READS:?}, then a trim; reads {}",
        reads.summary()
    );
    Ok(unblocked(&format!("{NAME}, appends beside readers"), &compared, &note))
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Compared, Latencies), Failure> {
    let mut jobs = folder.stream("jobs", keeping(1, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    let processor = jobs.register("jobs").await?;
    let seat = jobs.seat(0, processor);
    let mut fence = jobs.seize(seat).await?;
    let mut numbers = Vec::new();
    for _ in 0..sizes.results {
        let (ended, number) = end_one(&jobs, seat, fence, processor).await?;
        fence = ended;
        numbers.push(number);
    }
    folder.store.checkpoint()?;
    compare(&bystander, sizes.alone, read_all(jobs, numbers, sizes.reading)).await
}

/// Submits a job and ends it with a large result.
async fn end_one(
    jobs: &Stream,
    seat: Seat,
    fence: Fence,
    responder: ProcessorId,
) -> Result<(Fence, JobNumber), Failure> {
    let job = Some(JobDraft { responder, keep: DAY });
    let id = jobs.append_one(Draft { job, ..draft("job", 10)? }).await?;
    for index in 0..CHUNKS {
        let bytes = Bytes::from(vec![7; CHUNK_BYTES]);
        jobs.store.stash(Stash { shard: seat.shard, id, nonce: STASHED, index, bytes }).await?;
    }
    let mut commit = Commit::new(seat, fence, CommitId(u128::from(id.0)));
    commit.passed = [id].into_iter().collect();
    commit.jobs = vec![JobEnd {
        id,
        end: Terminal::Done,
        error: Bytes::new(),
        attempts: 1,
        started_at: None,
        finished_at: Timestamp(0),
        result: JobResult::Stashed { nonce: STASHED, chunks: CHUNKS },
        keep: DAY,
    }];
    Ok((jobs.store.commit(commit).await?.fence, JobNumber::Event(id)))
}

/// Several readers for so long, then a trim.
async fn read_all(jobs: Stream, numbers: Vec<JobNumber>, length: Duration) -> Result<Latencies, Failure> {
    let reader = |reader| {
        let (jobs, numbers) = (jobs.clone(), numbers.clone());
        seam::spawn(async move { read_for(&jobs, &numbers, reader, length).await })
    };
    let readers: Vec<_> = (0..READERS).map(reader).collect();
    let mut took = Vec::new();
    for reader in readers {
        took.extend(reader.await??);
    }
    jobs.store.trim(Trim { shard: jobs.shard(0) }).await?;
    Ok(Latencies::new(took))
}

async fn read_for(
    jobs: &Stream,
    numbers: &[JobNumber],
    seed: u64,
    length: Duration,
) -> Result<Vec<u32>, Failure> {
    let (start, mut rng, mut took) = (seam::now(), fastrand::Rng::with_seed(seed), Vec::new());
    while seam::now().duration_since(start) < length {
        let begun = seam::now();
        let number = numbers[rng.usize(..numbers.len())];
        jobs.store.jobs(Jobs::Get { shard: jobs.shard(0), numbers: vec![number], results: true }).await?;
        took.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
        seam::pause(BETWEEN_READS).await;
    }
    Ok(took)
}
