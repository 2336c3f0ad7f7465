//! One quiet partition, some time after its last event, while others write: how long its next event waits for a run.

use std::time::Duration;

use laneway_embedded::FileOptions;

use super::figure::at_most;
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, Latencies, RunWaits, Traffic, keeping, stateless};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth quiet partition";

const WAIT_MAX_MS: f64 = 10.0;
const FINISH: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
struct Sizes {
    /// Time since its last event.
    quiet: Duration,
    busy_mib_per_second: u64,
    rounds: usize,
}

const QUICK: Sizes = Sizes { quiet: Duration::from_secs(5), busy_mib_per_second: 50, rounds: 1 };
const LONG: Sizes = Sizes { quiet: Duration::from_secs(30), rounds: 3, ..QUICK };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(QUICK, LONG);
    let Sizes { quiet, busy_mib_per_second, rounds } = sizes;
    progress(&format!(
        "{NAME}: {rounds} events, each {quiet:?} after the last, beside {busy_mib_per_second} MiB/s"
    ));
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let (alone, beside) = runtime.block_on(measure(&folder, sizes))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    let note = format!(
        "the longest of {rounds} waits from append to run, each {quiet:?} after the event before, beside \
         {busy_mib_per_second} MiB/s of another stream; without it p50 {:.2} ms",
        alone.p50()
    );
    let row = at_most(&format!("{NAME}, append to run"), beside.max(), "ms", WAIT_MAX_MS, note);
    Ok(vec![Row { baseline: Some("without the busy stream"), baseline_rate: Some(alone.max()), ..row }])
}

async fn measure(folder: &Folder, sizes: Sizes) -> Result<(Latencies, Latencies), Failure> {
    let busy = folder.stream("busy", keeping(4, DAY)).await?;
    let quiet = folder.stream("quiet", keeping(1, DAY)).await?;
    let (engine, waits) = (folder.engine(), RunWaits::default());
    engine.process("quiet", "quiet", stateless(), waits.handler()).await?;
    for _ in 0..3 {
        waits.send(&quiet, 0).await?;
        seam::pause(Duration::from_millis(200)).await;
    }
    let (alone, _) = waits.finish(FINISH).await;
    let traffic = Traffic::start(&busy, sizes.busy_mib_per_second);
    for _ in 0..sizes.rounds {
        seam::pause(sizes.quiet).await;
        waits.send(&quiet, 0).await?;
    }
    let (beside, _) = waits.finish(FINISH).await;
    traffic.stop().await?;
    engine.drain(FINISH).await;
    Ok((alone, beside))
}
