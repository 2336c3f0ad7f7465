//! A million lanes that had one event each, settled and trimmed: what they still cost the server, and when they are forgotten.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Define, Query, Rows, Trim};
use laneway_core::{Draft, Kind, Partition, Store, StreamSettings};

use super::ours::{Ours, keys_of_shards};
use super::raw;
use crate::Failure;
use crate::context::{Context, progress};
use crate::report::{Better, Row};
use crate::workload::{PAYLOAD_BYTES, SHARDS, key};

pub(super) const NAME: &str = "redis idle lanes";
const PER_CALL: usize = 1_000;
/// What is documented for keys of up to 20 bytes.
const BYTES_MAX: f64 = 260.0;

pub(super) async fn run(context: &Context, url: &str) -> Result<Row, Failure> {
    let lanes: u32 = context.choose(100_000, 1_000_000);
    progress(&format!("{NAME}: {lanes} lanes get an event each, which is settled and trimmed"));
    let ours = Ours::open(url, "idle").await?;
    let (_, before) = raw::used(url).await?;
    let payload = Bytes::from(vec![7; PAYLOAD_BYTES]);
    for (shard, numbers) in (0u32..).zip(keys_of_shards(lanes)?) {
        for numbers in numbers.chunks(PER_CALL) {
            let draft = |number: &u32| Ok(Draft::new(Some(key(*number)?), Kind::default(), payload.clone()));
            let drafts = numbers.iter().map(draft).collect::<Result<Vec<_>, Failure>>()?;
            ours.append_to(shard, drafts, None).await?;
        }
    }
    let (_, full) = raw::used(url).await?;
    ours.drain().await?;
    trim(&ours).await?;
    let (_, idle) = raw::used(url).await?;
    progress(&format!("{NAME}: they are forgotten"));
    forget(&ours, u64::from(lanes)).await?;
    let (_, forgotten) = raw::used(url).await?;
    let per_lane = |bytes: f64| (bytes - before) / f64::from(lanes);
    Ok(Row {
        name: NAME.to_owned(),
        rate: per_lane(idle),
        unit: "bytes per lane",
        must: Some(BYTES_MAX),
        better: Better::Lower,
        durability: "buffered",
        note: format!(
            "{lanes} lanes, of the server's memory; {:.0} with an event of {PAYLOAD_BYTES} bytes each before retention, {:.1} when they are forgotten",
            per_lane(full),
            per_lane(forgotten)
        ),
        ..Row::default()
    })
}

/// Answers how many rows went.
async fn trim(ours: &Ours) -> Result<u64, Failure> {
    let mut rows = 0;
    for partition in 0..SHARDS {
        rows += ours.store.trim(Trim { shard: ours.stream.shard(Partition(partition)) }).await?.rows;
    }
    Ok(rows)
}

async fn forget(ours: &Ours, lanes: u64) -> Result<(), Failure> {
    let forget_lanes_after = Some(Duration::from_secs(1));
    let settings = StreamSettings { forget_lanes_after, ..ours.stream.settings.clone() };
    let streams = ours.store.query(Query::Streams).await?;
    let Rows::Streams(streams) = streams else { return Err("another list came".into()) };
    let expect = streams.iter().find(|info| info.id == ours.stream.id).map(|info| info.version);
    ours.store.define(Define::Stream { name: ours.stream.name.clone(), expect, settings }).await?;
    let mut gone = 0;
    while gone < lanes {
        gone += trim(ours).await?;
    }
    Ok(())
}
