//! Runs both sides in turns and makes the rows of it.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::Store;
use laneway_core::store::Trim;
use laneway_embedded::FileOptions;
use tokio::runtime::Runtime;

use super::engine_side::EngineSide;
use super::raw_side::RawSide;
use super::store_side::StoreSide;
use crate::context::{Context, progress};
use crate::measured::{Measured, Times, median, percentile_ms};
use crate::report::Row;
use crate::store::BenchStore;
use crate::workload::{Keys, PAYLOAD_BYTES, PRODUCERS, SHARDS, Sender};
use crate::{Failure, memory, seam};

const NAME: &str = "cycle";
const KEYS: u32 = 100_000;
/// Events per call when keys are loaded.
const LOAD_PER_CALL: usize = 1_000;
/// Rounds of each side at least, and at most when there were too few checkpoints.
const ROUNDS: usize = 2;
const ROUNDS_MAX: usize = 5;
/// Checkpoints whose work must be in the figures.
const CHECKPOINTS: u64 = 10;

/// What the rate must be, in shares of the raw log's.
const OF_CONSUMERS_MUST: f64 = 0.7;
const OF_ENGINE_MUST: f64 = 0.5;

/// One row: its name, its keys, whether every key was used before, and who settles.
struct Plan {
    name: &'static str,
    keys: u32,
    load: bool,
    by: By,
}

/// Who reads, runs and settles.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Consumers of this benchmark that run nothing.
    Consumers,
    /// The engine, with an empty handler.
    Engine,
}

/// Loading millions of keys takes longer than a quick run may.
fn plans(context: &Context) -> Vec<Plan> {
    let mut plans = vec![
        Plan { name: NAME, keys: KEYS, load: false, by: By::Consumers },
        Plan { name: "engine cycle, 100k keys", keys: KEYS, load: false, by: By::Engine },
        Plan { name: "engine cycle, 10k keys", keys: 10_000, load: false, by: By::Engine },
    ];
    if !context.quick {
        plans.push(Plan { name: "cycle, 5M keys", keys: 5_000_000, load: true, by: By::Consumers });
        plans.push(Plan { name: "engine cycle, 1M keys", keys: 1_000_000, load: true, by: By::Engine });
    }
    plans
}

/// One side of ours, from round to round.
enum Side {
    Consumers(Box<StoreSide>),
    Engine(Box<EngineSide>),
}

impl Side {
    async fn start(by: By, store: BenchStore, keep: Duration) -> Result<Self, Failure> {
        match by {
            By::Consumers => StoreSide::start(store, keep).await.map(|side| Self::Consumers(Box::new(side))),
            By::Engine => Ok(Self::Engine(Box::new(EngineSide::new(store, keep)))),
        }
    }

    async fn round(&mut self, keys: &Arc<Keys>, times: Times) -> Result<Measured, Failure> {
        match self {
            Self::Consumers(side) => side.round(keys, times).await,
            Self::Engine(side) => side.round(keys, times).await,
        }
    }

    fn store(&self) -> &BenchStore {
        match self {
            Self::Consumers(side) => &side.store,
            Self::Engine(side) => &side.node.store,
        }
    }

    fn into_store(self) -> BenchStore {
        match self {
            Self::Consumers(side) => side.store,
            Self::Engine(side) => side.node.store,
        }
    }
}

pub(crate) fn names(context: &Context) -> Vec<String> {
    plans(context).iter().map(|plan| plan.name.to_owned()).collect()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    // A prefix such as "cycle" also names the longer one, so each is asked for by its own name.
    for plan in plans(context).into_iter().filter(|plan| context.wants(plan.name)) {
        rows.push(run_plan(context, &plan)?);
    }
    Ok(rows)
}

fn options(context: &Context) -> FileOptions {
    let usual = FileOptions::default();
    // A short run must see as many checkpoints as a long one.
    let checkpoint_every = if context.quick { Duration::from_millis(700) } else { usual.checkpoint_every };
    FileOptions { checkpoint_every, ..usual }
}

