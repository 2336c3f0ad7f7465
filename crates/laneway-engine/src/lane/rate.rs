//! Rates: how often runs may start, per processor and per key.
//!
//! Counted per seat: a processor's rate is split evenly over its partitions (contract 3.20), and its burst too.

use std::time::Duration;

use hashbrown::HashMap;
use laneway_core::{LaneName, Steady};

/// Keys remembered before those whose time is over are looked for at all.
const KEYS_KEPT: usize = 4_096;

/// When runs of one seat may start.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Time between two runs of the seat on average, if it is bounded.
    between: Option<Duration>,
    /// When the next run would be due if all had come evenly; it may lie in the past by no more than a burst.
    next: Steady,
    /// How far in the past that may be.
    behind_max: Duration,
    /// Time between two runs of one key, if it is bounded.
    between_per_key: Option<Duration>,
    last: HashMap<LaneName, Steady>,
    /// How many keys there are when they are next looked through. Twice as many as stayed the last time: a look at all
    /// of them is paid by as many starts.
    look_at: usize,
}

/// Runs of a processor that may start at once after a quiet time; each of its partitions may start one.
const BURST: u32 = 10;

/// A seat that wakes up this late makes up for it, so that a high rate is reached on many partitions.
const LATE: Duration = Duration::from_millis(20);

impl Rates {
    /// `per_second` over all partitions, `per_key` for each key.
    pub(crate) fn new(per_second: Option<u32>, per_key: Option<u32>, partitions: u32) -> Self {
        let between_two = |rate: u32| Duration::from_secs(1) / rate.max(1);
        let between = per_second.map(|rate| between_two(rate) * partitions.max(1));
        let burst = (BURST / partitions.max(1)).max(1);
        Self {
            between,
            next: Steady(0),
            behind_max: (between.unwrap_or_default() * (burst - 1)).max(LATE),
            between_per_key: per_key.map(between_two),
            last: HashMap::new(),
            look_at: KEYS_KEPT,
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

    /// Whether no run that started before can hold up a later one.
    pub(crate) fn are_rested(&self, now: Steady) -> bool {
        let between_per_key = self.between_per_key.unwrap_or_default();
        self.next.after(self.behind_max) <= now
            && self.last.values().all(|last| last.after(between_per_key) <= now)
    }

    /// A run starts.
    pub(crate) fn started(&mut self, lane: &LaneName, now: Steady) {
        if let Some(between) = self.between {
            let behind = u64::try_from(self.behind_max.as_micros()).unwrap_or(0);
            let earliest = Steady(now.0.saturating_sub(behind));
            self.next = self.next.max(earliest).after(between);
        }
        if let Some(between) = self.between_per_key {
            if self.last.len() >= self.look_at {
                self.last.retain(|_, last| last.after(between) > now);
                self.look_at = KEYS_KEPT.max(2 * self.last.len());
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
    fn the_burst_of_a_processor_is_shared_by_its_partitions() {
        let started = |partitions: u32| -> u32 {
            let seats = (0..partitions).map(|_| Rates::new(Some(5), None, partitions));
            seats.map(|rates| check(rates, 100, 1)[0]).sum()
        };
        assert!((10..=15).contains(&started(1)), "{}", started(1));
        assert!((10..=15).contains(&started(4)), "{}", started(4));
        // Each partition may start one at once, however many there are.
        assert!((16..=21).contains(&started(16)), "{}", started(16));
    }

    #[test]
    fn a_high_rate_is_reached_though_every_wake_up_is_late() {
        let mut rates = Rates::new(Some(16_000), None, 16);
        let mut started = 0;
        for milliseconds in 0..1_000 {
            // Twelve milliseconds at a time, as a busy machine wakes up.
            let now = Steady(1_000 * SECOND + milliseconds / 12 * 12_000);
            while rates.wait_until(now).is_none() {
                rates.started(&lane(0), now);
                started += 1;
            }
        }
        assert!((980..=1_020).contains(&started), "{started}");
    }

    #[test]
    fn keys_are_looked_through_only_when_they_have_doubled() {
        let mut rates = Rates::new(None, Some(1), 1);
        let now = Steady(1_000 * SECOND);
        let mut looked = 0;
        for number in 0..100_000 {
            let before = rates.look_at;
            rates.started(&lane(number), now);
            looked += u32::from(rates.look_at != before);
        }
        assert_eq!((looked, rates.last.len()), (5, 100_000), "4,096 and each time twice as many");
        let later = now.after(Duration::from_secs(2));
        (100_000..140_000).for_each(|number| rates.started(&lane(number), later));
        assert!(rates.last.len() <= 40_000, "those whose time is over are forgotten: {}", rates.last.len());
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
