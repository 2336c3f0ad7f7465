//! One lane that never rests: strict, where every event waits for the sync of the one before, and running ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::{Draft, Kind};
use laneway_embedded::FileOptions;
use laneway_engine::handler::{LaneAnswer, Run};
use laneway_engine::log::Appending;
use laneway_engine::{Engine, ProcessorSettings};
use tokio::sync::Semaphore;

use crate::context::{Context, progress};
use crate::measured::{Measured, Phase, Times, median, window};
use crate::node::Node;
use crate::report::Row;
use crate::rows::sync;
use crate::store::{BenchStore, STREAM};
use crate::workload::{PAYLOAD_BYTES, key, payloads};
use crate::{Failure, seam};

pub(super) const NAMES: [&str; 2] = ["hot lane, strict", "hot lane, run_ahead 64"];
const RUN_AHEAD: [u32; 2] = [0, 64];
/// Events of the lane that are appended and have not run, at most: a backlog would measure its siding.
const IN_FLIGHT: usize = 500;
const PER_CALL: u32 = 20;
const PRODUCERS: usize = 4;
const ROUNDS: usize = 3;
const FOLDER: &str = "hot";

pub(super) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (name, run_ahead) in NAMES.into_iter().zip(RUN_AHEAD).filter(|(name, _)| context.wants(name)) {
        let times = Times { warm: context.length(100, 500), length: context.length(400, 5_000) };
        progress(&format!("{name}: {ROUNDS} rounds of {:?}, in turns with single syncs", times.length));
        let runtime = seam::runtime()?;
        let folder = context.place.join(FOLDER);
        let (mut rounds, mut syncs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let folder = folder.join(round.to_string());
            let store = runtime.block_on(BenchStore::create(&folder, FileOptions::default()))?;
            let node = Node::new(store);
            rounds.push(runtime.block_on(measure(&node, run_ahead, times))?);
            node.store.store.close()?;
            syncs.push(sync::measure(context, times.length, Duration::ZERO)?);
        }
        context.place.clear(FOLDER)?;
        rows.push(row(name, run_ahead, &rounds, median(&syncs, |calls| calls.rate)));
    }
    Ok(rows)
}

async fn measure(node: &Node, run_ahead: u32, times: Times) -> Result<Measured, Failure> {
    let (room, ran) = (Arc::new(Semaphore::new(IN_FLIGHT)), Arc::<AtomicU64>::default());
    let (of_handler, counter) = (Arc::clone(&room), Arc::clone(&ran));
    let handler = move |run: Run| {
        counter.fetch_add(run.lanes.len() as u64, Ordering::Relaxed);
        of_handler.add_permits(run.lanes.len());
        std::future::ready(run.lanes.iter().map(LaneAnswer::all_done).collect())
    };
    let settings = ProcessorSettings { run_ahead, uses_state: false, ..ProcessorSettings::default() };
    node.process(settings, handler).await?;
    let phase = Arc::<Phase>::default();
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|_| seam::spawn(produce(node.engine.clone(), Arc::clone(&room), Arc::clone(&phase))))
        .collect();
    let measured = window(&phase, times, || node.counts_with(ran.load(Ordering::Relaxed))).await;
    for producer in producers {
        producer.await??;
    }
    node.until_settled().await?;
    node.stop().await;
    Ok(measured)
}

async fn produce(engine: Engine, room: Arc<Semaphore>, phase: Arc<Phase>) -> Result<(), Failure> {
    let payload = payloads(&mut fastrand::Rng::with_seed(1), PAYLOAD_BYTES).remove(0);
    let draft = Draft::new(Some(key(0)?), Kind::default(), payload);
    while !phase.is_over() {
        room.acquire_many(PER_CALL).await?.forget();
        let drafts = vec![draft.clone(); PER_CALL as usize];
        for sent in engine.producer().append(STREAM, Appending { drafts, object: None }).await? {
            sent.receipt?;
        }
    }
    Ok(())
}

fn row(name: &str, run_ahead: u32, rounds: &[Measured], syncs: f64) -> Row {
    Row {
        name: name.to_owned(),
        rate: median(rounds, Measured::rate),
        unit: "events/s",
        baseline: Some("single syncs"),
        baseline_rate: Some(syncs),
        cpu_s_per_million: Some(median(rounds, Measured::cpu_per_million)),
        durability: "synced",
        syncs_per_second: Some(median(rounds, Measured::syncs_per_second)),
        bytes_per_event: Some(median(rounds, Measured::bytes_per_event)),
        note: match run_ahead {
            0 => "one key, no two events at once: each starts when the one before is on disk, so a sync each is the limit".to_owned(),
            ahead => format!("one key, up to {ahead} events run before the first of them is on disk; after a crash as many may run again"),
        },
        ..Row::default()
    }
}
