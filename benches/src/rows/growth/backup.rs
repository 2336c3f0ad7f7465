//! An online backup under load, and what appends of others notice of it.

use std::path::PathBuf;
use std::time::Duration;

use laneway_embedded::FileOptions;

use super::figure::{at_most, reported};
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, Stream, Traffic, compare, keeping, write_mib};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth backup";

const APPEND_MAX_MS: f64 = 50.0;
const COPY: &str = "growth backup copy";

#[derive(Clone)]
struct Sizes {
    /// What the store holds when the backup begins.
    mib: u64,
    /// Traffic meanwhile.
    mib_per_second: u64,
    alone: Duration,
    options: FileOptions,
}

impl Sizes {
    /// Appends wait when this much was written since the last checkpoint: little, so that a short backup meets it.
    fn quick() -> Self {
        let options = FileOptions {
            checkpoint_bytes: 16 << 20,
            backlog_bytes: 32 << 20,
            segment_bytes: 16 << 20,
            ..FileOptions::default()
        };
        Self { mib: 512, mib_per_second: 60, alone: Duration::from_millis(500), options }
    }

    fn long() -> Self {
        let options = FileOptions::default();
        Self { mib: 6 << 10, mib_per_second: 60, alone: Duration::from_secs(2), options }
    }
}

/// What was copied, and how long that took.
struct Copied {
    mib: u64,
    seconds: f64,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(Sizes::quick(), Sizes::long());
    progress(&format!("{NAME}: {} MiB, beside {} MiB/s", sizes.mib, sizes.mib_per_second));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), sizes.options.clone())?;
    let copy = context.place.join(COPY);
    let (compared, copied) = runtime.block_on(measure(&folder, &sizes, copy))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(COPY)?;
    context.place.clear(NAME)?;
    let Compared { alone, beside } = compared;
    let note = format!(
        "{} MiB copied in {:.1} s beside {} MiB/s; alone {}; beside it {}",
        copied.mib,
        copied.seconds,
        sizes.mib_per_second,
        alone.summary(),
        beside.summary()
    );
    let row = |row, alone| Row { baseline: Some("alone"), baseline_rate: Some(alone), ..row };
    let p999 = at_most(&format!("{NAME}, appends beside it"), beside.p999(), "ms p99.9", APPEND_MAX_MS, note);
    let longest = reported(&format!("{NAME}, longest append"), beside.max(), "ms", String::new());
    Ok(vec![row(p999, alone.p999()), row(longest, alone.max())])
}

async fn measure(folder: &Folder, sizes: &Sizes, copy: PathBuf) -> Result<(Compared, Copied), Failure> {
    let big = folder.stream("big", keeping(1, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    write_mib(&big, sizes.mib).await?;
    folder.store.checkpoint()?;
    compare(&bystander, sizes.alone, back_up(folder.clone(), big, sizes.mib_per_second, copy)).await
}

async fn back_up(folder: Folder, big: Stream, mib_per_second: u64, copy: PathBuf) -> Result<Copied, Failure> {
    let traffic = Traffic::start(&big, mib_per_second);
    let start = seam::now();
    let store = folder.store.clone();
    let backup = seam::blocking(move || store.backup(copy)).await??;
    let seconds = seam::seconds_since(start);
    traffic.stop().await?;
    Ok(Copied { mib: backup.bytes >> 20, seconds })
}
