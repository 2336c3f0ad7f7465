//! Every metric of the engine in one list: its name, kind, labels and meaning.
//!
//! Whoever meters something makes the metric from its entry here, so that nothing can be counted that the list, and with it
//! `docs/reference/metrics.md`, does not tell. Labels never carry a key, nor anything else that a producer makes up.

use laneway_core::ClockReport;
use metrics::{Counter, Gauge, Histogram, Label};

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, from the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How a value is spread.
    Histogram,
}

impl std::fmt::Display for MetricKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// One metric.
///
/// ```
/// let about = laneway_engine::observe::METRICS;
/// let lag = about.iter().find(|metric| metric.name == "laneway_lag_events").unwrap();
/// assert_eq!(lag.labels, ["stream", "processor", "partition"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub help: &'static str,
}

const SEAT: &[&str] = &["stream", "processor", "partition"];

pub(super) const APPENDED: Metric = Metric {
    name: "laneway_events_appended_total",
    kind: MetricKind::Counter,
    labels: &["stream", "partition"],
    help: "Events that this node appended: sent, submitted, emitted, or due after a delay. Repeats do not count.",
};
pub(super) const PROCESSED: Metric = Metric {
    name: "laneway_events_processed_total",
    kind: MetricKind::Counter,
    labels: &["stream", "processor", "partition", "outcome"],
    help: "What came of events: done, failed, skipped, superseded, cancelled or expired; retry and parked are no ends.",
};
pub(super) const SUPERSEDED: Metric = Metric {
    name: "laneway_superseded_total",
    kind: MetricKind::Counter,
    labels: SEAT,
    help: "Events of streams of mode latest that a newer one took the place of.",
};
pub(super) const DURATION: Metric = Metric {
    name: "laneway_process_duration_seconds",
    kind: MetricKind::Histogram,
    labels: SEAT,
    help: "How long a call of a handler took, whatever came of it.",
};
pub(super) const AGE: Metric = Metric {
    name: "laneway_event_age_seconds",
    kind: MetricKind::Histogram,
    labels: SEAT,
    help: "From append to done.",
};
pub(super) const WAIT: Metric = Metric {
    name: "laneway_lane_wait_seconds",
    kind: MetricKind::Histogram,
    labels: SEAT,
    help: "From append to the start of the first run: behind others of its lane, for a free place, for its time.",
};
pub(super) const LAG_EVENTS: Metric = Metric {
    name: "laneway_lag_events",
    kind: MetricKind::Gauge,
    labels: SEAT,
    help: "Events behind the last one before which everything has ended or was set aside.",
};
pub(super) const LAG_SECONDS: Metric = Metric {
    name: "laneway_lag_seconds",
    kind: MetricKind::Gauge,
    labels: SEAT,
    help: "Age of the oldest event that has neither ended nor was set aside; of one not read yet, that of the last one read.",
};
pub(super) const LANES_ACTIVE: Metric = Metric {
    name: "laneway_lanes_active",
    kind: MetricKind::Gauge,
    labels: SEAT,
    help: "Lanes with an event in memory that waits or runs.",
};
pub(super) const LANES_BLOCKED: Metric = Metric {
    name: "laneway_lanes_blocked",
    kind: MetricKind::Gauge,
    labels: SEAT,
    help: "Lanes that are parked, paused, diverting, held, or wait to try again. Counts to 65,537 per partition.",
};
pub(super) const JOBS: Metric = Metric {
    name: "laneway_jobs",
    kind: MetricKind::Gauge,
    labels: &["stream", "processor", "partition", "state"],
    help: "Jobs in the owner's memory: waiting or running. Neither those not read yet (laneway_lag_events counts their events) nor those set aside in lanes that are held up.",
};
pub(super) const JOBS_ENDED: Metric = Metric {
    name: "laneway_jobs_ended_total",
    kind: MetricKind::Counter,
    labels: &["stream", "processor", "partition", "outcome"],
    help: "Jobs by how they ended.",
};
pub(super) const DEAD_LETTERS: Metric = Metric {
    name: "laneway_dead_letters",
    kind: MetricKind::Gauge,
    labels: SEAT,
    help: "Dead letters that are there. What retention takes away is noticed within ten minutes.",
};
pub(super) const DEAD_MADE: Metric = Metric {
    name: "laneway_dead_letters_made_total",
    kind: MetricKind::Counter,
    labels: SEAT,
    help: "Events that were put aside as dead letters.",
};
pub(super) const DISCARDED: Metric = Metric {
    name: "laneway_dead_letters_discarded_total",
    kind: MetricKind::Counter,
    labels: SEAT,
    help: "Dead letters that were forgotten on request.",
};
pub(super) const STORE_OP: Metric = Metric {
    name: "laneway_store_op_duration_seconds",
    kind: MetricKind::Histogram,
    labels: &["op"],
    help: "How long the store took to answer a call.",
};
pub(super) const STORE_ERRORS: Metric = Metric {
    name: "laneway_store_errors_total",
    kind: MetricKind::Counter,
    labels: &["op", "error"],
    help: "Calls that the store could not do: full, unknown (no answer), down or corrupt. Refusals do not count.",
};
pub(super) const FAULTS: Metric = Metric {
    name: "laneway_faults_total",
    kind: MetricKind::Counter,
    labels: &["part"],
    help: "Parts of the engine that came to a bad end and were begun again: run, seat, retention or schedules.",
};
pub(super) const NODES: Metric = Metric {
    name: "laneway_nodes",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "Nodes that this node knows on its store; 1 where only one process can open it.",
};
pub(super) const LEADER: Metric = Metric {
    name: "laneway_leader",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "1 while this node leads, as one that is alone always does, else 0.",
};
pub(super) const LEASES_HELD: Metric = Metric {
    name: "laneway_leases_held",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "Partitions, counted per processor, that this node owns.",
};
pub(super) const LEASES_DORMANT: Metric = Metric {
    name: "laneway_leases_dormant",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "Those of them that have no work and take little memory. Always 0 on a store that several nodes share.",
};
pub(super) const LEASES_LOST: Metric = Metric {
    name: "laneway_lease_lost_total",
    kind: MetricKind::Counter,
    labels: &[],
    help: "How often this node lost its lease, dropped everything it had and joined the cluster again.",
};
pub(super) const REBALANCES: Metric = Metric {
    name: "laneway_rebalances_total",
    kind: MetricKind::Counter,
    labels: &[],
    help: "Plans that this node made as leader because nodes or processors came or went.",
};
pub(super) const ADOPTIONS: Metric = Metric {
    name: "laneway_store_adoptions_total",
    kind: MetricKind::Counter,
    labels: &[],
    help: "Partitions that this node took over from an earlier life of the store, which may have lost their end.",
};
pub(super) const DEDUP_EVICTED: Metric = Metric {
    name: "laneway_dedup_evicted_total",
    kind: MetricKind::Counter,
    labels: &["stream"],
    help: "Dedup ids that this node let go before their dedup_window was over, because dedup_max newer ones came: a repeat of these is another event.",
};
pub(super) const CLOCK_JUMPS: Metric = Metric {
    name: "laneway_clock_jumps_total",
    kind: MetricKind::Counter,
    labels: &[],
    help: "Wall clock jumps of more than a minute that the store detected.",
};
pub(super) const CLOCK_SETTLED: Metric = Metric {
    name: "laneway_clock_settled",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "1 if the wall clock is settled; 0 while nothing is deleted by age.",
};
pub(super) const CLOCK_OFFSET: Metric = Metric {
    name: "laneway_clock_offset_seconds",
    kind: MetricKind::Gauge,
    labels: &[],
    help: "Wall clock minus the time the store uses, in seconds. Not 0 after a jump, until the clock is corrected or settles.",
};
pub(super) const HELD_BYTES: Metric = Metric {
    name: "laneway_store_held_bytes",
    kind: MetricKind::Gauge,
    labels: &["stream", "by"],
    help: "Bytes of log files that the store cannot delete yet. by is the reason: processor (not processed yet), lane (parked or retrying), keep, or results (not expired).",
};
pub(super) const BUILD_INFO: Metric = Metric {
    name: "laneway_build_info",
    kind: MetricKind::Gauge,
    labels: &["version"],
    help: "Always 1; the label says which version runs.",
};

