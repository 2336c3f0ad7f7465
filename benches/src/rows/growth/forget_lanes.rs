//! Forgetting many idle lanes, and what appends of others notice of it.

use std::time::Duration;

use laneway_core::StreamSettings;
use laneway_core::store::Trim;
use laneway_embedded::FileOptions;

use super::figure::unblocked;
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Latencies, Stream, compare, draft, keeping};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth forgetting lanes";

/// How long a lane must be idle.
const IDLE: Duration = Duration::from_secs(2);
/// How long the sweep may take.
const WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
struct Sizes {
    lanes: u64,
    alone: Duration,
}

const QUICK: Sizes = Sizes { lanes: 40_000, alone: Duration::from_millis(500) };
const LONG: Sizes = Sizes { lanes: 400_000, alone: Duration::from_secs(2) };

/// What the sweep did.
struct Swept {
    rows: u64,
    trims: Latencies,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let lanes = sizes.lanes;
    progress(&format!("{NAME}: {lanes} lanes that were idle for {IDLE:?}"));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (compared, swept) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note = format!("{lanes} lanes, {} rows gone; trims {}", swept.rows, swept.trims.summary());
    Ok(unblocked(&format!("{NAME}, appends beside it"), &compared, &note))
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Compared, Swept), Failure> {
    let settings = StreamSettings { forget_lanes_after: Some(IDLE), ..keeping(1, Duration::ZERO) };
    let lanes = folder.stream("lanes", settings).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    lanes.append_many(0, sizes.lanes, |number| draft(&format!("key-{number:09}"), 20)).await?;
    // The events go at once, the ends of the lanes when they are old enough.
    lanes.store.trim(Trim { shard: lanes.shard(0) }).await?;
    seam::pause(IDLE).await;
    compare(&bystander, sizes.alone, sweep(lanes)).await
}

/// Trims until nothing more goes.
async fn sweep(lanes: Stream) -> Result<Swept, Failure> {
    let start = seam::now();
    let (mut rows, mut took) = (0, Vec::new());
    while seam::now().duration_since(start) < WITHIN {
        let begun = seam::now();
        let trimmed = lanes.store.trim(Trim { shard: lanes.shard(0) }).await?;
        took.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
        rows += trimmed.rows;
        if !trimmed.more && trimmed.rows == 0 {
            break;
        }
    }
    Ok(Swept { rows, trims: Latencies::new(took) })
}
