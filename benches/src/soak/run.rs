//! Runs the soak, writes its samples down, and fails when they are not flat at the end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::load::{Meters, Streams};
use super::plan::{BUSY_STREAMS, LANES, Plan, QUIET_STREAMS};
use super::samples::{Sample, Shares};
use super::site::Site;
use super::verdict::{Trend, trends};
use super::{csv, plot};
use crate::arguments::{SOAK as NAME, StoreKind};
use crate::context::{Context, progress};
use crate::{Failure, memory, seam};

const DRAIN: Duration = Duration::from_secs(30);

/// How it is run.
pub(crate) struct Options {
    pub(crate) minutes: u32,
    pub(crate) store: StoreKind,
    /// Where the files go.
    pub(crate) out: Option<PathBuf>,
}

/// Runs for so long, writes `soak-STORE.csv` and `soak-STORE.svg`, and prints the verdict.
///
/// # Errors
/// Names how many figures still grow at the end.
pub(crate) fn run(
    context: &Context,
    options: &Options,
    print: fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let plan = Plan::new(options.store, options.minutes);
    let about = format!(
        "{} minutes on {} ({}): {} streams, {BUSY_STREAMS} busy with {LANES} lanes, timers, dedup ids, dead letters",
        options.minutes,
        plan.store_name(),
        plan.durability(),
        BUSY_STREAMS + QUIET_STREAMS + 3
    );
    progress(&format!("{NAME}: {about}"));
    let files = Files::new(options.out.as_deref(), &plan);
    let folder = context.place.join(NAME);
    std::fs::create_dir_all(&folder)?;
    let runtime = seam::runtime()?;
    let site = runtime.block_on(Site::open(&plan, &folder))?;
    let samples = runtime.block_on(measure(&site, &plan, |samples| files.write(&about, samples)))?;
    drop(runtime);
    site.close()?;
    context.place.clear(NAME)?;
    print(&format!("{NAME}: {about}\n{files}\n\n"))?;
    judge(&samples, print)
}

fn judge(samples: &[Sample], print: fn(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let Some(trends) = trends(samples) else {
        return print("too short for a verdict: the quarters of a longer run are compared\n");
    };
    let lines: Vec<String> = trends.iter().map(Trend::line).collect();
    print(&format!("{:<22} {:>10} {:>10}\n{}\n", "median", "2nd quarter", "last", lines.join("\n")))?;
    match trends.iter().filter(|trend| !trend.is_flat()).count() {
        0 => Ok(()),
        growing => Err(format!("{growing} figures of the soak are not flat at the end").into()),
    }
}

/// Where the samples are written.
struct Files {
    csv: PathBuf,
    svg: PathBuf,
}

impl Files {
    fn new(out: Option<&Path>, plan: &Plan) -> Self {
        let beside = Path::new("benches");
        let out = out.unwrap_or(if beside.is_dir() { beside } else { Path::new(".") });
        let file = |ending| out.join(format!("soak-{}.{ending}", plan.store_name()));
        Self { csv: file("csv"), svg: file("svg") }
    }

    /// Writes all samples so far: a soak that is ended early leaves what it saw.
    fn write(&self, title: &str, samples: &[Sample]) -> Result<(), Failure> {
        std::fs::write(&self.csv, csv::csv(samples))?;
        std::fs::write(&self.svg, plot::svg(title, samples))?;
        Ok(())
    }
}

impl std::fmt::Display for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "written: {} and {}", self.csv.display(), self.svg.display())
    }
}

async fn measure(
    site: &Site,
    plan: &Plan,
    write: impl Fn(&[Sample]) -> Result<(), Failure>,
) -> Result<Vec<Sample>, Failure> {
    let meters = Meters::default();
    let streams = Streams::set_up(site, &meters).await?;
    progress(&format!("{NAME}: {LANES} lanes get their first event"));
    streams.fill_lanes().await?;
    let senders = streams.start(plan, &meters);
    let (start, mut samples) = (seam::now(), Vec::new());
    for number in 1..=plan.samples {
        let end = start + plan.every * number;
        seam::pause(end.saturating_duration_since(seam::now())).await;
        let sample = look(site, plan, &meters, seam::seconds_since(start) / 60.0)?;
        progress(&format!("{NAME}: {}", csv::csv(&[sample]).lines().last().unwrap_or_default()));
        samples.push(sample);
        write(&samples)?;
    }
    for sender in senders {
        sender.stop().await?;
    }
    for node in &site.nodes {
        node.engine.drain(DRAIN).await;
    }
    Ok(samples)
}

fn look(site: &Site, plan: &Plan, meters: &Meters, minute: f64) -> Result<Sample, Failure> {
    let (appends, waits) = (meters.appends.take(), meters.waits.take());
    let (disk_mib, server_mib) = site.sizes()?;
    Ok(Sample {
        minute,
        appends_per_second: appends.len() as f64 / plan.every.as_secs_f64(),
        append: Shares::from(&appends),
        run: Shares::from(&waits),
        waiting: meters.waits.waiting() as f64,
        resident_mib: memory::resident_mib()?,
        server_mib,
        disk_mib,
    })
}
