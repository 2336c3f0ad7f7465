//! Trims of a partition with large dead letters, and what appends of others notice of them.

use std::time::Duration;

use laneway_core::store::{Commit, DeadLetter, Ending, Entry, Read, ReadFrom, Trim};
use laneway_core::{CommitId, Event, EventId, Fence, Seat, Terminal, Timestamp};
use laneway_embedded::FileOptions;

use super::figure::unblocked;
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Latencies, Stream, compare, draft, keeping};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth dead letters";

const LETTER_BYTES: usize = 1 << 20;
const BETWEEN_TRIMS: Duration = Duration::from_millis(20);

#[derive(Clone, Copy)]
struct Sizes {
    letters: u64,
    trims: usize,
    alone: Duration,
}

const QUICK: Sizes = Sizes { letters: 40, trims: 10, alone: Duration::from_millis(500) };
const LONG: Sizes = Sizes { letters: 200, trims: 20, alone: Duration::from_secs(2) };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let letters = sizes.letters;
    progress(&format!("{NAME}: {letters} of 1 MiB, swept {} times", sizes.trims));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (compared, trims) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note = format!("{letters} dead letters of 1 MiB in one partition; trims {}", trims.summary());
    Ok(unblocked(&format!("{NAME}, appends beside trims"), &compared, &note))
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Compared, Latencies), Failure> {
    let mut failed = folder.stream("failed", keeping(1, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    let processor = failed.register("failed").await?;
    let seat = failed.seat(0, processor);
    let mut fence = failed.seize(seat).await?;
    for number in 1..=sizes.letters {
        fence = bury_one(&failed, seat, fence, number).await?;
    }
    folder.store.checkpoint()?;
    compare(&bystander, sizes.alone, trim(failed, sizes.trims)).await
}

/// Appends an event and commits it as a dead letter.
async fn bury_one(failed: &Stream, seat: Seat, fence: Fence, number: u64) -> Result<Fence, Failure> {
    let id = failed.append_one(draft("failed", LETTER_BYTES)?).await?;
    let event = read_one(failed, id).await?;
    let mut commit = Commit::new(seat, fence, CommitId(u128::from(number)));
    commit.passed = [id].into_iter().collect();
    commit.endings = vec![Ending { id, end: Terminal::Failed, reason: Default::default(), winner: None }];
    commit.dead = vec![DeadLetter { event, cause: "it failed".into(), attempts: 5, at: Timestamp(0) }];
    Ok(failed.store.commit(commit).await?.fence)
}

async fn read_one(failed: &Stream, id: EventId) -> Result<Event, Failure> {
    let read = Read {
        shard: failed.shard(0),
        from: ReadFrom::Ids(vec![id]),
        limit: 1,
        bytes: 8 << 20,
        processor: None,
        states: false,
    };
    match failed.store.read(read).await?.entries.pop() {
        Some(Entry::Event(event)) => Ok(event),
        other => Err(format!("event {id} was read as {other:?}").into()),
    }
}

async fn trim(failed: Stream, trims: usize) -> Result<Latencies, Failure> {
    let mut took = Vec::new();
    for _ in 0..trims {
        seam::pause(BETWEEN_TRIMS).await;
        let begun = seam::now();
        failed.store.trim(Trim { shard: failed.shard(0) }).await?;
        took.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
    }
    Ok(Latencies::new(took))
}
