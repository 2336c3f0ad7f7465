//! Many quiet partitions beside a busy stream: how long their events wait for a run, and what that costs.
//!
//! The busy stream alone is measured too, because it needs CPU of its own: what both take together is compared with the
//! sum of what each takes alone.

use std::time::Duration;

use laneway_embedded::FileOptions;

use super::figure::{UNDISTURBED, at_most};
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, Latencies, RunWaits, Stream, Traffic, keeping, stateless};
use crate::report::Row;
use crate::{Failure, cpu, seam};

pub(super) const NAME: &str = "growth quiet partitions";

const BUSY_PARTITIONS: u32 = 4;
const WARM: Duration = Duration::from_secs(1);
/// How long the last events may take; what has not run by then counts with its age.
const FINISH: Duration = Duration::from_secs(10);
/// CPU of both together over the sum of each alone.
const CPU_MAX: f64 = 1.5;

#[derive(Clone, Copy)]
struct Sizes {
    partitions: u32,
    /// Events over all of them, each second.
    per_second: u32,
    busy_mib_per_second: u64,
    /// The first part of a run, which is not measured: what grows, grows meanwhile.
    before: Duration,
    measured: Duration,
}

const QUICK: Sizes = Sizes {
    partitions: 512,
    per_second: 100,
    busy_mib_per_second: 24,
    before: Duration::from_secs(1),
    measured: Duration::from_secs(2),
};
const LONG: Sizes =
    Sizes { per_second: 50, before: Duration::from_secs(40), measured: Duration::from_secs(20), ..QUICK };

/// Which of both run.
#[derive(Clone, Copy)]
enum Load {
    Quiet,
    Busy,
    Both,
}

/// What one run gave.
struct Outcome {
    waits: Latencies,
    not_run: usize,
    /// Share of one core, in percent.
    cpu: f64,
    mib_per_second: f64,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    progress(&format!(
        "{NAME}: {} partitions with {} events/s over all, alone and beside {} MiB/s",
        sizes.partitions, sizes.per_second, sizes.busy_mib_per_second
    ));
    let measure = |load| measure(context, sizes, load);
    let (quiet, busy, both) = (measure(Load::Quiet)?, measure(Load::Busy)?, measure(Load::Both)?);
    let waited = Row {
        baseline: Some("without the busy stream"),
        baseline_rate: Some(quiet.waits.p99()),
        p50_ms: Some(both.waits.p50()),
        p99_ms: Some(both.waits.p99()),
        ..at_most(
            &format!("{NAME}, append to run"),
            both.waits.p99(),
            "ms p99",
            UNDISTURBED * quiet.waits.p99(),
            format!(
                "{} partitions, {} events/s over all, beside {:.0} of {} MiB/s: {}, {} had not run; without the busy stream {}",
                sizes.partitions,
                sizes.per_second,
                both.mib_per_second,
                sizes.busy_mib_per_second,
                both.waits.summary(),
                both.not_run,
                quiet.waits.summary()
            ),
        )
    };
    let each = quiet.cpu + busy.cpu;
    let used = Row {
        baseline: Some("each alone, summed"),
        baseline_rate: Some(each),
        ..at_most(
            &format!("{NAME}, CPU"),
            both.cpu,
            "% of a core",
            CPU_MAX * each,
            format!("quiet alone {:.1} %, busy alone {:.1} %", quiet.cpu, busy.cpu),
        )
    };
    Ok(vec![waited, used])
}

fn measure(context: &Context, sizes: Sizes, load: Load) -> Result<Outcome, Failure> {
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let outcome = runtime.block_on(measure_on(&folder, sizes, load))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    Ok(outcome)
}

async fn measure_on(folder: &Folder, sizes: Sizes, load: Load) -> Result<Outcome, Failure> {
    let busy = folder.stream("busy", keeping(BUSY_PARTITIONS, DAY)).await?;
    let quiet = folder.stream("quiet", keeping(sizes.partitions, DAY)).await?;
    let (engine, waits) = (folder.engine(), RunWaits::default());
    engine.process("quiet", "quiet", stateless(), waits.handler()).await?;
    let traffic = match load {
        Load::Quiet => None,
        Load::Busy | Load::Both => Some(Traffic::start(&busy, sizes.busy_mib_per_second)),
    };
    seam::pause(WARM).await;
    send(&quiet, &waits, sizes, load, sizes.before).await?;
    waits.take();
    let mib = || traffic.as_ref().map_or(0, Traffic::mib);
    let (start, cpu_before, mib_before) = (seam::now(), cpu::seconds(), mib());
    send(&quiet, &waits, sizes, load, sizes.measured).await?;
    let seconds = seam::seconds_since(start);
    let cpu = (cpu::seconds() - cpu_before) / seconds * 100.0;
    let mib_per_second = (mib() - mib_before) as f64 / seconds;
    let (waits, not_run) = waits.finish(FINISH).await;
    if let Some(traffic) = traffic {
        traffic.stop().await?;
    }
    engine.drain(FINISH).await;
    Ok(Outcome { waits, not_run, cpu, mib_per_second })
}

/// Sends the quiet events, if they are part of the load, for so long.
async fn send(
    quiet: &Stream,
    waits: &RunWaits,
    sizes: Sizes,
    load: Load,
    length: Duration,
) -> Result<(), Failure> {
    match load {
        Load::Quiet | Load::Both => waits.send_at(quiet, sizes.per_second, length).await,
        Load::Busy => {
            seam::pause(length).await;
            Ok(())
        }
    }
}
