//! The limits of the neighbour and whether they hold.
//!
//! A latency may also be a few syncs long: an append waits for the sync before it and for its own, and on a shared disk a
//! sync alone may take longer than the limit. Which of both counted is said in the report.

use super::plan::{BUSY_MIB_PER_SECOND, Plan};
use crate::load::Latencies;

const QUIET_P99_MS: f64 = 10.0;
const OTHER_P999_MS: f64 = 50.0;
/// 500 MB.
const RESIDENT_MIB: f64 = 500e6 / (1 << 20) as f64;
/// The busy stream counts as busy from this share of its rate on.
const BUSY_SHARE: f64 = 0.9;
/// Syncs that a latency may take where these alone are slow.
const SYNCS: f64 = 4.0;

/// What was measured.
#[derive(Debug)]
pub(super) struct Figures {
    /// From append to run of the quiet events.
    pub(super) quiet: Latencies,
    /// Events of them that had not run in the end.
    pub(super) quiet_open: usize,
    /// Appends of the others.
    pub(super) others: Latencies,
    pub(super) syncs: Latencies,
    pub(super) resident_mib: f64,
    pub(super) disk_mib: f64,
    pub(super) busy_mib_per_second: f64,
}

/// One limit.
#[derive(Debug)]
pub(super) struct Limit {
    name: &'static str,
    value: f64,
    limit: f64,
    unit: &'static str,
    /// Whether more is better.
    at_least: bool,
    note: String,
}

impl Limit {
    pub(super) fn holds(&self) -> bool {
        // What was not measured holds no limit.
        if self.at_least { self.value >= self.limit } else { self.value <= self.limit }
    }

    pub(super) fn line(&self) -> String {
        let Self { name, value, limit, unit, at_least, note } = self;
        let (bound, holds) =
            (if *at_least { "at least" } else { "at most" }, if self.holds() { "yes" } else { "NO" });
        format!("{name:<32} {value:>9.2} {unit:<5} {bound:<8} {limit:>9.2}  {holds:<3}  {note}")
            .trim_end()
            .to_owned()
    }
}

impl Figures {
    pub(super) fn limits(&self, plan: &Plan) -> Vec<Limit> {
        let at_most =
            |name, value, limit, unit, note| Limit { name, value, limit, unit, at_least: false, note };
        let (quiet_max, quiet_by) = latency_max(QUIET_P99_MS, self.syncs.p99(), "p99");
        let (other_max, other_by) = latency_max(OTHER_P999_MS, self.syncs.p999(), "p99.9");
        let quiet_note = format!("{quiet_by}; {}; {} had not run", self.quiet.summary(), self.quiet_open);
        let other_note = format!("{other_by}; {}", self.others.summary());
        vec![
            at_most("quiet append to run, p99", self.quiet.p99(), quiet_max, "ms", quiet_note),
            at_most("other appends, p99.9", self.others.p999(), other_max, "ms", other_note),
            at_most("resident memory", self.resident_mib, RESIDENT_MIB, "MiB", String::new()),
            at_most(
                "disk",
                self.disk_mib,
                plan.disk_max_mib(),
                "MiB",
                format!("2 x traffic x {:?}", plan.keep),
            ),
            Limit {
                name: "busy stream",
                value: self.busy_mib_per_second,
                limit: BUSY_SHARE * BUSY_MIB_PER_SECOND as f64,
                unit: "MiB/s",
                at_least: true,
                note: "slower, it would be no neighbour".to_owned(),
            },
        ]
    }
}

/// The longer of the limit and a few syncs, and which it was.
fn latency_max(limit: f64, sync: f64, share: &str) -> (f64, String) {
    let by_syncs = SYNCS * sync;
    if by_syncs > limit {
        (by_syncs, format!("limit {limit} ms, but {SYNCS} syncs take longer (sync {share} {sync:.2} ms)"))
    } else {
        (limit, format!("sync {share} {sync:.2} ms"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        Figures {
            quiet: Latencies::new(vec![2_000; 100]),
            quiet_open: 0,
            others: Latencies::new(vec![1_000; 1_000]),
            syncs: Latencies::new(vec![300; 100]),
            resident_mib: 200.0,
            disk_mib: 1_000.0,
            busy_mib_per_second: 40.0,
        }
    }

    fn broken(figures: &Figures) -> Vec<&'static str> {
        let limits = figures.limits(&Plan::new(1));
        limits.iter().filter(|limit| !limit.holds()).map(|limit| limit.name).collect()
    }

    #[test]
    fn every_limit_can_break_alone() {
        assert!(broken(&figures()).is_empty());
        let slow = Latencies::new(vec![11_000; 100]);
        assert_eq!(broken(&Figures { quiet: slow, ..figures() }), ["quiet append to run, p99"]);
        let slow = Latencies::new(vec![51_000; 100]);
        assert_eq!(broken(&Figures { others: slow, ..figures() }), ["other appends, p99.9"]);
        assert_eq!(broken(&Figures { resident_mib: 501.0, ..figures() }), ["resident memory"]);
        assert_eq!(broken(&Figures { disk_mib: 2_401.0, ..figures() }), ["disk"]);
        assert_eq!(broken(&Figures { busy_mib_per_second: 30.0, ..figures() }), ["busy stream"]);
    }

    #[test]
    fn slow_syncs_stretch_a_latency_and_are_named() {
        let slow = Latencies::new(vec![4_000; 100]);
        let figures = Figures { quiet: Latencies::new(vec![15_000; 100]), syncs: slow, ..figures() };
        assert!(broken(&figures).is_empty());
        let line = figures.limits(&Plan::new(1))[0].line();
        assert!(line.contains("limit 10 ms, but 4 syncs take longer (sync p99 4.00 ms)"), "{line}");
    }

    #[test]
    fn nothing_measured_breaks_its_limit() {
        let nothing = Figures { quiet: Latencies::default(), ..figures() };
        assert_eq!(broken(&nothing), ["quiet append to run, p99"]);
    }
}
