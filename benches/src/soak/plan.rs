//! What the soak consists of: 100 streams, five of them busy, the others quiet or with a task of their own.

use std::time::Duration;

use crate::arguments::StoreKind;

/// Partitions of every stream.
pub(super) const PARTITIONS: u32 = 4;
pub(super) const BUSY_STREAMS: usize = 5;
/// Those beside the busy ones, the timers, the named and the failing.
pub(super) const QUIET_STREAMS: usize = 92;
/// Events over all quiet streams.
pub(super) const QUIET_PER_SECOND: u32 = 50;
/// Lanes of the busy streams together.
pub(super) const LANES: u64 = 1_000_000;
pub(super) const TIMER_EVERY: Duration = Duration::from_millis(50);
/// Timers are spread up to this.
pub(super) const TIMER_MAX: Duration = Duration::from_secs(60);
pub(super) const NAMED_EVERY: Duration = Duration::from_millis(10);
/// Dedup ids that a partition remembers: reached in the first minutes.
pub(super) const DEDUP_MAX: u64 = 5_000;
pub(super) const FAILING_EVERY: Duration = Duration::from_millis(200);
pub(super) const FAILING_BYTES: usize = 10 << 10;
/// How long events, dead letters and ends are kept.
pub(super) const KEEP: Duration = Duration::from_secs(120);

/// Samples of a run: one each minute of the usual hour.
const SAMPLES: u32 = 60;
/// A sample is at least so long.
const SAMPLE_MIN: Duration = Duration::from_secs(5);

/// How much, on which store, for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) store: StoreKind,
    pub(super) samples: u32,
    pub(super) every: Duration,
    /// One event of each busy stream.
    pub(super) busy_every: Duration,
    pub(super) busy_bytes: usize,
}

impl Plan {
    /// A server keeps its data in memory, so it is given less than a folder.
    pub(super) fn new(store: StoreKind, minutes: u32) -> Self {
        let length = Duration::from_secs(60) * minutes;
        let every = (length / SAMPLES).clamp(SAMPLE_MIN, Duration::from_secs(60));
        let samples = u32::try_from(length.as_millis() / every.as_millis()).unwrap_or(u32::MAX);
        let (busy_every, busy_bytes) = match store {
            StoreKind::File => (Duration::from_micros(2_500), 4 << 10),
            StoreKind::Redis => (Duration::from_millis(5), 1 << 10),
        };
        Self { store, samples, every, busy_every, busy_bytes }
    }

    /// The name of the store, in file names too.
    pub(super) fn store_name(&self) -> &'static str {
        match self.store {
            StoreKind::File => "file",
            StoreKind::Redis => "redis",
        }
    }

    /// What an acknowledged event survives.
    pub(super) fn durability(&self) -> &'static str {
        match self.store {
            StoreKind::File => "synced",
            StoreKind::Redis => "buffered",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_a_sample_each_minute_and_a_short_run_has_short_ones() {
        let hour = Plan::new(StoreKind::File, 60);
        assert_eq!((hour.samples, hour.every), (60, Duration::from_secs(60)));
        let short = Plan::new(StoreKind::File, 2);
        assert_eq!((short.samples, short.every), (24, Duration::from_secs(5)));
        assert_eq!(Plan::new(StoreKind::Redis, 120).samples, 120);
    }

    #[test]
    fn there_are_a_hundred_streams() {
        // Timers, named and failing events have one stream each.
        assert_eq!(BUSY_STREAMS + QUIET_STREAMS + 3, 100);
    }
}