/// Every metric that the engine tells.
pub const METRICS: &[Metric] = &[
    APPENDED,
    PROCESSED,
    SUPERSEDED,
    DURATION,
    AGE,
    WAIT,
    LAG_EVENTS,
    LAG_SECONDS,
    LANES_ACTIVE,
    LANES_BLOCKED,
    JOBS,
    JOBS_ENDED,
    DEAD_LETTERS,
    DEAD_MADE,
    DISCARDED,
    STORE_OP,
    STORE_ERRORS,
    FAULTS,
    NODES,
    LEADER,
    LEASES_HELD,
    LEASES_DORMANT,
    LEASES_LOST,
    REBALANCES,
    ADOPTIONS,
    DEDUP_EVICTED,
    CLOCK_JUMPS,
    CLOCK_SETTLED,
    CLOCK_OFFSET,
    HELD_BYTES,
    BUILD_INFO,
];

/// Tells the recorder what every metric means, and which version runs.
pub(crate) fn introduce() {
    for Metric { name, kind, help, .. } in METRICS.iter().copied() {
        match kind {
            MetricKind::Counter => metrics::describe_counter!(name, help),
            MetricKind::Gauge => metrics::describe_gauge!(name, help),
            MetricKind::Histogram => metrics::describe_histogram!(name, help),
        }
    }
    BUILD_INFO.gauge(&[env!("CARGO_PKG_VERSION")]).set(1.0);
    // Seldom or never counted, and an alarm needs something to compare with.
    LEASES_LOST.counter(&[]).increment(0);
    REBALANCES.counter(&[]).increment(0);
    ADOPTIONS.counter(&[]).increment(0);
    show_held(0);
    show_dormant(0);
}

