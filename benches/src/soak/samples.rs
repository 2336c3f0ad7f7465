//! What is looked at, once per sample.

use crate::load::Latencies;

/// Shares of the calls of one sample, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Shares {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
}

impl From<&Latencies> for Shares {
    fn from(calls: &Latencies) -> Self {
        Self { p50: calls.p50(), p99: calls.p99(), p999: calls.p999() }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Minutes since the beginning, at its end.
    pub(super) minute: f64,
    /// Appends answered each second.
    pub(super) appends_per_second: f64,
    pub(super) append: Shares,
    /// From append to run of the quiet streams' events.
    pub(super) run: Shares,
    /// Events of theirs that have not run.
    pub(super) waiting: f64,
    /// Of this process, with all its nodes.
    pub(super) resident_mib: f64,
    /// Of the server, if there is one.
    pub(super) server_mib: f64,
    pub(super) disk_mib: f64,
}
