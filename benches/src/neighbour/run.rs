//! Runs the neighbour, reports its limits, and fails when one does not hold.

use std::time::Duration;

use laneway_embedded::FileOptions;

use super::limits::{Figures, Limit};
use super::plan::{BUSY_MIB_PER_SECOND, DEAD_LETTER_BYTES, Plan, QUIET_PARTITIONS, QUIET_PER_SECOND, WARM};
use super::streams::Streams;
use crate::arguments::NEIGHBOUR as NAME;
use crate::context::{Context, progress};
use crate::load::{Folder, Recorder, RunWaits, SyncProbe};
use crate::{Failure, memory, seam};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the last events may take.
const FINISH: Duration = Duration::from_secs(10);

/// Runs for so many minutes and prints its report.
///
/// # Errors
/// Names the limits that do not hold.
pub(crate) fn run(
    context: &Context,
    minutes: u32,
    print: fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let plan = Plan::new(minutes);
    let about = format!(
        "{BUSY_MIB_PER_SECOND} MiB/s beside {QUIET_PARTITIONS} quiet partitions, a parked lane, a dead letter of \
         {DEAD_LETTER_BYTES} bytes, dedup ids and delays, keep {:?}, for {:?}; synced",
        plan.keep, plan.length
    );
    progress(&format!("{NAME}: {about}"));
    let folder = Folder::open(&context.place.join(NAME), FileOptions::default())?;
    let probe = SyncProbe::start(&context.place.join("neighbour sync"))?;
    let runtime = seam::runtime()?;
    let measured = runtime.block_on(measure(&folder, &plan));
    drop(runtime);
    let syncs = probe.stop()?;
    let figures = Figures { syncs, ..measured? };
    folder.close()?;
    context.place.clear(NAME)?;
    let limits = figures.limits(&plan);
    let lines: Vec<String> = limits.iter().map(Limit::line).collect();
    print(&format!(
        "{NAME}: {about}\nsyncs beside it: {}\n\n{}\n",
        figures.syncs.summary(),
        lines.join("\n")
    ))?;
    let broken = limits.iter().filter(|limit| !limit.holds()).count();
    if broken == 0 {
        Ok(())
    } else {
        Err(format!("{broken} of {} limits of the neighbour do not hold", limits.len()).into())
    }
}

async fn measure(folder: &Folder, plan: &Plan) -> Result<Figures, Failure> {
    let (engine, waits, recorder) = (folder.engine(), RunWaits::default(), Recorder::default());
    let streams = Streams::set_up(folder, &engine, plan, &waits).await?;
    engine.start_upkeep();
    let traffic = streams.start_traffic();
    let others = streams.start_others(&recorder);
    waits.send_at(&streams.quiet, QUIET_PER_SECOND, WARM).await?;
    waits.take();
    recorder.take();
    let (start, mib_before) = (seam::now(), traffic.mib());
    let (quiet, sending) = (streams.quiet.clone(), waits.clone());
    let length = plan.length;
    let sending = seam::spawn(async move { sending.send_at(&quiet, QUIET_PER_SECOND, length).await });
    let (resident_mib, disk_mib) = watch(folder, length).await?;
    sending.await??;
    let busy_mib_per_second = (traffic.mib() - mib_before) as f64 / seam::seconds_since(start);
    let (quiet, quiet_open) = waits.finish(FINISH).await;
    for sender in others {
        sender.stop().await?;
    }
    traffic.stop().await?;
    engine.drain(FINISH).await;
    Ok(Figures {
        quiet,
        quiet_open,
        others: recorder.take(),
        syncs: Default::default(),
        resident_mib,
        disk_mib,
        busy_mib_per_second,
    })
}

/// The most resident memory and disk while so much time passes, both in MiB.
async fn watch(folder: &Folder, length: Duration) -> Result<(f64, f64), Failure> {
    let (start, mut resident, mut disk) = (seam::now(), 0f64, 0f64);
    while seam::now().duration_since(start) < length {
        seam::pause(LOOK_EVERY).await;
        resident = resident.max(memory::resident_mib()?);
        disk = disk.max(folder.disk_mib()?);
    }
    Ok((resident, disk))
}
