//! What a processor was asked to be.

use std::time::Duration;

use laneway_core::limits::{ATTEMPTS_MAX, RETRY_AFTER_MAX};
use laneway_core::{Refusal, StartAt};

use crate::handler::Policy;

/// How a processor runs its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorSettings {
    /// Runs at the same time on this node. Default: 64.
    pub concurrency: usize,
    /// How long a run may take; then it is dropped and counts as failed. Default: no limit.
    pub timeout: Option<Duration>,
    /// What happens to failures.
    pub policy: Policy,
    /// How many events one call of the handler gets. Default: one.
    pub batch: Batch,
    /// Which types of events run, with `*` for any ending; the others pass by. Default: all.
    pub types: Vec<String>,
    /// Where a new processor begins. Default: the first event there is.
    pub start: StartAt,
    /// Events of one lane that may start before the one before is durably settled. Default: 0, strict.
    pub run_ahead: u32,
    /// Runs that may start per second, over all partitions. Default: no bound.
    pub rate: Option<u32>,
    /// Runs of one key that may start per second. Default: no bound.
    pub rate_per_key: Option<u32>,
    /// Whether its handler uses lane states; without it pages come without them. Default: true.
    pub uses_state: bool,
    /// Latest mode: a newer event asks the running one of its lane to stop. Default: false.
    pub supersede_running: bool,
    /// Latest mode: the payload of the event done last is kept with the lane's state, for the next run to compare with.
    /// Default: false.
    pub keep_last: bool,
}

/// How many events one call of a handler gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Batch {
    /// One.
    #[default]
    One,
    /// Up to so many of one lane, in order.
    Lane {
        /// At most.
        max: usize,
        /// How long a batch that is not full waits for more, from when its first event could run. Default: not at all.
        within: Duration,
    },
    /// The heads of up to so many lanes.
    Lanes {
        /// At most.
        max: usize,
        /// How long a batch that is not full waits for more, from when its first lane could run. Default: not at all.
        within: Duration,
    },
}

impl Batch {
    /// Up to so many events of one lane, as many as there are.
    pub fn lane(max: usize) -> Self {
        Self::Lane { max, within: Duration::ZERO }
    }

    /// The heads of up to so many lanes, as many as there are.
    pub fn lanes(max: usize) -> Self {
        Self::Lanes { max, within: Duration::ZERO }
    }
}

impl Default for ProcessorSettings {
    fn default() -> Self {
        Self {
            concurrency: 64,
            timeout: None,
            policy: Policy::default(),
            batch: Batch::One,
            types: Vec::new(),
            start: StartAt::Beginning,
            run_ahead: 0,
            rate: None,
            rate_per_key: None,
            uses_state: true,
            supersede_running: false,
            keep_last: false,
        }
    }
}

/// Most events of one call.
const BATCH_MAX: usize = 1_000;
/// Longest wait for a fuller batch: it delays every event that comes alone.
const WITHIN_MAX: Duration = Duration::from_secs(60);

impl ProcessorSettings {
    /// Refuses what no processor can be; all faults at once.
    pub fn check(&self) -> Result<(), Vec<Refusal>> {
        let mut faults = Vec::new();
        if self.concurrency == 0 || self.concurrency > 100_000 {
            faults.push(Refusal::new("concurrency", self.concurrency.to_string(), "1 to 100,000"));
        }
        if !(1..=ATTEMPTS_MAX).contains(&self.policy.max_attempts) {
            let limit = format!("1 to {ATTEMPTS_MAX}: it counts the first attempt");
            faults.push(Refusal::new("max_attempts", self.policy.max_attempts.to_string(), limit));
        }
        faults.extend(Refusal::check_longest("backoff_max", self.policy.backoff_max, RETRY_AFTER_MAX).err());
        if self.policy.crashes_max == 0 {
            faults.push(Refusal::new("crashes_max", "0", "at least 1"));
        }
        if self.policy.backoff > self.policy.backoff_max {
            let limit = format!("at most backoff_max, {:?}", self.policy.backoff_max);
            faults.push(Refusal::new("backoff", format!("{:?}", self.policy.backoff), limit));
        }
        if let Batch::Lane { max, within } | Batch::Lanes { max, within } = self.batch {
            if !(1..=BATCH_MAX).contains(&max) {
                faults.push(Refusal::new("batch max", max.to_string(), format!("1 to {BATCH_MAX}")));
            }
            if within > WITHIN_MAX {
                let limit = format!("at most {WITHIN_MAX:?}");
                faults.push(Refusal::new("batch within", format!("{within:?}"), limit));
            }
        }
        for (field, rate) in [("rate", self.rate), ("rate_per_key", self.rate_per_key)] {
            if rate == Some(0) {
                faults.push(Refusal::new(field, "0", "at least 1 (leave it out for no bound)"));
            }
        }
        if self.timeout == Some(Duration::ZERO) {
            faults.push(Refusal::new("timeout", "0", "more than nothing (leave it out for no limit)"));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Whether events of this type run here.
    pub(crate) fn wants(&self, kind: &str) -> bool {
        self.types.is_empty()
            || self.types.iter().any(|wanted| match wanted.strip_suffix('*') {
                Some(beginning) => kind.starts_with(beginning),
                None => wanted == kind,
            })
    }
}