fn run_plan(context: &Context, plan: &Plan) -> Result<Row, Failure> {
    let runtime = seam::runtime()?;
    let folder = context.place.join(NAME);
    let keys = Keys::new(plan.keys)?;
    let keep = context.length(1_000, 10_000);
    let options = options(context);
    let every = options.checkpoint_every;
    let store = runtime.block_on(BenchStore::create(&folder.join("store"), options))?;
    if plan.load {
        progress(&format!("{}: loading the keys", plan.name));
        load(&runtime, &store, &keys)?;
    }
    let mut ours = runtime.block_on(Side::start(plan.by, store, keep))?;
    let theirs = RawSide::start(&folder.join("raw"), keep)?;
    let times = Times { warm: context.length(200, 2_000), length: context.length(3_800, 25_000) };
    let raw_times = Times { length: context.length(1_000, 10_000), ..times };
    progress(&format!(
        "{}: {ROUNDS} rounds of {:?} or more, in turns with the raw log",
        plan.name, times.length
    ));
    let (mut our_rounds, mut raw_rounds) = (Vec::new(), Vec::new());
    let mut checkpoints = 0;
    while our_rounds.len() < ROUNDS || (checkpoints < CHECKPOINTS && our_rounds.len() < ROUNDS_MAX) {
        theirs.log.wait_until_ready();
        let measured = runtime.block_on(ours.round(&keys, times))?;
        let bytes = measured.bytes_per_event();
        checkpoints += ours.store().checkpoints(measured.counts.index_syncs);
        our_rounds.push(measured);
        ours.store().settle()?;
        raw_rounds.push(runtime.block_on(theirs.round(&keys, bytes, raw_times))?);
    }
    let row = row(plan, &our_rounds, &raw_rounds, checkpoints, (every, keep))?;
    ours.into_store().store.close()?;
    drop(theirs);
    context.place.clear(NAME)?;
    Ok(row)
}

/// Uses every key once, and lets what that appended go again.
fn load(runtime: &Runtime, store: &BenchStore, keys: &Arc<Keys>) -> Result<(), Failure> {
    runtime.block_on(async {
        let loaders: Vec<_> = (0..PRODUCERS)
            .map(|number| seam::spawn(load_part(store.clone(), Arc::clone(keys), number)))
            .collect();
        for loader in loaders {
            loader.await??;
        }
        for shard in 0..SHARDS {
            while store.store.trim(Trim { shard: store.shard(shard) }).await?.events > 0 {}
        }
        Ok::<_, Failure>(())
    })?;
    store.settle()
}

async fn load_part(store: BenchStore, keys: Arc<Keys>, number: u64) -> Result<(), Failure> {
    let mut sender = Sender::new(number, &keys, PAYLOAD_BYTES);
    for shard in (0..SHARDS).filter(|shard| u64::from(*shard) % PRODUCERS == number) {
        for part in keys.of_shard(shard).chunks(LOAD_PER_CALL) {
            let drafts = part.iter().map(|key| sender.draft(*key, None)).collect::<Result<Vec<_>, _>>()?;
            store.append_to(shard, drafts).await?;
        }
    }
    Ok(())
}

fn row(
    plan: &Plan,
    ours: &[Measured],
    raw: &[Measured],
    checkpoints: u64,
    (every, keep): (Duration, Duration),
) -> Result<Row, Failure> {
    let commits: Vec<u32> = ours.iter().flat_map(|round| round.calls.iter().copied()).collect();
    let bytes = median(ours, Measured::bytes_per_event);
    let (times_are_of, share) =
        if plan.by == By::Engine { ("submits", OF_ENGINE_MUST) } else { ("commits", OF_CONSUMERS_MUST) };
    let raw_rate = median(raw, Measured::rate);
    Ok(Row {
        name: plan.name.to_owned(),
        rate: median(ours, Measured::rate),
        unit: "events/s",
        baseline: Some("raw log cycle"),
        baseline_rate: Some(raw_rate),
        must: Some(share * raw_rate),
        cpu_s_per_million: Some(median(ours, Measured::cpu_per_million)),
        baseline_cpu_s_per_million: Some(median(raw, Measured::cpu_per_million)),
        durability: "synced",
        syncs_per_second: Some(median(ours, Measured::syncs_per_second)),
        baseline_syncs_per_second: Some(median(raw, Measured::syncs_per_second)),
        bytes_per_event: Some(bytes),
        checkpoints: Some(checkpoints),
        p50_ms: percentile_ms(&commits, 0.5),
        p99_ms: percentile_ms(&commits, 0.99),
        rss_mb: Some(memory::resident_mib()?),
        note: format!(
            "{checkpoints} checkpoints, one every {every:?} or 256 MiB; {bytes:.0} log bytes per event; results kept {keep:?}; \
             {:.1} events per call; times are of {times_are_of}; raw {:.1} CPU s per million",
            ours.iter().map(|round| round.counts.events).sum::<u64>() as f64 / commits.len().max(1) as f64,
            median(raw, Measured::cpu_per_million),
        ),
        ..Row::default()
    })
}
