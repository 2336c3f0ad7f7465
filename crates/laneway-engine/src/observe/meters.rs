//! What a seat counts: plain numbers while it works, told in bulk once they are durable, so that nobody pays for a metric
//! while an event runs.

use std::time::Duration;

use laneway_core::{Terminal, Timestamp};
use metrics::{Counter, Gauge, Histogram};

use super::names;

/// The meters of one seat, looked up once. A recorder that is installed later hears nothing of it.
pub(crate) struct Meters {
    ended: [Counter; Terminal::ALL.len()],
    jobs_ended: [Counter; Terminal::ALL.len()],
    retried: Counter,
    parked: Counter,
    dead: Counter,
    discarded: Counter,
    superseded: Counter,
    duration: Histogram,
    age: Histogram,
    wait: Histogram,
    lag_events: Gauge,
    lag_seconds: Gauge,
    lanes_active: Gauge,
    lanes_blocked: Gauge,
    jobs_waiting: Gauge,
    jobs_running: Gauge,
    dead_letters: Gauge,
}

/// What happened in a seat since it was last told to the meters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    ended: [u64; Terminal::ALL.len()],
    jobs_ended: [u64; Terminal::ALL.len()],
    pub(crate) retried: u64,
    pub(crate) parked: u64,
    /// Events that became dead letters.
    pub(crate) dead: u64,
    /// Dead letters that were forgotten on request.
    pub(crate) discarded: u64,
    /// Of every call of a handler.
    durations: Vec<Duration>,
    /// From append to end, of events that are done.
    ages: Vec<Duration>,
    /// From append to the start of the first run.
    waits: Vec<Duration>,
}

/// How a seat stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) lag_events: u64,
    pub(crate) lag: Duration,
    pub(crate) lanes_active: usize,
    pub(crate) lanes_blocked: usize,
    pub(crate) jobs_waiting: usize,
    pub(crate) jobs_running: usize,
    /// Nothing until they were counted.
    pub(crate) dead_letters: Option<u64>,
}

impl Tally {
    pub(crate) fn ended(&mut self, end: Terminal) {
        self.ended[end as usize] += 1;
    }

    pub(crate) fn job_ended(&mut self, end: Terminal) {
        self.jobs_ended[end as usize] += 1;
    }

    pub(crate) fn ran(&mut self, length: Duration) {
        self.durations.push(length);
    }

    /// An event is done.
    pub(crate) fn aged(&mut self, appended: Timestamp, done: Timestamp) {
        self.ages.push(between(appended, done));
    }

    /// An event was run for the first time.
    pub(crate) fn waited(&mut self, appended: Timestamp, started: Timestamp) {
        self.waits.push(between(appended, started));
    }
}

/// The calendar may have been put back between the two.
pub(crate) fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::from_micros(later.0.saturating_sub(earlier.0))
}

impl Meters {
    pub(crate) fn new(stream: &str, processor: &str, partition: u32) -> Self {
        let partition = partition.to_string();
        let seat = [stream, processor, &partition];
        let with = |fourth: &str| [stream, processor, &partition, fourth].map(ToOwned::to_owned);
        let outcome = |metric: &names::Metric, outcome: &str| {
            metric.counter(&with(outcome).each_ref().map(String::as_str))
        };
        let jobs = |state: &str| names::JOBS.gauge(&with(state).each_ref().map(String::as_str));
        Self {
            ended: Terminal::ALL.map(|end| outcome(&names::PROCESSED, &end.to_string())),
            jobs_ended: Terminal::ALL.map(|end| outcome(&names::JOBS_ENDED, &end.to_string())),
            retried: outcome(&names::PROCESSED, "retry"),
            parked: outcome(&names::PROCESSED, "parked"),
            dead: names::DEAD_MADE.counter(&seat),
            discarded: names::DISCARDED.counter(&seat),
            superseded: names::SUPERSEDED.counter(&seat),
            duration: names::DURATION.histogram(&seat),
            age: names::AGE.histogram(&seat),
            wait: names::WAIT.histogram(&seat),
            lag_events: names::LAG_EVENTS.gauge(&seat),
            lag_seconds: names::LAG_SECONDS.gauge(&seat),
            lanes_active: names::LANES_ACTIVE.gauge(&seat),
            lanes_blocked: names::LANES_BLOCKED.gauge(&seat),
            jobs_waiting: jobs("waiting"),
            jobs_running: jobs("running"),
            dead_letters: names::DEAD_LETTERS.gauge(&seat),
        }
    }

    /// Counts what is durable now; the tally begins anew.
    pub(crate) fn count(&self, tally: &mut Tally) {
        self.superseded.increment(tally.ended[Terminal::Superseded as usize]);
        let ends = self.ended.iter().zip(&mut tally.ended);
        let jobs = self.jobs_ended.iter().zip(&mut tally.jobs_ended);
        let others = [
            (&self.retried, &mut tally.retried),
            (&self.parked, &mut tally.parked),
            (&self.dead, &mut tally.dead),
            (&self.discarded, &mut tally.discarded),
        ];
        for (counter, count) in ends.chain(jobs).chain(others).filter(|(_, count)| **count > 0) {
            counter.increment(std::mem::take(count));
        }
        for (histogram, lengths) in [
            (&self.duration, &mut tally.durations),
            (&self.age, &mut tally.ages),
            (&self.wait, &mut tally.waits),
        ] {
            lengths.drain(..).for_each(|length| histogram.record(length.as_secs_f64()));
        }
    }

    /// Tells how the seat stands.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    pub(crate) fn show(&self, levels: &Levels) {
        self.lag_events.set(levels.lag_events as f64);
        self.lag_seconds.set(levels.lag.as_secs_f64());
        self.lanes_active.set(levels.lanes_active as f64);
        self.lanes_blocked.set(levels.lanes_blocked as f64);
        self.jobs_waiting.set(levels.jobs_waiting as f64);
        self.jobs_running.set(levels.jobs_running as f64);
        levels.dead_letters.into_iter().for_each(|count| self.dead_letters.set(count as f64));
    }

    /// Tells that the seat is not owned here any more: the sum over all nodes stays right.
    pub(crate) fn leave(&self) {
        self.show(&Levels { dead_letters: Some(0), ..Levels::default() });
    }
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Meters").finish_non_exhaustive()
    }
}
