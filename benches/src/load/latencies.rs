//! How long calls took: recorded by many tasks, then sorted, with the shares that limits are about.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use crate::seam;

/// Where tasks record how long their calls took; clones share the record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<u32>>>);

impl Recorder {
    /// Records a call that ends now.
    pub(crate) fn note(&self, begun: Instant) {
        let micros = seam::now().duration_since(begun).as_micros();
        self.0.lock().push(u32::try_from(micros).unwrap_or(u32::MAX));
    }

    /// The calls since they were taken last.
    pub(crate) fn take(&self) -> Latencies {
        Latencies::new(std::mem::take(&mut self.0.lock()))
    }
}

/// Lengths of calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    /// In microseconds, sorted.
    micros: Vec<u32>,
}

impl Latencies {
    pub(crate) fn new(mut micros: Vec<u32>) -> Self {
        micros.sort_unstable();
        Self { micros }
    }

    pub(crate) fn len(&self) -> usize {
        self.micros.len()
    }

    pub(crate) fn p50(&self) -> f64 {
        self.share_ms(0.5)
    }

    pub(crate) fn p99(&self) -> f64 {
        self.share_ms(0.99)
    }

    pub(crate) fn p999(&self) -> f64 {
        self.share_ms(0.999)
    }

    pub(crate) fn max(&self) -> f64 {
        self.share_ms(1.0)
    }

    /// What this share of the calls did not exceed, in milliseconds; not a number without calls, so that no limit holds.
    fn share_ms(&self, share: f64) -> f64 {
        let Some(last) = self.micros.len().checked_sub(1) else { return f64::NAN };
        f64::from(self.micros[(last as f64 * share).round() as usize]) / 1e3
    }

    /// All of them in one line.
    pub(crate) fn summary(&self) -> String {
        let [p50, p99, p999, max] = [self.p50(), self.p99(), self.p999(), self.max()];
        format!("p50 {p50:.2}, p99 {p99:.2}, p99.9 {p999:.2}, max {max:.1} ms of {} calls", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_sorted_calls() {
        let calls = Latencies::new((0..=1_000).rev().map(|number| number * 1_000).collect());
        let shares = [calls.p50(), calls.p99(), calls.p999(), calls.max()];
        assert_eq!(shares, [500.0, 990.0, 999.0, 1_000.0]);
        assert!(calls.summary().starts_with("p50 500.00, p99 990.00"), "{}", calls.summary());
    }

    #[test]
    fn no_call_meets_no_limit() {
        assert!(Latencies::default().p50().is_nan());
    }
}
