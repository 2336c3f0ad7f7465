//! Synced appends from 16 producers with 1, 10 and 100 events per call: the store and the raw log in turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use laneway_embedded::FileOptions;

use crate::context::{Context, progress};
use crate::measured::{Counts, Measured, Times, median, percentile_ms, window};
use crate::producers::{Producers, Round};
use crate::raw_log::{RawLog, RawOptions};
use crate::report::Row;
use crate::store::BenchStore;
use crate::targets::RawTarget;
use crate::workload::Keys;
use crate::{Failure, memory, seam};

const PER_CALL: [(usize, &str); 3] =
    [(1, "append 1 per call"), (10, "append 10 per call"), (100, "append 100 per call")];
const KEYS: u32 = 100_000;
const FOLDER: &str = "append";

pub(crate) fn names() -> Vec<String> {
    PER_CALL.iter().map(|(_, name)| (*name).to_owned()).collect()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let wanted: Vec<_> = PER_CALL.into_iter().filter(|(_, name)| context.wants(name)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = seam::runtime()?;
    let folder = context.place.join(FOLDER);
    let keys = Keys::new(KEYS)?;
    let store = runtime.block_on(BenchStore::create(&folder.join("store"), FileOptions::default()))?;
    let raw = Arc::new(RawLog::create(&folder.join("raw"), RawOptions::default())?);
    let mut rows = Vec::new();
    for (per_call, name) in wanted {
        let times = Times { warm: context.length(60, 500), length: context.length(300, 5_000) };
        let rounds = 5;
        progress(&format!("{name}: {rounds} rounds of {:?}, in turns with the raw log", times.length));
        let (mut ours, mut theirs): (Vec<Measured>, Vec<Measured>) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            raw.wait_until_ready();
            let measured = runtime.block_on(store_round(&store, &keys, per_call, times))?;
            let record_bytes = measured.bytes_per_event().round() as usize;
            ours.push(measured);
            store.settle()?;
            let target = RawTarget { log: Arc::clone(&raw), record_bytes };
            theirs.push(runtime.block_on(raw_round(&target, &keys, per_call, times))?);
        }
        rows.push(row(name, &ours, &theirs)?);
    }
    store.store.close()?;
    drop(raw);
    context.place.clear(FOLDER)?;
    Ok(rows)
}

async fn store_round(
    store: &BenchStore,
    keys: &Arc<Keys>,
    per_call: usize,
    times: Times,
) -> Result<Measured, Failure> {
    let round = Round::new(per_call, None);
    let producers = Producers::start(store, keys, &round);
    let counts = || store.counts_with(round.appended.load(Ordering::Relaxed));
    let mut measured = window(&round.phase, times, counts).await;
    measured.calls = producers.join().await?;
    Ok(measured)
}

async fn raw_round(
    raw: &RawTarget,
    keys: &Arc<Keys>,
    per_call: usize,
    times: Times,
) -> Result<Measured, Failure> {
    let round = Round::new(per_call, None);
    let producers = Producers::start(raw, keys, &round);
    let counts = || {
        let (syncs, bytes) = raw.log.written();
        Counts { events: round.appended.load(Ordering::Relaxed), syncs, bytes, index_syncs: 0 }
    };
    let mut measured = window(&round.phase, times, counts).await;
    measured.calls = producers.join().await?;
    Ok(measured)
}

fn row(name: &str, ours: &[Measured], theirs: &[Measured]) -> Result<Row, Failure> {
    let calls =
        |rounds: &[Measured]| rounds.iter().flat_map(|round| round.calls.iter().copied()).collect::<Vec<_>>();
    let (our_calls, their_calls) = (calls(ours), calls(theirs));
    let raw_ms = |share| percentile_ms(&their_calls, share).unwrap_or(f64::NAN);
    let bytes = median(ours, Measured::bytes_per_event);
    Ok(Row {
        name: name.to_owned(),
        rate: median(ours, Measured::rate),
        unit: "events/s",
        baseline: Some("raw log"),
        baseline_rate: Some(median(theirs, Measured::rate)),
        cpu_s_per_million: Some(median(ours, Measured::cpu_per_million)),
        baseline_cpu_s_per_million: Some(median(theirs, Measured::cpu_per_million)),
        durability: "synced",
        syncs_per_second: Some(median(ours, Measured::syncs_per_second)),
        baseline_syncs_per_second: Some(median(theirs, Measured::syncs_per_second)),
        bytes_per_event: Some(bytes),
        p50_ms: percentile_ms(&our_calls, 0.5),
        p99_ms: percentile_ms(&our_calls, 0.99),
        rss_mb: Some(memory::resident_mib()?),
        note: format!(
            "{bytes:.0} log bytes per event; raw log {:.1} CPU s per million, call p50 {:.2} ms, p99 {:.2} ms",
            median(theirs, Measured::cpu_per_million),
            raw_ms(0.5),
            raw_ms(0.99),
        ),
        ..Row::default()
    })
}
