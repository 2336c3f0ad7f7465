//! How long it takes from the call that submits a job until its handler starts, at 1,000 jobs a second, beside the
//! length of a sync at the same pace: the event must be on disk before it may run, so one such sync is the limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use laneway_core::{Draft, Kind};
use laneway_embedded::FileOptions;
use laneway_engine::handler::{Handler, LaneAnswer, Run};
use laneway_engine::job::Submit;
use laneway_engine::{Engine, ProcessorSettings};
use parking_lot::Mutex;

use crate::context::{Context, progress};
use crate::measured::{median, percentile_ms};
use crate::node::Node;
use crate::report::{Better, Row};
use crate::rows::sync;
use crate::store::{BenchStore, STREAM};
use crate::workload::key;
use crate::{Failure, seam};

pub(super) const NAME: &str = "latency, submit to start";
const KEYS: u32 = 10_000;
/// One job every so often.
const EVERY: Duration = Duration::from_millis(1);
const ROUNDS: usize = 3;
/// What the wait must be at most, in syncs.
const P50_MUST: f64 = 2.0;
const P99_MUST: f64 = 6.0;

/// What a round gave, in milliseconds.
struct Round {
    p50: f64,
    p99: f64,
    sync_p50: f64,
    /// Of syncs one right after the other, on a machine that never sleeps.
    busy_sync_p50: f64,
    jobs: usize,
}

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let length = context.length(1_500, 10_000);
    progress(&format!(
        "{NAME}: {ROUNDS} rounds of {length:?} at 1,000/s, in turns with single syncs at the same pace"
    ));
    let runtime = seam::runtime()?;
    let folder = context.place.join(NAME);
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let store =
            runtime.block_on(BenchStore::create(&folder.join(round.to_string()), FileOptions::default()))?;
        let node = Node::new(store);
        let settled = async || node.until_settled().await;
        let engines = std::slice::from_ref(&node.engine);
        let waits = runtime.block_on(waits(engines, length, async || Ok(()), settled))?;
        node.store.store.close()?;
        let syncs = sync::measure(context, context.length(1_000, 5_000), EVERY)?;
        let busy_syncs = sync::measure(context, context.length(300, 2_000), Duration::ZERO)?;
        let of = |calls: &[u32], share| percentile_ms(calls, share).ok_or("nothing was measured");
        rounds.push(Round {
            p50: of(&waits, 0.5)?,
            p99: of(&waits, 0.99)?,
            sync_p50: of(&syncs.calls, 0.5)?,
            busy_sync_p50: of(&busy_syncs.calls, 0.5)?,
            jobs: waits.len(),
        });
    }
    context.place.clear(NAME)?;
    let (p50, p99) = (median(&rounds, |round| round.p50), median(&rounds, |round| round.p99));
    let sync_p50 = median(&rounds, |round| round.sync_p50);
    let busy_sync_p50 = median(&rounds, |round| round.busy_sync_p50);
    let in_syncs = Row {
        baseline: Some("a sync each ms, p50"),
        baseline_rate: Some(sync_p50),
        better: Better::Lower,
        durability: "synced",
        ..Row::default()
    };
    let at_p99 = Row {
        name: format!("{NAME}, p99"),
        rate: p99,
        unit: "ms p99",
        must: Some(P99_MUST * sync_p50),
        ..in_syncs.clone()
    };
    let at_p50 = Row {
        name: NAME.to_owned(),
        rate: p50,
        unit: "ms p50",
        must: Some(P50_MUST * sync_p50),
        p50_ms: Some(p50),
        p99_ms: Some(p99),
        note: format!(
            "{} jobs of {KEYS} keys; p50 is {:.1} syncs, p99 {:.1} syncs; syncs without a pause take {busy_sync_p50:.2} ms: {:.1} \
             of those",
            rounds.iter().map(|round| round.jobs).sum::<usize>(),
            p50 / sync_p50,
            p99 / sync_p50,
            p50 / busy_sync_p50,
        ),
        ..in_syncs
    };
    Ok(vec![at_p50, at_p99])
}

/// The wait of every job that engines are given in turns for so long, in microseconds. They are stopped in the end.
pub(crate) async fn waits(
    engines: &[Engine],
    length: Duration,
    until_ready: impl AsyncFnOnce() -> Result<(), Failure>,
    until_settled: impl AsyncFnOnce() -> Result<(), Failure>,
) -> Result<Vec<u32>, Failure> {
    let start = seam::now();
    let waits = Arc::<Mutex<Vec<u32>>>::default();
    let of_handler = Arc::clone(&waits);
    let handler: Arc<dyn Handler> = Arc::new(move |run: Run| {
        for event in run.lanes.iter().flat_map(|lane| &lane.events) {
            of_handler.lock().push(micros_since(start).saturating_sub(sent_at(&event.data)));
        }
        std::future::ready(run.lanes.iter().map(LaneAnswer::all_done).collect())
    });
    let settings = ProcessorSettings { uses_state: false, ..ProcessorSettings::default() };
    for engine in engines {
        engine.process(Node::PROCESSOR, STREAM, settings.clone(), Arc::clone(&handler)).await?;
        engine.start_upkeep();
    }
    until_ready().await?;
    let mut rng = fastrand::Rng::with_seed(3);
    let mut beats = seam::beats(EVERY);
    let mut submits = Vec::new();
    let begun = seam::now();
    for engine in engines.iter().cycle() {
        if seam::now().duration_since(begun) >= length {
            break;
        }
        beats.tick().await;
        submits.push(seam::spawn(submit(engine.clone(), rng.u32(..KEYS), start)));
    }
    for submit in submits {
        submit.await??;
    }
    until_settled().await?;
    for engine in engines {
        engine.drain(Node::DRAIN).await;
    }
    Ok(std::mem::take(&mut *waits.lock()))
}

async fn submit(engine: Engine, number: u32, start: Instant) -> Result<(), Failure> {
    let data = Bytes::copy_from_slice(&micros_since(start).to_le_bytes());
    let draft = Draft::new(Some(key(number)?), Kind::default(), data);
    for submitted in engine.jobs().submit(STREAM, vec![Submit { draft, processor: None, keep: None }]).await?
    {
        submitted.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn micros_since(start: Instant) -> u32 {
    u32::try_from(seam::now().duration_since(start).as_micros()).unwrap_or(u32::MAX)
}

fn sent_at(data: &[u8]) -> u32 {
    data.try_into().map_or(u32::MAX, u32::from_le_bytes)
}
