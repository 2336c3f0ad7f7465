//! Many lanes that fail again and again: attempts per second, CPU, and what appends of others notice. Reported, without a
//! limit: trying is what the lanes ask for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{Policy, Retry};

use super::figure::reported;
use crate::context::{Context, progress};
use crate::load::{Compared, DAY, Folder, compare, draft, failing, keeping, stateless};
use crate::report::{Better, Row};
use crate::workload::PAYLOAD_BYTES;
use crate::{Failure, cpu, seam};

pub(super) const NAME: &str = "growth retry storm";

const PARTITIONS: u32 = 4;
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// More than any run has time for.
const ATTEMPTS_MAX: u32 = 1_000_000;
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
struct Sizes {
    lanes: u64,
    alone: Duration,
    measured: Duration,
}

const QUICK: Sizes =
    Sizes { lanes: 5_000, alone: Duration::from_millis(500), measured: Duration::from_secs(3) };
const LONG: Sizes = Sizes { lanes: 20_000, alone: Duration::from_secs(2), measured: Duration::from_secs(30) };

/// What the storm did.
struct Storm {
    per_second: f64,
    cpu: f64,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let lanes = sizes.lanes;
    progress(&format!("{NAME}: {lanes} lanes that fail for {:?}", sizes.measured));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (compared, storm) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let Compared { alone, beside } = compared;
    let note = format!("{lanes} lanes, back-off 1 to 2 s; {:.0} % of a core", storm.cpu);
    let attempts = reported(&format!("{NAME}, attempts"), storm.per_second, "attempts/s", note);
    let note = format!("alone {}; beside them {}", alone.summary(), beside.summary());
    let appends = reported(&format!("{NAME}, appends beside it"), beside.p99(), "ms p99", note);
    Ok(vec![
        Row { better: Better::Higher, ..attempts },
        Row { baseline: Some("alone"), baseline_rate: Some(alone.p99()), ..appends },
    ])
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Compared, Storm), Failure> {
    let failing_lanes = folder.stream("failing", keeping(PARTITIONS, DAY)).await?;
    let bystander = folder.stream("bystander", keeping(1, DAY)).await?;
    let (engine, runs) = (folder.engine(), Arc::<AtomicU64>::default());
    let policy = Policy {
        max_attempts: ATTEMPTS_MAX,
        backoff: BACKOFF,
        backoff_max: BACKOFF_MAX,
        ..Policy::default()
    };
    let settings = ProcessorSettings { policy, ..stateless() };
    engine.process("failing", "failing", settings, failing(Retry::ByPolicy, &runs)).await?;
    engine.start_upkeep();
    let storm = async move {
        let each = sizes.lanes / u64::from(PARTITIONS);
        for partition in 0..PARTITIONS {
            let one = |number| draft(&format!("lane-{partition}-{number}"), PAYLOAD_BYTES);
            failing_lanes.append_many(partition, each, one).await?;
        }
        let (start, before, cpu_before) = (seam::now(), runs.load(Ordering::Relaxed), cpu::seconds());
        seam::pause(sizes.measured).await;
        let (seconds, attempts) = (seam::seconds_since(start), runs.load(Ordering::Relaxed) - before);
        let cpu = (cpu::seconds() - cpu_before) / seconds * 100.0;
        Ok(Storm { per_second: attempts as f64 / seconds, cpu })
    };
    let compared = compare(&bystander, sizes.alone, storm).await?;
    engine.drain(DRAIN).await;
    Ok(compared)
}
