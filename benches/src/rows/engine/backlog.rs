//! A backlog of jobs is there when the engine starts: how fast it drains, each job settled with a result.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::StartAt;
use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, Run};
use tokio::runtime::Runtime;

use super::load::load;
use crate::context::{Context, progress};
use crate::measured::{Counts, Measured};
use crate::node::Node;
use crate::raw_log::{RawLog, RawOptions, RawRecords, replay};
use crate::report::Row;
use crate::store::BenchStore;
use crate::workload::{EVENT_BYTES, RESULT_BYTES, SHARDS, job};
use crate::{Failure, cpu, memory, seam};

pub(super) const NAME: &str = "backlog drain";
const KEYS: u32 = 100_000;
const KEEP: Duration = Duration::from_secs(3_600);
/// Ends in one append of the raw log: as many as the engine settles in one commit at most.
const RAW_PER_CALL: u64 = 4_096;

pub(super) fn run(context: &Context) -> Result<Row, Failure> {
    let events: u64 = context.choose(200_000, 3_000_000);
    progress(&format!("{NAME}: {events} jobs are loaded, then drained; then the raw log writes their ends"));
    let runtime = seam::runtime()?;
    let folder = context.place.join(NAME);
    let node = runtime.block_on(loaded(&folder.join("store"), events))?;
    let ours = runtime.block_on(drain(&node, events))?;
    node.store.settle()?;
    node.store.store.close()?;
    let end_bytes = ours.bytes_per_event().round() as usize;
    let theirs = raw_drain(&runtime, &folder, events, end_bytes)?;
    context.place.clear(NAME)?;
    Ok(Row {
        name: NAME.to_owned(),
        rate: ours.rate(),
        unit: "events/s",
        baseline: Some("raw log scan + ends"),
        baseline_rate: Some(theirs.rate()),
        cpu_s_per_million: Some(ours.cpu_per_million()),
        baseline_cpu_s_per_million: Some(theirs.cpu_per_million()),
        durability: "synced",
        syncs_per_second: Some(ours.syncs_per_second()),
        baseline_syncs_per_second: Some(theirs.syncs_per_second()),
        bytes_per_event: Some(ours.bytes_per_event()),
        rss_mb: Some(memory::resident_mib()?),
        note: format!(
            "{events} jobs of {KEYS} keys; from the start of the processor until all are settled, with {end_bytes} log \
             bytes each; the baseline scans a raw log of as many bytes and writes as many, and runs nothing"
        ),
        ..Row::default()
    })
}

async fn loaded(folder: &Path, events: u64) -> Result<Node, Failure> {
    let mut store = BenchStore::create(folder, FileOptions::default()).await?;
    let responder = store.register_as(Node::PROCESSOR, StartAt::Beginning).await?;
    let numbers = (0..events).map(|event| (event % u64::from(KEYS)) as u32);
    load(&store, numbers, Some(job(responder, KEEP))).await?;
    store.settle()?;
    Ok(Node::new(store))
}

async fn drain(node: &Node, events: u64) -> Result<Measured, Failure> {
    let result = Bytes::from(vec![7; RESULT_BYTES]);
    let handler = move |run: Run| {
        let answers = run.lanes.iter().map(|_| LaneAnswer::done(Some(result.clone()))).collect();
        std::future::ready(answers)
    };
    let (start, cpu_before, before) = (seam::now(), cpu::seconds(), node.counts_with(0));
    let settings = ProcessorSettings { uses_state: false, ..ProcessorSettings::default() };
    node.process(settings, handler).await?;
    node.until_settled().await?;
    let (seconds, cpu_seconds, after) =
        (seam::seconds_since(start), cpu::seconds() - cpu_before, node.counts_with(0));
    node.stop().await;
    let counts = Counts {
        events,
        syncs: after.syncs - before.syncs,
        bytes: after.bytes - before.bytes,
        index_syncs: after.index_syncs - before.index_syncs,
    };
    Ok(Measured { seconds, cpu_seconds, counts, ..Measured::default() })
}

/// Loads a raw log with the bytes of the events; then scans it, and writes the bytes of their ends to another.
pub(crate) fn raw_drain(
    runtime: &Runtime,
    folder: &Path,
    events: u64,
    end_bytes: usize,
) -> Result<Measured, Failure> {
    let loaded = folder.join("raw events");
    let log = RawLog::create(&loaded, RawOptions::default())?;
    let load = async {
        for first in (0..events).step_by(RAW_PER_CALL as usize) {
            let count = RAW_PER_CALL.min(events - first);
            let bytes = vec![7; count as usize * EVENT_BYTES];
            log.append(RawRecords::Events { shard: 0, bytes }).await?;
        }
        Ok::<_, Failure>(())
    };
    runtime.block_on(load)?;
    drop(log);
    let ends = Arc::new(RawLog::create(&folder.join("raw ends"), RawOptions::default())?);
    let (start, cpu_before) = (seam::now(), cpu::seconds());
    let scanned = replay(&loaded)?;
    if scanned.body_bytes != events * EVENT_BYTES as u64 {
        return Err(format!("the raw log has {} bytes", scanned.body_bytes).into());
    }
    let (scan_seconds, scan_cpu) = (seam::seconds_since(start), cpu::seconds() - cpu_before);
    let mut measured = runtime.block_on(write_ends(&ends, events, end_bytes))?;
    measured.seconds += scan_seconds;
    measured.cpu_seconds += scan_cpu;
    Ok(measured)
}

/// One writer per shard, as the engine has one commit in flight per shard.
async fn write_ends(raw: &Arc<RawLog>, events: u64, end_bytes: usize) -> Result<Measured, Failure> {
    let (start, cpu_before, before) = (seam::now(), cpu::seconds(), raw.written());
    let each = events / u64::from(SHARDS);
    let writers: Vec<_> = (0..SHARDS)
        .map(|_| {
            let raw = Arc::clone(raw);
            seam::spawn(async move {
                for first in (0..each).step_by(RAW_PER_CALL as usize) {
                    let count = RAW_PER_CALL.min(each - first) as usize;
                    raw.append(RawRecords::Ends(vec![7; count * end_bytes])).await?;
                }
                Ok::<_, Failure>(())
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    let (seconds, cpu_seconds, after) =
        (seam::seconds_since(start), cpu::seconds() - cpu_before, raw.written());
    let counts = Counts {
        events: each * u64::from(SHARDS),
        syncs: after.0 - before.0,
        bytes: after.1 - before.1,
        index_syncs: 0,
    };
    Ok(Measured { seconds, cpu_seconds, counts, ..Measured::default() })
}
