//! Counting many scheduled drafts, and what appends of others notice of it.

use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{Delay, DelayMode, Draft, StartAfter};
use laneway_embedded::FileOptions;

use super::figure::unblocked;
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Latencies, Stream, compare, draft, keeping};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth counting drafts";

const DRAFT_BYTES: usize = 500;
const BETWEEN_COUNTS: Duration = Duration::from_millis(20);

#[derive(Clone, Copy)]
struct Sizes {
    drafts: u64,
    counts: usize,
    alone: Duration,
}

const QUICK: Sizes = Sizes { drafts: 30_000, counts: 10, alone: Duration::from_millis(500) };
const LONG: Sizes = Sizes { drafts: 300_000, counts: 20, alone: Duration::from_secs(2) };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let drafts = sizes.drafts;
    progress(&format!("{NAME}: {drafts} drafts of {DRAFT_BYTES} bytes, counted {} times", sizes.counts));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (compared, counts) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note = format!("{drafts} scheduled drafts of {DRAFT_BYTES} bytes; counts {}", counts.summary());
    Ok(unblocked(&format!("{NAME}, appends beside it"), &compared, &note))
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Compared, Latencies), Failure> {
    let scheduled = folder.stream("scheduled", keeping(1, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    let tomorrow = Delay { until: StartAfter::Delay(DAY), mode: DelayMode::Join };
    let one = |number| Ok(Draft { delay: Some(tomorrow), ..draft(&format!("key-{number}"), DRAFT_BYTES)? });
    scheduled.append_many(0, sizes.drafts, one).await?;
    folder.store.checkpoint()?;
    compare(&bystander, sizes.alone, count(scheduled, sizes)).await
}

async fn count(scheduled: Stream, sizes: Sizes) -> Result<Latencies, Failure> {
    let mut took = Vec::new();
    for _ in 0..sizes.counts {
        seam::pause(BETWEEN_COUNTS).await;
        let begun = seam::now();
        let rows = scheduled.store.query(Query::Counts(scheduled.shard(0))).await?;
        took.push(u32::try_from(seam::now().duration_since(begun).as_micros())?);
        match rows {
            Rows::Counts(counts) if counts.scheduled == sizes.drafts => {}
            other => return Err(format!("{} drafts were counted as {other:?}", sizes.drafts).into()),
        }
    }
    Ok(Latencies::new(took))
}
