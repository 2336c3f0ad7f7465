//! A stream with ever more partitions, all of them busy: events per second through the engine, and CPU per event.
//!
//! The number of lanes stays the same, as when a team chooses more partitions for the keys it has. What more lanes cost is
//! shown by the cycle with many keys.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Draft, Kind};
use laneway_embedded::FileOptions;
use laneway_engine::handler::{Handler, LaneAnswer, Run};
use tokio::sync::Semaphore;

use super::figure::{at_least, at_most};
use crate::context::{Context, progress};
use crate::load::{Folder, Stream, keeping, stateless};
use crate::measured::{Counts, Measured, Phase, Times, window};
use crate::report::Row;
use crate::workload::{PAYLOAD_BYTES, PRODUCERS, key};
use crate::{Failure, seam};

pub(super) const NAME: &str = "growth busy partitions";

const PARTITIONS: [u32; 4] = [16, 64, 256, 1_024];
const RATE_MIN: f64 = 0.7;
const CPU_MAX: f64 = 1.5;
/// Over all partitions.
const LANES: u32 = 160_000;
const PER_CALL: usize = 10;
/// Events that were appended and have not run.
const IN_FLIGHT: usize = 20_000;
const DRAIN: Duration = Duration::from_secs(30);

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let times = Times { warm: context.length(500, 2_000), length: context.length(1_000, 15_000) };
    progress(&format!("{NAME}: {PARTITIONS:?} partitions at full speed, {:?} each", times.length));
    let mut measured = Vec::new();
    for partitions in PARTITIONS {
        measured.push(measure(&context.place.join(NAME), partitions, times)?);
        context.place.clear(NAME)?;
    }
    let first = &measured[0];
    let mut rows = Vec::new();
    for (partitions, measured) in PARTITIONS.iter().zip(&measured) {
        rows.extend(rows_of(*partitions, measured, first));
    }
    Ok(rows)
}

/// The rate and the CPU, both beside those of the fewest partitions.
fn rows_of(partitions: u32, measured: &Measured, first: &Measured) -> [Row; 2] {
    let (rate, cpu) = (measured.rate(), measured.cpu_per_million());
    let note = format!(
        "{PRODUCERS} producers, {PER_CALL} events per call, at most {IN_FLIGHT} in flight, {LANES} lanes in all"
    );
    let rate = Row {
        baseline: Some("16 partitions"),
        baseline_rate: Some(first.rate()),
        cpu_s_per_million: Some(cpu),
        baseline_cpu_s_per_million: Some(first.cpu_per_million()),
        ..at_least(&format!("{NAME}, {partitions}"), rate, "events/s", RATE_MIN * first.rate(), note)
    };
    let cpu_name = format!("{NAME}, {partitions}, CPU");
    let cpu = Row {
        baseline: Some("16 partitions"),
        baseline_rate: Some(first.cpu_per_million()),
        ..at_most(&cpu_name, cpu, "s per million", CPU_MAX * first.cpu_per_million(), String::new())
    };
    [rate, cpu]
}

fn measure(path: &Path, partitions: u32, times: Times) -> Result<Measured, Failure> {
    let runtime = seam::runtime()?;
    let folder = Folder::open(path, FileOptions::default())?;
    let measured = runtime.block_on(measure_on(&folder, partitions, times))?;
    drop(runtime);
    folder.close()?;
    Ok(measured)
}

async fn measure_on(folder: &Folder, partitions: u32, times: Times) -> Result<Measured, Failure> {
    let stream = folder.stream("busy", keeping(partitions, Duration::ZERO)).await?;
    let engine = folder.engine();
    let (runs, room) = (Arc::<AtomicU64>::default(), Arc::new(Semaphore::new(IN_FLIGHT)));
    engine.process("busy", "busy", stateless(), handler(&runs, &room)).await?;
    engine.start_upkeep();
    let phase = Arc::<Phase>::default();
    let producer = |number| {
        let (stream, phase, room) = (stream.clone(), Arc::clone(&phase), Arc::clone(&room));
        seam::spawn(async move { produce(&stream, number, &phase, &room).await })
    };
    let producers: Vec<_> = (0..PRODUCERS).map(producer).collect();
    let counts = || Counts { events: runs.load(Ordering::Relaxed), ..Counts::default() };
    let measured = window(&phase, times, counts).await;
    for producer in producers {
        producer.await??;
    }
    engine.drain(DRAIN).await;
    Ok(measured)
}

/// Counts what is run and makes room for as much.
fn handler(runs: &Arc<AtomicU64>, room: &Arc<Semaphore>) -> Arc<dyn Handler> {
    let (runs, room) = (Arc::clone(runs), Arc::clone(room));
    Arc::new(move |run: Run| {
        let events: usize = run.lanes.iter().map(|lane| lane.events.len()).sum();
        runs.fetch_add(events as u64, Ordering::Relaxed);
        room.add_permits(events);
        std::future::ready(run.lanes.iter().map(LaneAnswer::all_done).collect())
    })
}

async fn produce(stream: &Stream, number: u64, phase: &Phase, room: &Semaphore) -> Result<(), Failure> {
    let mut rng = fastrand::Rng::with_seed(number);
    let payload = Bytes::from(vec![7; PAYLOAD_BYTES]);
    let keys = LANES / stream.partitions();
    while !phase.is_over() {
        room.acquire_many(u32::try_from(PER_CALL)?).await?.forget();
        let draft = |_| Ok(Draft::new(Some(key(rng.u32(..keys))?), Kind::default(), payload.clone()));
        let drafts = (0..PER_CALL).map(draft).collect::<Result<Vec<_>, Failure>>()?;
        stream.append(rng.u32(..stream.partitions()), drafts).await?;
    }
    Ok(())
}
