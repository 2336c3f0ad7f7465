//! Rounds of one row: syncs, the server, its baseline and the raw log, in turns; and the row that they make.

use std::time::Duration;

use crate::Failure;
use crate::context::{Context, progress};
use crate::measured::{Measured, Times, median, percentile_ms};
use crate::report::{Beside, Row};
use crate::rows::sync;

/// What was measured of one row, round by round.
pub(super) struct Rounds {
    ours: Vec<Measured>,
    theirs: Vec<Measured>,
    raw: Vec<Measured>,
    syncs: Vec<f64>,
}

/// The rate that must be reached: so many per sync, but no more than this in any case.
#[derive(Clone, Copy)]
pub(super) struct Must {
    pub(super) per_sync: f64,
    pub(super) at_most: f64,
}

/// How a row is called and judged.
#[derive(Clone, Copy)]
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) baseline: &'static str,
    pub(super) unit: &'static str,
    pub(super) must: Option<Must>,
}

/// Measures one after the other, several times.
pub(super) fn in_turns(
    context: &Context,
    name: &str,
    mut ours: impl FnMut(Times) -> Result<Measured, Failure>,
    mut theirs: impl FnMut(Times) -> Result<Measured, Failure>,
    mut raw: impl FnMut(Times) -> Result<Measured, Failure>,
) -> Result<Rounds, Failure> {
    let times = Times { warm: context.length(150, 500), length: context.length(500, 5_000) };
    let count = context.choose(3, 5);
    progress(&format!("{name}: {count} rounds, in turns with its baselines and with single syncs"));
    let mut rounds = Rounds { ours: Vec::new(), theirs: Vec::new(), raw: Vec::new(), syncs: Vec::new() };
    for _ in 0..count {
        rounds.syncs.push(sync::measure(context, context.length(150, 1_000), Duration::ZERO)?.rate);
        rounds.ours.push(ours(times)?);
        rounds.theirs.push(theirs(times)?);
        rounds.raw.push(raw(times)?);
    }
    Ok(rounds)
}

impl Rounds {
    pub(super) fn row(&self, about: About, server_mib: f64, note: &str) -> Row {
        let calls: Vec<u32> = self.ours.iter().flat_map(|round| round.calls.iter().copied()).collect();
        let syncs = median(&self.syncs, |syncs| *syncs);
        let p50_ms = percentile_ms(&calls, 0.5);
        let in_syncs =
            p50_ms.map_or_else(String::new, |ms| format!(", p50 is {:.1} of them", ms * syncs / 1e3));
        Row {
            name: about.name.to_owned(),
            rate: median(&self.ours, Measured::rate),
            unit: about.unit,
            baseline: Some(about.baseline),
            baseline_rate: Some(median(&self.theirs, Measured::rate)),
            beside: vec![Beside {
                name: "raw log",
                rate: median(&self.raw, Measured::rate),
                cpu_s_per_million: median(&self.raw, Measured::cpu_per_million),
            }],
            must: about.must.map(|must| (must.per_sync * syncs).min(must.at_most)),
            cpu_s_per_million: Some(median(&self.ours, Measured::cpu_per_million)),
            baseline_cpu_s_per_million: Some(median(&self.theirs, Measured::cpu_per_million)),
            durability: "synced",
            baseline_syncs_per_second: None,
            p50_ms,
            p99_ms: percentile_ms(&calls, 0.99),
            rss_mb: Some(server_mib),
            note: format!(
                "{note}; CPU is the server's, those who ask took {:.1} CPU s per million, {} {:.1}; {syncs:.0} single \
                 syncs/s{in_syncs}",
                median(&self.ours, Measured::sender_cpu_per_million),
                about.baseline,
                median(&self.theirs, Measured::cpu_per_million),
            ),
            ..Row::default()
        }
    }
}
