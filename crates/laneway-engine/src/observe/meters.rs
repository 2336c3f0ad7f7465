//! Meters: what a seat counts, under the names that the reference lists. Labels never carry a key.

use std::time::Duration;

use laneway_core::Terminal;
use metrics::{Counter, Gauge, Histogram};

/// The meters of one seat, looked up once.
#[derive(Clone)]
pub(crate) struct Meters {
    ended: [Counter; Terminal::ALL.len()],
    retried: Counter,
    parked: Counter,
    discarded: Counter,
    superseded: Counter,
    duration: Histogram,
    age: Histogram,
    lag: Gauge,
    active: Gauge,
}

/// What happened in a seat since it was last told to the meters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) ended: [u64; Terminal::ALL.len()],
    pub(crate) retried: u64,
    pub(crate) parked: u64,
    /// Dead letters that were forgotten on request.
    pub(crate) discarded: u64,
    /// From append to end, of events that are done.
    pub(crate) ages: Vec<Duration>,
}

impl Tally {
    pub(crate) fn count(&mut self, end: Terminal) {
        self.ended[end as usize] += 1;
    }
}

impl Meters {
    pub(crate) fn new(stream: &str, processor: &str, partition: u32) -> Self {
        let labels = [
            ("stream", stream.to_owned()),
            ("processor", processor.to_owned()),
            ("partition", partition.to_string()),
        ];
        let with = |outcome: String| {
            let mut labels = labels.to_vec();
            labels.push(("outcome", outcome));
            metrics::counter!("laneway_events_processed_total", &labels)
        };
        Self {
            ended: Terminal::ALL.map(|end| with(end.to_string())),
            retried: with("retry".to_owned()),
            parked: with("parked".to_owned()),
            discarded: metrics::counter!("laneway_dead_letters_discarded_total", &labels),
            superseded: metrics::counter!("laneway_superseded_total", &labels),
            duration: metrics::histogram!("laneway_process_duration_seconds", &labels),
            age: metrics::histogram!("laneway_event_age_seconds", &labels),
            lag: metrics::gauge!("laneway_lag_events", &labels),
            active: metrics::gauge!("laneway_lanes_active", &labels),
        }
    }

    pub(crate) fn ran(&self, length: Duration) {
        self.duration.record(length.as_secs_f64());
    }

    /// Counts what is durable now.
    pub(crate) fn tell(&self, tally: Tally, lag: u64, active: usize) {
        for (counter, count) in self.ended.iter().zip(tally.ended) {
            if count > 0 {
                counter.increment(count);
            }
        }
        self.superseded.increment(tally.ended[Terminal::Superseded as usize]);
        self.retried.increment(tally.retried);
        self.parked.increment(tally.parked);
        self.discarded.increment(tally.discarded);
        tally.ages.iter().for_each(|age| self.age.record(age.as_secs_f64()));
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
        {
            self.lag.set(lag as f64);
            self.active.set(active as f64);
        }
    }
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Meters").finish_non_exhaustive()
    }
}
