//! Seats with nothing to do: the CPU and the memory that they take.
//!
//! Runs in a process of its own, so that the memory of other rows is not in it.

use std::path::Path;
use std::time::Duration;

use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;

use super::figure::at_most;
use crate::arguments::Child;
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, all_done, keeping};
use crate::report::Row;
use crate::{Failure, children, cpu, memory, seam};

pub(super) const NAME: &str = "growth idle seats";

const CPU_MAX: f64 = 1.0;
const MEMORY_MAX_MIB: f64 = 64.0;
const PARTITIONS: u32 = 64;
const DRAIN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy)]
struct Sizes {
    /// Each with [`PARTITIONS`] and one processor.
    streams: u32,
    /// Seconds before the measured ones: starting is not idling.
    settle: u64,
    measured: u64,
}

const QUICK: Sizes = Sizes { streams: 100, settle: 2, measured: 3 };
/// Long enough for what idle seats and retention do once a minute.
const LONG: Sizes = Sizes { settle: 75, measured: 125, ..QUICK };

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let Sizes { streams, settle, measured } = context.choose(QUICK, LONG);
    let seats = streams * PARTITIONS;
    progress(&format!("{NAME}: {seats} seats for {measured} s"));
    let dir = context.place.join(NAME);
    let answer = children::answer_of(&Child::IdleSeats { dir, streams, settle, measured })?;
    context.place.clear(NAME)?;
    let (cpu, resident) = (children::figure(&answer, "cpu")?, children::figure(&answer, "resident_mib")?);
    let note = format!("{seats} seats of {streams} streams, {measured} s without an event");
    let memory = at_most(&format!("{NAME}, memory"), resident, "MiB resident", MEMORY_MAX_MIB, String::new());
    Ok(vec![
        at_most(&format!("{NAME}, CPU"), cpu, "% of a core", CPU_MAX, note),
        Row { rss_mb: Some(resident), ..memory },
    ])
}

/// The child process: prints what idling takes.
pub(crate) fn child(dir: &Path, streams: u32, settle: u64, measured: u64) -> Result<String, Failure> {
    let runtime = seam::runtime()?;
    runtime.block_on(async {
        let folder = Folder::open(dir, FileOptions::default())?;
        let engine = folder.engine();
        engine.start_upkeep();
        for number in 0..streams {
            let name = format!("idle-{number}");
            folder.stream(&name, keeping(PARTITIONS, DAY)).await?;
            engine.process(&name, &name, ProcessorSettings::default(), all_done()).await?;
        }
        seam::pause(Duration::from_secs(settle)).await;
        let (start, before) = (seam::now(), cpu::seconds());
        seam::pause(Duration::from_secs(measured)).await;
        let cpu = (cpu::seconds() - before) / seam::seconds_since(start) * 100.0;
        let resident = memory::resident_mib()?;
        engine.drain(DRAIN).await;
        Ok(serde_json::json!({ "cpu": cpu, "resident_mib": resident }).to_string())
    })
}
