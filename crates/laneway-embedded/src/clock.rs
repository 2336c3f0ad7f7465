//! The store's two clocks: log time, which never goes back, and steady time, which goes on over restarts.

use std::sync::Arc;

use laneway_core::{Clock, Steady, Timestamp};
use parking_lot::Mutex;

use crate::machine::Now;

/// A wall clock that moved by more than this against steady time is worth a line in the log of the process.
const JUMP_MICROS: u64 = 60_000_000;

/// Where steady time stood when it was last written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockMark {
    /// Log time then.
    pub(crate) calendar: Timestamp,
    /// The store's steady time then.
    pub(crate) steady: Steady,
    /// The machine's steady time then, and what it counts from.
    pub(crate) machine: Steady,
    pub(crate) epoch: u128,
}

impl ClockMark {
    /// This mark moved on to a later moment of the same store. The machine's time moved by as much.
    pub(crate) fn at(self, calendar: u64, steady: u64) -> Self {
        let passed = steady.saturating_sub(self.steady.0);
        Self {
            calendar: Timestamp(calendar),
            steady: Steady(steady),
            machine: Steady(self.machine.0.saturating_add(passed)),
            epoch: self.epoch,
        }
    }
}

/// The clocks of one open store.
#[derive(Debug)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    epoch: u128,
    /// The store's steady time minus the machine's, wrapping.
    offset: u64,
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    now: Now,
    wall: Timestamp,
}

impl StoreClock {
    /// Goes on from where the clocks stood. On the same boot the machine's steady time tells exactly how long
    /// the store was closed; after another boot the wall clock is the best there is.
    pub(crate) fn resume(clock: Arc<dyn Clock>, mark: ClockMark) -> Self {
        let (epoch, machine, wall) = (clock.epoch(), clock.steady(), clock.calendar());
        let closed_for = if mark.epoch == epoch && machine >= mark.machine {
            machine.0 - mark.machine.0
        } else {
            wall.0.saturating_sub(mark.calendar.0)
        };
        let fresh = mark == ClockMark::default();
        let steady = if fresh { machine } else { Steady(mark.steady.0.saturating_add(closed_for)) };
        let now = Now { calendar: wall.max(mark.calendar), steady };
        if now.calendar.0 - wall.0 > JUMP_MICROS {
            tracing::warn!(
                ahead_s = (now.calendar.0 - wall.0) / 1_000_000,
                "log time is ahead of the wall clock: dates up to it are due, and it stands still until the clock has caught up"
            );
        }
        Self { clock, epoch, offset: steady.0.wrapping_sub(machine.0), last: Mutex::new(Last { now, wall }) }
    }

    /// What time it is. Neither clock ever goes back.
    pub(crate) fn now(&self) -> Now {
        let wall = self.clock.calendar();
        let steady = Steady(self.clock.steady().0.wrapping_add(self.offset));
        let mut last = self.last.lock();
        let steady = steady.max(last.now.steady);
        let expected = last.wall.0.saturating_add(steady.0 - last.now.steady.0);
        if wall.0.abs_diff(expected) > JUMP_MICROS {
            let log = last.now.calendar.0;
            tracing::warn!(
                expected,
                found = wall.0,
                ahead_s = log.saturating_sub(wall.0) / 1_000_000,
                "wall clock jumped; log time never goes back: where it is ahead now, it stands still until the clock has caught up"
            );
        }
        *last = Last { now: Now { calendar: wall.max(last.now.calendar), steady }, wall };
        last.now
    }

    /// Clocks of another store that goes on from here.
    pub(crate) fn again(&self) -> Self {
        Self::resume(Arc::clone(&self.clock), self.mark(self.now()))
    }

    /// What to write down beside a moment of this store.
    pub(crate) fn mark(&self, now: Now) -> ClockMark {
        let machine = Steady(now.steady.0.wrapping_sub(self.offset));
        ClockMark { calendar: now.calendar, steady: now.steady, machine, epoch: self.epoch }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use laneway_core::ManualClock;

    use super::*;

    #[test]
    fn log_time_stands_still_when_the_wall_clock_goes_back() {
        let manual = ManualClock::default();
        let clock = StoreClock::resume(Arc::new(manual.clone()), ClockMark::default());
        let before = clock.now();
        manual.jump_to(Timestamp(before.calendar.0 - 3_600_000_000));
        manual.advance(Duration::from_secs(1));
        let after = clock.now();
        assert_eq!(after.calendar, before.calendar);
        assert_eq!(after.steady, before.steady.after(Duration::from_secs(1)));
    }

    #[test]
    fn steady_time_counts_the_time_the_store_was_closed() {
        let manual = ManualClock::default();
        let clock = StoreClock::resume(Arc::new(manual.clone()), ClockMark::default());
        let closed = clock.now();
        let mark = clock.mark(closed);
        manual.advance(Duration::from_secs(100));
        manual.jump_to(Timestamp(0));
        let reopened = StoreClock::resume(Arc::new(manual.clone()), mark);
        assert_eq!(reopened.now().steady, closed.steady.after(Duration::from_secs(100)));
        let other_boot = ClockMark { epoch: 77, ..mark };
        manual.jump_to(closed.calendar.after(Duration::from_secs(5)));
        let rebooted = StoreClock::resume(Arc::new(manual), other_boot);
        assert_eq!(rebooted.now().steady, closed.steady.after(Duration::from_secs(5)));
    }
}
