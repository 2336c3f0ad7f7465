//! Reading a stream of two events with gigabytes of other streams between them, and what other calls notice while four
//! such readers read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use laneway_core::EventId;
use laneway_core::store::{Read, ReadFrom};
use laneway_embedded::FileOptions;

use super::figure::{at_most, undisturbed};
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Latencies, Stream, compare, draft, keeping, write_mib};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth sparse stream";

const READ_MAX_MS: f64 = 10.0;
const READERS: usize = 4;
/// What a reader does before it reads again.
const BETWEEN_READS: Duration = Duration::from_millis(5);
const ROUNDS: usize = 3;

#[derive(Clone, Copy)]
struct Sizes {
    /// Of others between the two events.
    mib: u64,
    /// How long the readers read.
    readers: Duration,
}

const QUICK: Sizes = Sizes { mib: 256, readers: Duration::from_secs(1) };
const LONG: Sizes = Sizes { mib: 6 << 10, readers: Duration::from_secs(10) };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let Sizes { mib, readers } = context.choose(QUICK, LONG);
    progress(&format!("{NAME}: two events with {mib} MiB of others between them"));
    let runtime = seam::runtime()?;
    let path = context.place.join(NAME);
    let folder = Folder::open(&path, FileOptions::default())?;
    runtime.block_on(fill(&folder, mib))?;
    folder.close()?;
    // Opened again: what the store remembers of its writes would help the reader.
    let folder = Folder::open(&path, FileOptions::default())?;
    let (reads, compared) = runtime.block_on(measure(&folder, readers))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note =
        format!("the longest of {ROUNDS} reads of both events, {mib} MiB of other streams between them");
    let readers =
        format!("appends to another stream beside {READERS} readers that read every {BETWEEN_READS:?}");
    Ok(vec![
        at_most(&format!("{NAME}, read"), reads.max(), "ms", READ_MAX_MS, note),
        undisturbed(&format!("{NAME}, appends beside {READERS} readers"), &compared, &readers),
    ])
}

async fn fill(folder: &Folder, mib: u64) -> Result<(), Failure> {
    let rare = folder.stream("rare", keeping(1, DAY)).await?;
    let big = folder.stream("big", keeping(1, DAY)).await?;
    folder.stream("bystander", keeping(1, DAY)).await?;
    rare.append_one(draft("rare", 10)?).await?;
    write_mib(&big, mib).await?;
    rare.append_one(draft("rare", 10)?).await?;
    Ok(())
}

async fn measure(folder: &Folder, length: Duration) -> Result<(Latencies, Compared), Failure> {
    let (rare, bystander) = (folder.existing("rare").await?, folder.existing("bystander").await?);
    let mut reads = Vec::new();
    for _ in 0..ROUNDS {
        let begun = seam::now();
        read_both(&rare).await?;
        reads.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
    }
    let (compared, ()) = compare(&bystander, length, read_beside(rare, length)).await?;
    Ok((Latencies::new(reads), compared))
}

async fn read_both(rare: &Stream) -> Result<(), Failure> {
    let read = Read {
        shard: rare.shard(0),
        from: ReadFrom::After(EventId(0)),
        limit: 10,
        bytes: 1 << 20,
        processor: None,
        states: false,
    };
    let found = rare.store.read(read).await?.entries.len();
    if found == 2 { Ok(()) } else { Err(format!("{found} of 2 events were read").into()) }
}

/// Several readers, for so long.
async fn read_beside(rare: Stream, length: Duration) -> Result<(), Failure> {
    let stop = Arc::<AtomicBool>::default();
    let reader = |_| {
        let (rare, stop) = (rare.clone(), Arc::clone(&stop));
        seam::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                read_both(&rare).await?;
                seam::pause(BETWEEN_READS).await;
            }
            Ok::<_, Failure>(())
        })
    };
    let readers: Vec<_> = (0..READERS).map(reader).collect();
    seam::pause(length).await;
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await??;
    }
    Ok(())
}
