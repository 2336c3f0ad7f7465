//! What the neighbour consists of.

use std::time::Duration;

pub(super) const BUSY_PARTITIONS: u32 = 4;
pub(super) const BUSY_MIB_PER_SECOND: u64 = 40;
pub(super) const QUIET_PARTITIONS: u32 = 500;
/// Events over all quiet partitions.
pub(super) const QUIET_PER_SECOND: u32 = 50;
/// One append of the others.
pub(super) const OTHER_EVERY: Duration = Duration::from_millis(1);
/// Dedup ids that a partition of the others remembers: reached within a short run.
pub(super) const DEDUP_MAX: u64 = 20_000;
/// One delayed event.
pub(super) const DELAYED_EVERY: Duration = Duration::from_millis(20);
/// Delays are spread up to this.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(10);
pub(super) const DEAD_LETTER_BYTES: usize = 1 << 20;
/// How long everything runs before it is measured.
pub(super) const WARM: Duration = Duration::from_secs(3);

/// Longest time that events are kept.
const KEEP: Duration = Duration::from_secs(60);

/// How long the neighbour runs, and how long events are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) length: Duration,
    pub(super) keep: Duration,
}

impl Plan {
    /// A run of so many minutes. One that is not much longer than a minute keeps events for half of its time: otherwise it
    /// would be over before anything may go, and its disk would tell nothing.
    pub(super) fn new(minutes: u32) -> Self {
        let length = Duration::from_secs(60) * minutes;
        Self { length, keep: KEEP.min(length / 2) }
    }

    /// Twice what the busy stream writes while its events are kept, in MiB.
    pub(super) fn disk_max_mib(&self) -> f64 {
        2.0 * BUSY_MIB_PER_SECOND as f64 * self.keep.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_keeps_events_for_half_of_it() {
        assert_eq!(Plan::new(1).keep, Duration::from_secs(30));
        assert_eq!(Plan::new(10).keep, Duration::from_secs(60));
        assert_eq!(Plan::new(10).disk_max_mib(), 4_800.0);
    }
}
