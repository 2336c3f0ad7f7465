//! Many delayed events that are due at one moment: how fast they run, and what appends of others notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::{Clock, Delay, DelayMode, Draft, StartAfter, SystemClock, Timestamp};
use laneway_embedded::FileOptions;

use super::figure::{at_least, at_most};
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, compare, counting, draft, keeping, stateless};
use crate::report::Row;
use crate::workload::PAYLOAD_BYTES;
use crate::{Failure, cpu, seam};

pub(super) const NAME: &str = "growth due at once";

const RATE_MIN: f64 = 100_000.0;
const APPEND_MAX_MS: f64 = 10.0;
const CHECK_EVERY: Duration = Duration::from_millis(1);
const WITHIN: Duration = Duration::from_secs(300);

#[derive(Clone, Copy)]
struct Sizes {
    drafts: u64,
    /// Time to append them before they are due.
    before: Duration,
    alone: Duration,
}

const QUICK: Sizes =
    Sizes { drafts: 20_000, before: Duration::from_secs(3), alone: Duration::from_millis(500) };
const LONG: Sizes = Sizes { drafts: 200_000, before: Duration::from_secs(25), alone: Duration::from_secs(2) };

/// What the runs took.
struct Ran {
    seconds: f64,
    cpu_seconds: f64,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let drafts = sizes.drafts;
    progress(&format!("{NAME}: {drafts} events due at one moment"));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (compared, ran) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note =
        format!("{drafts} delayed events of one partition, from when they were due until the last had run");
    let rate = at_least(&format!("{NAME}, runs"), drafts as f64 / ran.seconds, "runs/s", RATE_MIN, note);
    let Compared { alone, beside } = compared;
    let note = format!("alone {}; meanwhile {}", alone.summary(), beside.summary());
    let name = format!("{NAME}, appends beside them");
    Ok(vec![
        Row { cpu_s_per_million: Some(cpu::per_million(ran.cpu_seconds, drafts)), ..rate },
        Row {
            baseline: Some("alone"),
            baseline_rate: Some(alone.p99()),
            p50_ms: Some(beside.p50()),
            p99_ms: Some(beside.p99()),
            ..at_most(&name, beside.p99(), "ms p99", APPEND_MAX_MS, note)
        },
    ])
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Compared, Ran), Failure> {
    let delayed = folder.stream("delayed", keeping(1, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    let due = SystemClock.calendar().after(sizes.before);
    delayed.append_many(0, sizes.drafts, |number| delayed_draft(number, due)).await?;
    let (engine, runs) = (folder.engine(), Arc::<AtomicU64>::default());
    engine.process("delayed", "delayed", stateless(), counting(&runs)).await?;
    let early = due.before(sizes.alone);
    if SystemClock.calendar() > early {
        return Err(format!("{} events took longer than {:?} to append", sizes.drafts, sizes.before).into());
    }
    while SystemClock.calendar() < early {
        seam::pause(CHECK_EVERY).await;
    }
    let compared = compare(&bystander, sizes.alone, run_all(runs, sizes.drafts)).await?;
    engine.drain(WITHIN).await;
    Ok(compared)
}

/// Waits until all have run.
async fn run_all(runs: Arc<AtomicU64>, count: u64) -> Result<Ran, Failure> {
    let (start, cpu_before) = (seam::now(), cpu::seconds());
    while runs.load(Ordering::Relaxed) < count {
        if seam::now().duration_since(start) > WITHIN {
            return Err(
                format!("{} of {count} have run after {WITHIN:?}", runs.load(Ordering::Relaxed)).into()
            );
        }
        seam::pause(CHECK_EVERY).await;
    }
    Ok(Ran { seconds: seam::seconds_since(start), cpu_seconds: cpu::seconds() - cpu_before })
}

fn delayed_draft(number: u64, due: Timestamp) -> Result<Draft, Failure> {
    let delay = Some(Delay { until: StartAfter::At(due), mode: DelayMode::Join });
    Ok(Draft { delay, ..draft(&format!("key-{number}"), PAYLOAD_BYTES)? })
}
