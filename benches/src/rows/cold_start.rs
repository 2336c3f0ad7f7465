//! Starting after a crash: a process that loaded pending events is killed, and another opens the folder.
//!
//! The page cache is emptied before every start, where that is allowed. The baseline is a raw log of the same
//! bytes, scanned from its beginning: what a start costs without an index.

use std::path::Path;
use std::sync::Arc;

use laneway_core::limits::PAGE_BYTES_MAX;
use laneway_core::store::{Query, Read, ReadFrom, Rows};
use laneway_core::{EventId, Partition, Store, SystemClock};
use laneway_embedded::{FileOptions, FileStore};
use serde_json::json;

use crate::arguments::Child;
use crate::children::{Answered, figure};
use crate::context::{Context, progress};
use crate::measured::median;
use crate::producers::Target;
use crate::raw_log::{RawLog, RawOptions, replay};
use crate::report::{Better, Row};
use crate::store::BenchStore;
use crate::targets::RawTarget;
use crate::workload::{Keys, PAYLOAD_BYTES, PRODUCERS, SHARDS, Sender};
use crate::{Failure, cpu, memory, page_cache, seam};

const NAME: &str = "cold start";
const KEYS: u32 = 100_000;
const PER_CALL: usize = 1_000;
/// Events read from each shard after the start: a little over 1,000 in all.
const READ_PER_SHARD: usize = 16;
const OPENS: usize = 3;

struct Plan {
    name: &'static str,
    events: u64,
    payload_bytes: usize,
}

fn plans(context: &Context) -> Vec<Plan> {
    if context.quick {
        return vec![Plan {
            name: "cold start, 1M pending",
            events: 1_000_000,
            payload_bytes: PAYLOAD_BYTES,
        }];
    }
    vec![
        Plan { name: "cold start, 10M pending", events: 10_000_000, payload_bytes: PAYLOAD_BYTES },
        Plan { name: "cold start, 3M pending of 1 KiB", events: 3_000_000, payload_bytes: 1024 },
    ]
}

pub(crate) fn names(context: &Context) -> Vec<String> {
    plans(context).iter().map(|plan| plan.name.to_owned()).collect()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    plans(context)
        .iter()
        .filter(|plan| context.wants(plan.name))
        .map(|plan| run_plan(context, plan))
        .collect()
}

fn run_plan(context: &Context, plan: &Plan) -> Result<Row, Failure> {
    let folder = context.place.join(NAME);
    let (store_dir, raw_dir) = (folder.join("store"), folder.join("raw"));
    std::fs::create_dir_all(&folder)?;
    progress(&format!("{}: loading, then killing the loader", plan.name));
    let load = Child::Load { dir: store_dir.clone(), events: plan.events, payload_bytes: plan.payload_bytes };
    let loaded = Answered::start(&load)?.kill()?;
    let record_bytes = (figure(&loaded, "log_bytes")? / plan.events as f64).round() as usize;
    let mut cache = "page cache emptied before each start".to_owned();
    let mut empty_cache = || {
        if let Err(error) = page_cache::empty() {
            cache = format!("page cache warm, emptying it was refused: {error}");
        }
    };
    let mut opens = Vec::new();
    for _ in 0..OPENS {
        empty_cache();
        opens.push(Answered::start(&Child::Open { dir: store_dir.clone() })?.kill()?);
    }
    load_raw(&raw_dir, plan, record_bytes)?;
    empty_cache();
    let start = seam::now();
    let scanned = replay(&raw_dir)?;
    let raw_ms = seam::seconds_since(start) * 1e3;
    let expected = plan.events * record_bytes as u64;
    if scanned.body_bytes != expected {
        return Err(format!(
            "the raw log has {} of {expected} bytes in {} frames",
            scanned.body_bytes, scanned.frames
        )
        .into());
    }
    context.place.clear(NAME)?;
    let of = |name: &str| {
        let figures = opens.iter().map(|open| figure(open, name)).collect::<Result<Vec<f64>, _>>()?;
        Ok::<_, Failure>(median(&figures, |value| *value))
    };
    let (ready, first, rss) = (of("ready_ms")?, of("first_ms")?, of("rss_mib")?);
    let cpu_s = of("cpu_s")?;
    Ok(Row {
        name: plan.name.to_owned(),
        rate: ready,
        unit: "ms",
        baseline: Some("raw log scan"),
        baseline_rate: Some(raw_ms),
        better: Better::Lower,
        durability: "synced",
        bytes_per_event: Some(record_bytes as f64),
        rss_mb: Some(rss),
        note: format!(
            "ready after {ready:.0} ms, first 1,024 events of {SHARDS} shards after {first:.0} ms, {cpu_s:.2} CPU s, \
             {rss:.0} MiB resident; {record_bytes} log bytes per event; the scan verifies checksums and builds nothing; killed with SIGKILL; {cache}"
        ),
        ..Row::default()
    })
}

