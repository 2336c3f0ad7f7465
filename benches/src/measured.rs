//! One measured window: what was counted at its two ends, how long calls took, and the median over rounds.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::{Failure, cpu, seam};

/// How long a round warms up and is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) warm: Duration,
    pub(crate) length: Duration,
}

/// What grows while work goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Events finished.
    pub(crate) events: u64,
    /// Syncs of the log.
    pub(crate) syncs: u64,
    /// Bytes of the log.
    pub(crate) bytes: u64,
    /// Syncs of the index, if there is one.
    pub(crate) index_syncs: u64,
}

/// One window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// Of the process that does the work.
    pub(crate) cpu_seconds: f64,
    /// Of this process, when another one does the work.
    pub(crate) sender_cpu_seconds: f64,
    pub(crate) counts: Counts,
    /// Length of every call in microseconds.
    pub(crate) calls: Vec<u32>,
}

impl Measured {
    pub(crate) fn rate(&self) -> f64 {
        self.counts.events as f64 / self.seconds
    }

    pub(crate) fn cpu_per_million(&self) -> f64 {
        cpu::per_million(self.cpu_seconds, self.counts.events)
    }

    pub(crate) fn sender_cpu_per_million(&self) -> f64 {
        cpu::per_million(self.sender_cpu_seconds, self.counts.events)
    }

    pub(crate) fn syncs_per_second(&self) -> f64 {
        self.counts.syncs as f64 / self.seconds
    }

    pub(crate) fn bytes_per_event(&self) -> f64 {
        self.counts.bytes as f64 / self.counts.events.max(1) as f64
    }
}

/// Where a round stands; shared with everyone who works in it.
#[derive(Debug, Default)]
pub(crate) struct Phase(AtomicU8);

// A new phase is 0: the work warms up.
const MEASURE: u8 = 1;
const STOP: u8 = 2;

impl Phase {
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) == STOP
    }

    fn is_measured(&self) -> bool {
        self.0.load(Ordering::Relaxed) == MEASURE
    }
}

/// Lets the work warm up, measures one window of it, and tells it to stop.
pub(crate) async fn window(phase: &Phase, times: Times, counts: impl Fn() -> Counts) -> Measured {
    seam::pause(times.warm).await;
    phase.0.store(MEASURE, Ordering::Relaxed);
    let (start, cpu_before, before) = (seam::now(), cpu::seconds(), counts());
    seam::pause(times.length).await;
    let (after, cpu_after, seconds) = (counts(), cpu::seconds(), seam::seconds_since(start));
    phase.0.store(STOP, Ordering::Relaxed);
    let counts = Counts {
        events: after.events - before.events,
        syncs: after.syncs - before.syncs,
        bytes: after.bytes - before.bytes,
        index_syncs: after.index_syncs - before.index_syncs,
    };
    Measured { seconds, cpu_seconds: cpu_after - cpu_before, counts, ..Measured::default() }
}

/// The same for work that another process does, of which only what is finished can be counted.
pub(crate) async fn window_of_other(
    phase: &Phase,
    times: Times,
    cpu_seconds: impl Fn() -> Result<f64, Failure>,
    finished: &AtomicU64,
) -> Result<Measured, Failure> {
    seam::pause(times.warm).await;
    let cpu_before = cpu_seconds()?;
    let now = Times { warm: Duration::ZERO, ..times };
    let counts = || Counts { events: finished.load(Ordering::Relaxed), ..Counts::default() };
    let measured = window(phase, now, counts).await;
    Ok(Measured {
        cpu_seconds: cpu_seconds()? - cpu_before,
        sender_cpu_seconds: measured.cpu_seconds,
        ..measured
    })
}

/// The calls of one worker: counts what they finished and keeps how long they took.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    calls: Vec<u32>,
}

impl Stopwatch {
    /// Notes a call that finished so many events.
    pub(crate) fn note(&mut self, phase: &Phase, begun: Instant, finished: &AtomicU64, events: usize) {
        finished.fetch_add(events as u64, Ordering::Relaxed);
        if phase.is_measured() {
            let micros = seam::now().duration_since(begun).as_micros();
            self.calls.push(u32::try_from(micros).unwrap_or(u32::MAX));
        }
    }

    pub(crate) fn into_calls(self) -> Vec<u32> {
        self.calls
    }
}

/// The middle of a figure over rounds.
pub(crate) fn median<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(figure).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[len / 2],
        len => (values[len / 2 - 1] + values[len / 2]) / 2.0,
    }
}

/// The call length in milliseconds that this share of the calls did not exceed; `None` without calls.
pub(crate) fn percentile_ms(calls: &[u32], share: f64) -> Option<f64> {
    let mut calls = calls.to_vec();
    calls.sort_unstable();
    let at = (calls.len().checked_sub(1)? as f64 * share).round();
    Some(f64::from(calls[at as usize]) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_middles() {
        assert_eq!(median(&[3.0, 1.0, 2.0], |value| *value), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0], |value| *value), 2.5);
        assert!(median::<f64>(&[], |value| *value).is_nan());
    }

    #[test]
    fn percentiles_are_of_sorted_calls_in_milliseconds() {
        let calls: Vec<u32> = (1..=101).rev().map(|micros| micros * 1000).collect();
        assert_eq!(percentile_ms(&calls, 0.5), Some(51.0));
        assert_eq!(percentile_ms(&calls, 0.99), Some(100.0));
        assert_eq!(percentile_ms(&[], 0.5), None);
    }
}
