//! What keeps the disk from being given back: one parked event, or one job whose end is kept long and then deleted, beside
//! traffic of another stream that keeps nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use laneway_core::store::{Jobs, Trim};
use laneway_core::{Draft, JobDraft, JobNumber, StreamSettings};
use laneway_embedded::FileOptions;
use laneway_engine::handler::{Policy, Retry};
use laneway_engine::{Engine, ProcessorSettings};

use super::figure::{at_most, reported};
use crate::context::{Context, progress};
use crate::load::{DAY, Folder, Stream, Traffic, all_done, draft, failing, keeping, stateless};
use crate::report::Row;
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth held disk";

/// Disk with something held over disk without.
const HELD_MAX: f64 = 1.5;
const LOOK_EVERY: Duration = Duration::from_millis(500);
const DRAIN: Duration = Duration::from_secs(5);
const BUSY_PARTITIONS: u32 = 4;

#[derive(Clone)]
struct Sizes {
    busy_mib_per_second: u64,
    length: Duration,
    options: FileOptions,
}

impl Sizes {
    /// Small segments, so that a few seconds of traffic are many of them.
    fn quick() -> Self {
        let options = FileOptions {
            segment_bytes: 4 << 20,
            checkpoint_bytes: 16 << 20,
            backlog_bytes: 64 << 20,
            checkpoint_every: Duration::from_millis(500),
            ..FileOptions::default()
        };
        Self { busy_mib_per_second: 40, length: Duration::from_secs(5), options }
    }

    fn long() -> Self {
        Self { busy_mib_per_second: 70, length: Duration::from_secs(70), options: FileOptions::default() }
    }
}

/// What is held back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Nothing,
    ParkedEvent,
    DeletedJob,
}

/// MiB on the disk over time, and MiB that passed through.
struct Disk {
    over_time: Vec<f64>,
    passed: u64,
}

impl Disk {
    /// The most of the last third.
    fn at_the_end(&self) -> f64 {
        let from = self.over_time.len() * 2 / 3;
        self.over_time[from..].iter().copied().fold(0.0, f64::max)
    }

    /// Six moments, in words.
    fn in_words(&self) -> String {
        let step = (self.over_time.len() / 6).max(1);
        let moments: Vec<String> =
            self.over_time.iter().step_by(step).map(|mib| format!("{mib:.0}")).collect();
        format!("{} MiB over time, {} MiB passed through", moments.join(", "), self.passed)
    }
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let sizes = context.choose(Sizes::quick(), Sizes::long());
    progress(&format!("{NAME}: {:?} of {} MiB/s, three times", sizes.length, sizes.busy_mib_per_second));
    let measure = |held| measure(context, &sizes, held);
    let nothing = measure(Held::Nothing)?;
    let without = nothing.at_the_end();
    let held = |name: &str, disk: &Disk| Row {
        baseline: Some("nothing held"),
        baseline_rate: Some(without),
        ..at_most(&format!("{NAME}, {name}"), disk.at_the_end(), "MiB", HELD_MAX * without, disk.in_words())
    };
    Ok(vec![
        reported(&format!("{NAME}, nothing"), without, "MiB", nothing.in_words()),
        held("parked event", &measure(Held::ParkedEvent)?),
        held("deleted job", &measure(Held::DeletedJob)?),
    ])
}

fn measure(context: &Context, sizes: &Sizes, held: Held) -> Result<Disk, Failure> {
    let runtime = seam::runtime()?;
    let folder = Folder::open(&context.place.join(NAME), sizes.options.clone())?;
    let disk = runtime.block_on(measure_on(&folder, sizes, held))?;
    drop(runtime);
    folder.close()?;
    context.place.clear(NAME)?;
    Ok(disk)
}

async fn measure_on(folder: &Folder, sizes: &Sizes, held: Held) -> Result<Disk, Failure> {
    let small = folder.stream("small", keeping(1, Duration::ZERO)).await?;
    let keep_nothing = StreamSettings { keep_done: LOOK_EVERY, ..keeping(BUSY_PARTITIONS, Duration::ZERO) };
    let busy = folder.stream("busy", keep_nothing).await?;
    let engine = folder.engine();
    engine.process("busy", "busy", stateless(), all_done()).await?;
    match held {
        Held::Nothing => {}
        Held::ParkedEvent => park_one(&engine, &small).await?,
        Held::DeletedJob => delete_one(&engine, &small).await?,
    }
    engine.start_upkeep();
    let traffic = Traffic::start(&busy, sizes.busy_mib_per_second);
    let over_time = watch(folder, &[busy, small], sizes.length).await?;
    let passed = traffic.stop().await?;
    engine.drain(DRAIN).await;
    Ok(Disk { over_time, passed })
}

/// Parks the lane of one event.
async fn park_one(engine: &Engine, small: &Stream) -> Result<(), Failure> {
    let policy = Policy { max_attempts: 1, ..Policy::default() };
    let settings = ProcessorSettings { policy, ..stateless() };
    engine.process("small", "small", settings, failing(Retry::Never, &Arc::<AtomicU64>::default())).await?;
    small.append_one(draft("parked", 100)?).await?;
    Ok(())
}

/// Ends a job whose end is to be kept, and deletes it.
async fn delete_one(engine: &Engine, small: &Stream) -> Result<(), Failure> {
    engine.process("small", "small", stateless(), all_done()).await?;
    let info = engine.catalogue().stream(small.name()).await?;
    let responder = info.processors.first().ok_or("the processor is not registered")?.id;
    let job = Some(JobDraft { responder, keep: 7 * DAY });
    let id = small.append_one(Draft { job, ..draft("job", 100)? }).await?;
    seam::pause(LOOK_EVERY).await;
    small.store.jobs(Jobs::Forget { shard: small.shard(0), number: JobNumber::Event(id) }).await?;
    Ok(())
}

/// The disk every so often. All shards are trimmed as often, so that what upkeep does every ten seconds shows in a short run.
async fn watch(folder: &Folder, streams: &[Stream], length: Duration) -> Result<Vec<f64>, Failure> {
    let (start, mut over_time) = (seam::now(), Vec::new());
    while seam::now().duration_since(start) < length {
        seam::pause(LOOK_EVERY).await;
        for stream in streams {
            for partition in 0..stream.partitions() {
                stream.store.trim(Trim { shard: stream.shard(partition) }).await?;
            }
        }
        over_time.push(folder.disk_mib()?);
    }
    Ok(over_time)
}
