//! Each row: the store first, then the server raw, in turns.

use laneway_testkit::servers::RedisServer;

use super::ours::Ours;
use super::{idle, latency, nodes, raw};
use crate::context::{Context, progress};
use crate::measured::median;
use crate::report::{Better, Row};
use crate::{Failure, seam};

const APPEND: &str = "redis append 100 per call";
const DRAIN: &str = "redis drain in lane order";
const NODES: &str = "redis drain, 3 nodes";
const LIFE: &str = "redis server time";
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
    [APPEND, DRAIN, NODES, LIFE, latency::NAME, idle::NAME].map(str::to_owned).to_vec()
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let runtime = seam::runtime()?;
    if [APPEND, DRAIN, NODES, LIFE].iter().any(|name| context.wants(name)) {
        let figures = runtime.block_on(measure(context))?;
        rows.extend(figures.rows().into_iter().filter(|row| context.wants(&row.name)));
    }
    if context.wants(latency::NAME) {
        let server = RedisServer::start(EVERY_SECOND);
        rows.push(runtime.block_on(latency::run(context, &server.url()))?);
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
    by_nodes: f64,
    micros: f64,
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
        let append = events as f64 / ours.append(events).await?;
        let drain = events as f64 / ours.drain().await?;
        let (after, _) = raw::used(&url).await?;
        let raw_append = events as f64 / raw::append(&url, events).await?;
        let (drained, seconds) = raw::drain(&url).await?;
        if drained != events {
            return Err(format!("{drained} of {events} raw entries were read").into());
        }
        let by_nodes = nodes::drain(&url, &format!("nodes-{round}"), events).await?;
        let micros = (after - before) / events as f64;
        rounds.push(Round {
            append,
            raw_append,
            drain,
            raw_drain: events as f64 / seconds,
            by_nodes,
            micros,
        });
    }
    Ok(Figures { events, rounds })
}

impl Figures {
    fn rows(&self) -> [Row; 4] {
        let Self { events, rounds } = self;
        let of = |figure: fn(&Round) -> f64| median(rounds, figure);
        let (raw_append, raw_drain) = (of(|round| round.raw_append), of(|round| round.raw_drain));
        let row = |name: &str, rate, baseline, baseline_rate, share: f64, note: String| Row {
            name: name.to_owned(),
            rate,
            unit: "events/s",
            baseline: Some(baseline),
            baseline_rate: Some(baseline_rate),
            must: Some(share * baseline_rate),
            durability: "buffered",
            note,
            ..Row::default()
        };
        let append = row(
            APPEND,
            of(|round| round.append),
            "pipelined XADD",
            raw_append,
            APPEND_MUST,
            format!(
                "{events} events of {KEYS} keys by {WORKERS} callers, each with its chain; appendfsync everysec"
            ),
        );
        let drain = row(
            DRAIN,
            of(|round| round.drain),
            "XREADGROUP + XACK",
            raw_drain,
            DRAIN_MUST,
            format!(
                "{events} events through the engine and a handler that does nothing; raw reads 1,000 at a time"
            ),
        );
        let by_nodes = row(
            NODES,
            of(|round| round.by_nodes),
            "XREADGROUP + XACK",
            raw_drain,
            DRAIN_MUST,
            format!("the same through {} nodes of one machine that share the seats", nodes::NODES),
        );
        let life = Row {
            name: LIFE.to_owned(),
            rate: of(|round| round.micros),
            unit: "us per event",
            must: Some(LIFE_MUST),
            better: Better::Lower,
            durability: "buffered",
            note: "of the server's main thread: append, read and commit of a plain event".to_owned(),
            ..Row::default()
        };
        [append, drain, by_nodes, life]
    }
}