/// A part of the engine came to a bad end.
pub(crate) fn count_fault(part: &str) {
    FAULTS.counter(&[part]).increment(1);
}

/// How the store's clock stands.
pub(crate) fn show_clock(report: &ClockReport) {
    CLOCK_JUMPS.counter(&[]).absolute(report.jumps);
    CLOCK_SETTLED.gauge(&[]).set(f64::from(u8::from(report.is_settled())));
    CLOCK_OFFSET.gauge(&[]).set(report.offset as f64 / 1e6);
}

/// Sets how many bytes of files this stream keeps.
pub(crate) fn show_held_bytes(stream: &str, by: &str, bytes: u64) {
    HELD_BYTES.gauge(&[stream, by]).set(bytes as f64);
}

/// How the cluster stands.
pub(crate) fn show_cluster(nodes: usize, leads: bool) {
    NODES.gauge(&[]).set(nodes as f64);
    LEADER.gauge(&[]).set(f64::from(u8::from(leads)));
}

/// So many partitions are owned here.
pub(super) fn show_held(seats: usize) {
    LEASES_HELD.gauge(&[]).set(seats as f64);
}

/// So many of them are dormant.
pub(super) fn show_dormant(seats: usize) {
    LEASES_DORMANT.gauge(&[]).set(seats as f64);
}

/// A partition of an earlier life of the store was taken over.
pub(crate) fn count_adoption() {
    ADOPTIONS.counter(&[]).increment(1);
}

/// Dedup ids of a stream went before their time.
pub(crate) fn count_evicted(stream: &str, count: u64) {
    DEDUP_EVICTED.counter(&[stream]).increment(count);
}

/// This node was believed dead.
pub(crate) fn count_lost_lease() {
    LEASES_LOST.counter(&[]).increment(1);
}

/// A plan was made.
pub(crate) fn count_rebalance() {
    REBALANCES.counter(&[]).increment(1);
}

impl Metric {
    fn with(&self, values: &[&str]) -> Vec<Label> {
        debug_assert_eq!(self.labels.len(), values.len(), "{} has another number of labels", self.name);
        self.labels.iter().zip(values).map(|(label, value)| Label::new(*label, (*value).to_owned())).collect()
    }

    pub(super) fn counter(&self, values: &[&str]) -> Counter {
        metrics::counter!(self.name, self.with(values))
    }

    pub(super) fn gauge(&self, values: &[&str]) -> Gauge {
        metrics::gauge!(self.name, self.with(values))
    }

    pub(super) fn histogram(&self, values: &[&str]) -> Histogram {
        metrics::histogram!(self.name, self.with(values))
    }
}
