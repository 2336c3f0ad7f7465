//! A parked event that is retried, with gigabytes of other streams between it and the next event of its lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::Key;
use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::Policy;

use super::figure::at_most;
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, draft, failing_until, keeping, stateless, write_mib};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth far lane";

const RETRY_MAX_MS: f64 = 20.0;
const LANE: &str = "sick";
/// How long it may take until an event runs, and how often to check.
const WITHIN: Duration = Duration::from_secs(60);
const CHECK_EVERY: Duration = Duration::from_micros(200);
/// Until a failed event is parked and the next has been read.
const PARK: Duration = Duration::from_millis(500);

#[derive(Clone, Copy)]
struct Sizes {
    /// Of others between the two events of the lane.
    mib: u64,
}

const QUICK: Sizes = Sizes { mib: 256 };
const LONG: Sizes = Sizes { mib: 4 << 10 };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let Sizes { mib } = context.choose(QUICK, LONG);
    progress(&format!("{NAME}: a parked event, {mib} MiB of others, and the next event of its lane"));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let [first, second] = runtime.block_on(measure(&folder, mib))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note = format!(
        "from the retry of the parked event to its run, {mib} MiB of other streams between it and the next; both had run \
         after {second:.1} ms"
    );
    Ok(vec![at_most(&format!("{NAME}, retry to run"), first, "ms", RETRY_MAX_MS, note)])
}

/// Milliseconds from the retry until the first and until both events of the lane have run.
async fn measure(folder: &Folder, mib: u64) -> Result<[f64; 2], Failure> {
    let lane = folder.stream("lane", keeping(1, DAY)).await?;
    let big = folder.stream("big", keeping(1, DAY)).await?;
    let engine = folder.engine();
    let (mended, runs) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let policy = Policy { max_attempts: 1, ..Policy::default() };
    let settings = ProcessorSettings { policy, ..stateless() };
    engine.process("lane", "lane", settings, failing_until(&mended, &runs)).await?;
    let parked = lane.append_one(draft(LANE, 100)?).await?;
    until(&runs, 1).await?;
    write_mib(&big, mib).await?;
    lane.append_one(draft(LANE, 100)?).await?;
    seam::pause(PARK).await;
    mended.store(true, Ordering::Relaxed);
    let start = seam::now();
    engine.operator().retry("lane", &Key::new(LANE.to_owned())?, parked).await?;
    until(&runs, 2).await?;
    let first = seam::seconds_since(start) * 1e3;
    until(&runs, 3).await?;
    let second = seam::seconds_since(start) * 1e3;
    engine.drain(WITHIN).await;
    Ok([first, second])
}

/// Waits until so many runs were begun.
async fn until(runs: &AtomicU64, count: u64) -> Result<(), Failure> {
    let start = seam::now();
    while runs.load(Ordering::Relaxed) < count {
        if seam::now().duration_since(start) > WITHIN {
            return Err(format!("{} of {count} runs after {WITHIN:?}", runs.load(Ordering::Relaxed)).into());
        }
        seam::pause(CHECK_EVERY).await;
    }
    Ok(())
}
