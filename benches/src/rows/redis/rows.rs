//! Each row: the store first, then the server raw, in turns.

use laneway_testkit::servers::RedisServer;

use super::nodes::ByNodes;
use super::ours::Ours;
use super::{idle, latency, nodes, raw};
use crate::context::{Context, progress};
use crate::measured::median;
use crate::report::{Better, Row};
use crate::{Failure, seam};

const APPEND: &str = "redis append 100 per call";
const DRAIN: &str = "redis drain in lane order";
const LIFE: &str = "redis server time";
const APPEND_BY_NODES: &str = "redis append 100 per call, 3 nodes";
const DRAIN_BY_NODES: &str = "redis drain, 3 nodes";
const LIFE_BY_NODES: &str = "redis server time, 3 nodes";
/// The rows that are measured together.
const TOGETHER: [&str; 6] = [APPEND, APPEND_BY_NODES, DRAIN, DRAIN_BY_NODES, LIFE, LIFE_BY_NODES];
/// Events of one call.
pub(super) const PER_CALL: usize = 100;
/// Callers at one time.
pub(super) const WORKERS: u32 = 4;
/// Lanes of the appends.
pub(super) const KEYS: u32 = 10_000;
const ROUNDS: usize = 3;
/// How the server writes, as most do.
const EVERY_SECOND: &[&str] = &["--appendfsync", "everysec"];
/// Shares of the raw server that must be reached, and microseconds that an event may cost.
const APPEND_MUST: f64 = 0.33;
const DRAIN_MUST: f64 = 0.3;
const LIFE_MUST: f64 = 15.0;

pub(crate) fn names() -> Vec<String> {
    let names = TOGETHER.into_iter().chain([latency::NAME, latency::BY_NODES, idle::NAME]);
    names.map(str::to_owned).collect()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let runtime = seam::runtime()?;
    if TOGETHER.iter().any(|name| context.wants(name)) {
        let figures = runtime.block_on(measure(context))?;
        rows.extend(figures.rows().into_iter().filter(|row| context.wants(&row.name)));
    }
    if context.wants(latency::NAME) {
        let server = RedisServer::start(EVERY_SECOND);
        rows.push(runtime.block_on(latency::run(context, &server.url()))?);
    }
    if context.wants(latency::BY_NODES) {
        let server = RedisServer::start(EVERY_SECOND);
        rows.push(runtime.block_on(latency::by_nodes(context, &server.url()))?);
    }
    if context.wants(idle::NAME) {
        let server = RedisServer::start(EVERY_SECOND);
        rows.push(runtime.block_on(idle::run(context, &server.url()))?);
    }
    Ok(rows)
}

/// One round: events per second of both, and microseconds of the server per event of ours.
#[derive(Clone, Copy)]
struct Round {
    append: f64,
    raw_append: f64,
    drain: f64,
    raw_drain: f64,
    micros: f64,
    by_nodes: ByNodes,
}

struct Figures {
    events: u64,
    rounds: Vec<Round>,
}

async fn measure(context: &Context) -> Result<Figures, Failure> {
    let events: u64 = context.choose(100_000, 400_000);
    progress(&format!("redis: {ROUNDS} rounds of {events} events, in turns with the raw server"));
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let server = RedisServer::start(EVERY_SECOND);
        let url = server.url();
        let ours = Ours::open(&url, &format!("round-{round}")).await?;
        let (before, _) = raw::used(&url).await?;
        let append = ours.append(events).await?.rate();
        let drain = events as f64 / ours.drain().await?;
        let (after, _) = raw::used(&url).await?;
        let raw_append = events as f64 / raw::append(&url, events).await?;
        let (drained, seconds) = raw::drain(&url).await?;
        if drained != events {
            return Err(format!("{drained} of {events} raw entries were read").into());
        }
        // On a server of its own: one with much in its file rewrites that, beside whatever is measured.
        drop(server);
        let server = RedisServer::start(EVERY_SECOND);
        let by_nodes = nodes::measure(&server.url(), &format!("nodes-{round}"), events).await?;
        let micros = (after - before) / events as f64;
        rounds.push(Round {
            append,
            raw_append,
            drain,
            raw_drain: events as f64 / seconds,
            micros,
            by_nodes,
        });
    }
    Ok(Figures { events, rounds })
}

impl Figures {
    fn rows(&self) -> [Row; 6] {
        let Self { events, rounds } = self;
        let of = |figure: fn(&Round) -> f64| median(rounds, figure);
        let (raw_append, raw_drain) = (of(|round| round.raw_append), of(|round| round.raw_drain));
        let append =
            |name, rate, note| rate_row(name, rate, ("pipelined XADD", raw_append), APPEND_MUST, note);
        let drain =
            |name, rate, note| rate_row(name, rate, ("XREADGROUP + XACK", raw_drain), DRAIN_MUST, note);
        let by_nodes = format!("the same through {} nodes of one machine that share the seats", nodes::NODES);
        let appended = format!(
            "{events} events of {KEYS} keys by {WORKERS} callers, each with its chain; appendfsync everysec"
        );
        let drained = format!(
            "{events} events through the engine and a handler that does nothing; raw reads 1,000 at a time"
        );
        let lived = "of the server's main thread: append, read and commit of a plain event".to_owned();
        [
            append(APPEND, of(|round| round.append), appended),
            append(APPEND_BY_NODES, of(|round| round.by_nodes.append), by_nodes.clone()),
            drain(DRAIN, of(|round| round.drain), drained),
            drain(DRAIN_BY_NODES, of(|round| round.by_nodes.drain), by_nodes.clone()),
            life_row(LIFE, of(|round| round.micros), lived),
            life_row(LIFE_BY_NODES, of(|round| round.by_nodes.micros), by_nodes),
        ]
    }
}

/// How fast something is, beside the raw server.
fn rate_row(name: &str, rate: f64, (baseline, raw): (&'static str, f64), share: f64, note: String) -> Row {
    Row {
        name: name.to_owned(),
        rate,
        unit: "events/s",
        baseline: Some(baseline),
        baseline_rate: Some(raw),
        must: Some(share * raw),
        durability: "buffered",
        note,
        ..Row::default()
    }
}

/// What an event costs the server.
fn life_row(name: &str, micros: f64, note: String) -> Row {
    Row {
        name: name.to_owned(),
        rate: micros,
        unit: "us per event",
        must: Some(LIFE_MUST),
        better: Better::Lower,
        durability: "buffered",
        note,
        ..Row::default()
    }
}
