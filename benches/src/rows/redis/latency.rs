//! How long it takes from the call that submits a job until its handler starts, at 1,000 jobs a second, beside the length
//! of a call that does nothing.

use laneway_engine::{Engine, Env};

use super::ours::Ours;
use super::{nodes, raw};
use crate::Failure;
use crate::context::{Context, progress};
use crate::measured::percentile_ms;
use crate::report::{Better, Row};
use crate::rows::engine::waits;

pub(super) const NAME: &str = "redis latency, submit to start";
pub(super) const BY_NODES: &str = "redis latency, 3 nodes";

pub(super) async fn run(context: &Context, url: &str) -> Result<Row, Failure> {
    let length = context.length(2_000, 10_000);
    progress(&format!("{NAME}: {length:?} at 1,000/s"));
    let ours = Ours::open(url, "latency").await?;
    let engines = [Engine::new(ours.stores(), Env::system())];
    let waits = waits(&engines, length, async || Ok(()), async || ours.until_settled().await).await?;
    row(NAME, url, &waits).await
}

pub(super) async fn by_nodes(context: &Context, url: &str) -> Result<Row, Failure> {
    let length = context.length(2_000, 10_000);
    progress(&format!("{BY_NODES}: {length:?} at 1,000/s"));
    row(BY_NODES, url, &nodes::latency(url, length).await?).await
}

async fn row(name: &str, url: &str, waits: &[u32]) -> Result<Row, Failure> {
    let pings = raw::pings(url).await?;
    let of = |calls: &[u32], share| percentile_ms(calls, share).ok_or("nothing was measured");
    let (p50, ping) = (of(waits, 0.5)?, of(&pings, 0.5)?);
    Ok(Row {
        name: name.to_owned(),
        rate: p50,
        unit: "ms p50",
        baseline: Some("a PING, p50"),
        baseline_rate: Some(ping),
        better: Better::Lower,
        durability: "buffered",
        p50_ms: Some(p50),
        p99_ms: Some(of(waits, 0.99)?),
        note: format!("{} jobs; p50 is {:.1} PINGs", waits.len(), p50 / ping),
        ..Row::default()
    })
}
