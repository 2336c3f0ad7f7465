//! Rates: how often runs may start, per processor and per key.
//!
//! Counted per seat: a processor's rate is split evenly over its partitions (contract 3.20).

use std::time::Duration;

use hashbrown::HashMap;
use laneway_core::{LaneName, Steady};

/// Keys remembered before those whose time is over are forgotten.
const KEYS_KEPT: usize = 4_096;

/// When runs of one seat may start.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Time between two runs of the seat on average, if it is bounded.
    between: Option<Duration>,
    /// When the next run would be due if all had come evenly; it may lie in the past by no more than a burst.
    next: Steady,
    /// Time between two runs of one key, if it is bounded.
    between_per_key: Option<Duration>,
    last: HashMap<LaneName, Steady>,
}

/// Runs that may start at once after a quiet time.
const BURST: u32 = 10;

impl Rates {
    /// `per_second` over all partitions, `per_key` for each key.
    pub(crate) fn new(per_second: Option<u32>, per_key: Option<u32>, partitions: u32) -> Self {
        let between = |rate: u32| Duration::from_secs(1) / rate.max(1);
        Self {
            between: per_second.map(|rate| between(rate) * partitions.max(1)),
            next: Steady(0),
            between_per_key: per_key.map(between),
            last: HashMap::new(),
        }
    }

    /// When the next run of the seat may start; `None` means now.
    pub(crate) fn wait_until(&self, now: Steady) -> Option<Steady> {
        self.between?;
        (self.next > now).then_some(self.next)
    }

    /// When the next run of a key may start; `None` means now.
    pub(crate) fn key_waits_until(&self, lane: &LaneName, now: Steady) -> Option<Steady> {
        let due = self.last.get(lane)?.after(self.between_per_key?);
        (due > now).then_some(due)
    }

    /// A run starts.
    pub(crate) fn started(&mut self, lane: &LaneName, now: Steady) {
        if let Some(between) = self.between {
            let burst = between * BURST;
            let earliest = Steady(now.0.saturating_sub(u64::try_from(burst.as_micros()).unwrap_or(0)));
            self.next = self.next.max(earliest).after(between);
        }
        if let Some(between) = self.between_per_key {
            if self.last.len() >= KEYS_KEPT {
                self.last.retain(|_, last| last.after(between) > now);
            }
            self.last.insert(lane.clone(), now);
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::EventId;

    use super::*;

    const SECOND: u64 = 1_000_000;

    fn lane(number: u64) -> LaneName {
        LaneName::Event(EventId(number))
    }

    /// Starts as many runs as may start, second by second; answers how many in each.
    fn check(mut rates: Rates, lanes: u64, seconds: u64) -> Vec<u32> {
        let mut started = Vec::new();
        for second in 1..=seconds {
            let mut count = 0;
            for tenth in 0..10 {
                let now = Steady(1_000 * SECOND + second * SECOND + tenth * SECOND / 10);
                for number in 0..lanes {
                    let lane = lane(number);
                    if rates.wait_until(now).is_none() && rates.key_waits_until(&lane, now).is_none() {
                        rates.started(&lane, now);
                        count += 1;
                    }
                }
            }
            started.push(count);
        }
        started
    }

    #[test]
    fn a_processor_starts_as_many_runs_as_its_rate_allows_after_a_short_burst() {
        let started = check(Rates::new(Some(5), None, 1), 100, 4);
        assert_eq!(started[1..], [5, 5, 5]);
        assert!(started[0] <= 5 + BURST + 1, "{started:?}");
    }

    #[test]
    fn a_key_starts_as_often_as_its_rate_allows_whatever_the_others_do() {
        assert_eq!(check(Rates::new(None, Some(2), 1), 3, 2), [6, 6]);
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        assert_eq!(check(Rates::new(None, None, 1), 7, 1), [70]);
    }
}