/// Fills a raw log with as many bytes as the store's log has.
fn load_raw(dir: &Path, plan: &Plan, record_bytes: usize) -> Result<(), Failure> {
    let log = Arc::new(RawLog::create(dir, RawOptions::default())?);
    seam::runtime()?.block_on(load(&RawTarget { log, record_bytes }, plan.events, plan.payload_bytes))
}

/// Appends so many events from 16 tasks.
async fn load(target: &impl Target, events: u64, payload_bytes: usize) -> Result<(), Failure> {
    let keys = Keys::new(KEYS)?;
    let mut loaders = Vec::new();
    for number in 0..PRODUCERS {
        let (target, mut sender) = (target.clone(), Sender::new(number, &keys, payload_bytes));
        loaders.push(seam::spawn(async move {
            for count in parts(events, number) {
                target.append(&mut sender, count).await?;
            }
            Ok::<_, Failure>(())
        }));
    }
    for loader in loaders {
        loader.await??;
    }
    Ok(())
}

/// The calls of one loader: its part of the events, up to 1,000 in each call.
fn parts(events: u64, loader: u64) -> impl Iterator<Item = usize> {
    let mine = events / PRODUCERS + u64::from(loader < events % PRODUCERS);
    let per_call = PER_CALL as u64;
    (0..mine.div_ceil(per_call)).map(move |call| (mine - call * per_call).min(per_call) as usize)
}

/// The child that loads: answers how many bytes that took, with the store still open.
pub(crate) fn load_child(
    dir: &Path,
    events: u64,
    payload_bytes: usize,
) -> Result<(BenchStore, String), Failure> {
    let runtime = seam::runtime()?;
    let store = runtime.block_on(BenchStore::create(dir, FileOptions::default()))?;
    let before = store.counts_with(0).bytes;
    runtime.block_on(load(&store, events, payload_bytes))?;
    let log_bytes = store.counts_with(0).bytes - before;
    Ok((store, json!({ "log_bytes": log_bytes }).to_string()))
}

/// The child that opens: answers how long it took until the store was ready and until events were read.
pub(crate) fn open_child(dir: &Path) -> Result<(FileStore, String), Failure> {
    let runtime = seam::runtime()?;
    let start = seam::now();
    let cpu_before = cpu::seconds();
    let store = FileStore::open_with(dir, FileOptions::default(), Arc::new(SystemClock))?;
    let ready_ms = seam::seconds_since(start) * 1e3;
    let read = runtime.block_on(read_first(&store))?;
    let first_ms = seam::seconds_since(start) * 1e3;
    let expected = SHARDS as usize * READ_PER_SHARD;
    if read != expected {
        return Err(format!("{read} events were read, {expected} were expected").into());
    }
    let (rss_mib, cpu_s) = (memory::resident_mib()?, cpu::seconds() - cpu_before);
    let answer = json!({ "ready_ms": ready_ms, "first_ms": first_ms, "rss_mib": rss_mib, "cpu_s": cpu_s });
    Ok((store, answer.to_string()))
}

/// Reads the beginning of every shard, as the owners of all seats would.
async fn read_first(store: &FileStore) -> Result<usize, Failure> {
    let Rows::Streams(streams) = store.query(Query::Streams).await? else {
        return Err("the catalogue answered with another list".into());
    };
    let stream = streams.first().ok_or("there is no stream")?;
    let mut read = 0;
    for partition in 0..SHARDS {
        let page = Read {
            shard: stream.shard(Partition(partition)),
            from: ReadFrom::After(EventId(0)),
            limit: READ_PER_SHARD,
            bytes: PAGE_BYTES_MAX,
            processor: None,
            states: false,
        };
        read += store.read(page).await?.entries.len();
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_share_all_events() {
        for events in [1, 99, 1_600, 1_000_003] {
            let all: u64 =
                (0..PRODUCERS).flat_map(|loader| parts(events, loader)).map(|count| count as u64).sum();
            assert_eq!(all, events);
        }
        assert!(parts(1_000_003, 0).all(|count| count <= PER_CALL));
    }
}
