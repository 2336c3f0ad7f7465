//! Whether a soak is flat at its end: its last quarter beside its second, when the load has filled what it fills.

use super::samples::Sample;
use crate::measured::median;

/// Fewer samples have no quarters to compare.
const SAMPLES_MIN: usize = 16;
/// How much larger than the second quarter the last may be. Latencies are those of a machine with other work.
const LATENCY_MAX: f64 = 1.5;
const SIZE_MAX: f64 = 1.15;
/// What is smaller than that is noise: milliseconds, MiB, events.
const LATENCY_NOISE_MS: f64 = 1.0;
const SIZE_NOISE_MIB: f64 = 32.0;
const WAITING_NOISE: f64 = 50.0;

/// One figure of the second and of the last quarter.
#[derive(Debug)]
pub(super) struct Trend {
    name: &'static str,
    early: f64,
    late: f64,
    limit: f64,
}

impl Trend {
    pub(super) fn is_flat(&self) -> bool {
        // What was not measured is not flat.
        self.late <= self.limit
    }

    pub(super) fn line(&self) -> String {
        let Self { name, early, late, limit } = self;
        let flat = if self.is_flat() { "flat" } else { "GROWS" };
        format!("{name:<22} {early:>10.2} {late:>10.2}   at most {limit:>10.2}  {flat}")
    }
}

/// All figures; `None` if the run was too short to tell.
pub(super) fn trends(samples: &[Sample]) -> Option<Vec<Trend>> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    let quarter = samples.len() / 4;
    let (early, late) = (&samples[quarter..2 * quarter], &samples[samples.len() - quarter..]);
    let trend = |name, figure: fn(&Sample) -> f64, factor: f64, noise: f64| {
        let (early, late) = (median(early, figure), median(late, figure));
        Trend { name, early, late, limit: (factor * early).max(early + noise) }
    };
    let latency = |name, figure| trend(name, figure, LATENCY_MAX, LATENCY_NOISE_MS);
    let size = |name, figure| trend(name, figure, SIZE_MAX, SIZE_NOISE_MIB);
    Some(vec![
        latency("append p50, ms", |sample| sample.append.p50),
        latency("append p99, ms", |sample| sample.append.p99),
        latency("append p99.9, ms", |sample| sample.append.p999),
        latency("append to run p50, ms", |sample| sample.run.p50),
        latency("append to run p99, ms", |sample| sample.run.p99),
        trend("events waiting", |sample| sample.waiting, LATENCY_MAX, WAITING_NOISE),
        size("resident memory, MiB", |sample| sample.resident_mib),
        size("server memory, MiB", |sample| sample.server_mib),
        size("disk, MiB", |sample| sample.disk_mib),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::samples::Shares;

    fn growing(disk: fn(f64) -> f64) -> Vec<Sample> {
        let shares = Shares { p50: 0.3, p99: 1.0, p999: 5.0 };
        let sample = |minute| {
            let minute = f64::from(minute);
            Sample { minute, append: shares, run: shares, disk_mib: disk(minute), ..Sample::default() }
        };
        (1..=60).map(sample).collect()
    }

    fn grows(samples: &[Sample]) -> Vec<&'static str> {
        let trends = trends(samples).unwrap();
        trends.iter().filter(|trend| !trend.is_flat()).map(|trend| trend.name).collect()
    }

    #[test]
    fn what_fills_up_in_the_beginning_is_flat() {
        assert!(grows(&growing(|minute| 500.0 * minute.min(5.0))).is_empty());
    }

    #[test]
    fn what_grows_to_the_end_is_not() {
        assert_eq!(grows(&growing(|minute| 100.0 * minute)), ["disk, MiB"]);
        assert_eq!(grows(&growing(|_| f64::NAN)), ["disk, MiB"]);
    }

    #[test]
    fn a_short_run_has_no_verdict() {
        assert!(trends(&growing(|_| 1.0)[..15]).is_none());
    }
}
