//! Trim of a shard with two events after gigabytes of other streams, and what appends notice of it.

use std::time::Duration;

use laneway_core::store::Trim;
use laneway_embedded::FileOptions;

use super::figure::at_most;
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Latencies, Stream, compare, draft, keeping, write_mib};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth sparse trim";

const TRIM_MAX_MS: f64 = 10.0;
const APPEND_MAX_MS: f64 = 20.0;
const BETWEEN_TRIMS: Duration = Duration::from_millis(50);
/// Nothing is written for so long after the first event. The trims look for the first event younger than a moment of this
/// time, so they meet everything that was written afterwards.
const GAP: Duration = Duration::from_secs(2);
/// How much older than `keep` the first event is when the trims begin.
const OVER_AGE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
struct Sizes {
    /// Of others between the two events.
    mib: u64,
    trims: usize,
    alone: Duration,
}

const QUICK: Sizes = Sizes { mib: 256, trims: 10, alone: Duration::from_millis(500) };
const LONG: Sizes = Sizes { mib: 8 << 10, trims: 20, alone: Duration::from_secs(2) };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let mib = sizes.mib;
    progress(&format!("{NAME}: two events with {mib} MiB of others between them, {} trims", sizes.trims));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (trims, compared) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note = format!(
        "the longest of {} trims of a shard with two events, {mib} MiB of others between them: {}",
        sizes.trims,
        trims.summary()
    );
    let Compared { alone, beside } = compared;
    let appends = format!("alone {}; beside the trims {}", alone.summary(), beside.summary());
    let appends =
        at_most(&format!("{NAME}, appends beside it"), beside.p999(), "ms p99.9", APPEND_MAX_MS, appends);
    Ok(vec![
        at_most(&format!("{NAME}, trim"), trims.max(), "ms", TRIM_MAX_MS, note),
        Row { baseline: Some("alone"), baseline_rate: Some(alone.p999()), ..appends },
    ])
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Latencies, Compared), Failure> {
    let mut rare = folder.stream("rare", keeping(1, DAY)).await?;
    let big = folder.stream("big", keeping(1, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    rare.append_one(draft("rare", 10)?).await?;
    let first = seam::now();
    seam::pause(GAP).await;
    write_mib(&big, sizes.mib).await?;
    rare.append_one(draft("rare", 10)?).await?;
    folder.store.checkpoint()?;
    let age = seam::now().duration_since(first) + sizes.alone;
    rare.change(keeping(1, age - OVER_AGE)).await?;
    let (compared, trims) = compare(&bystander, sizes.alone, trim(rare, sizes.trims)).await?;
    Ok((Latencies::new(trims), compared))
}

/// Microseconds that each of so many trims takes.
async fn trim(rare: Stream, trims: usize) -> Result<Vec<u32>, Failure> {
    let mut took = Vec::new();
    for _ in 0..trims {
        seam::pause(BETWEEN_TRIMS).await;
        let begun = seam::now();
        rare.store.trim(Trim { shard: rare.shard(0) }).await?;
        took.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
    }
    Ok(took)
}
