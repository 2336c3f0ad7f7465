//! The store's clocks: log time, which never goes back; steady time, which goes on over restarts; and the time of day, as
//! far as the wall clock can be trusted (`docs/design/time.md`).

use std::sync::Arc;
use std::time::Duration;

use laneway_core::clock::CLOCK_CLOSED_MAX;
use laneway_core::{Clock, ClockReport, ClockWatch, Steady, Timestamp, WatchMark};
use parking_lot::Mutex;

use crate::machine::Now;

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
    /// How far the wall clock could be trusted. Stores of before did not write it down.
    pub(crate) watch: Option<WatchMark>,
    /// Without a watch: what expired before this time has expired. Log time of the last checkpoint, because nothing
    /// says whether the clock that stamped the log since could be trusted.
    pub(crate) expired: Timestamp,
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
            watch: self.watch,
            expired: self.expired,
        }
    }
}

/// The clocks of one open store.
#[derive(Debug)]
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    epoch: u128,
    settle: Duration,
    last: Mutex<Last>,
}

#[derive(Debug)]
struct Last {
    now: Now,
    /// The store's steady time minus the machine's, wrapping.
    offset: u64,
    watch: ClockWatch,
}

impl StoreClock {
    /// Goes on from where the clocks stood. On the same boot the machine's steady time tells exactly how long
    /// the store was closed; after another boot the wall clock is the best there is.
    pub(crate) fn resume(clock: Arc<dyn Clock>, mark: ClockMark, settle: Duration) -> Self {
        let (epoch, machine, wall) = (clock.epoch(), clock.steady(), clock.calendar());
        let same_boot = mark.epoch == epoch && machine >= mark.machine;
        let (steady, watch) = if mark == ClockMark::default() {
            (machine, ClockWatch::fresh(settle, wall, machine))
        } else if same_boot {
            let steady = Steady(mark.steady.0.saturating_add(machine.0 - mark.machine.0));
            let resumed = mark.watch.map(|watch| ClockWatch::resume(settle, watch, mark.steady));
            (steady, resumed.unwrap_or_else(|| ClockWatch::unmarked(settle, mark.expired, wall, steady)))
        } else {
            rebooted(mark, wall, settle)
        };
        let now = Now { calendar: mark.calendar, steady, ..Now::default() };
        let last = Mutex::new(Last { now, offset: steady.0.wrapping_sub(machine.0), watch });
        let clock = Self { clock, epoch, settle, last };
        clock.now();
        clock
    }

    /// What time it is. Log time and steady time never go back.
    pub(crate) fn now(&self) -> Now {
        let wall = self.clock.calendar();
        let machine = self.clock.steady();
        let mut last = self.last.lock();
        let last = &mut *last;
        let steady = Steady(machine.0.wrapping_add(last.offset)).max(last.now.steady);
        let was_settled = last.watch.times().settled;
        let observed = last.watch.observe(wall, steady);
        let times = last.watch.times();
        if let Some(jump) = observed.jump {
            warn_of(jump, self.settle);
        } else if times.settled && !was_settled {
            tracing::info!("the wall clock has settled: data is deleted by its age again");
        }
        last.now = Now {
            calendar: times.wall.max(last.now.calendar),
            wall: times.wall,
            dates: times.dates,
            expiry: times.expiry,
            settled: times.settled,
            steady,
        };
        last.now
    }

    /// Data of another store comes: the clock must settle before any of it is deleted by its age.
    pub(crate) fn unsettle(&self) {
        // What passed since the last reading confirms nothing.
        self.now();
        self.last.lock().watch.unsettle();
    }

    /// How the wall clock stands, for people.
    pub(crate) fn report(&self) -> ClockReport {
        let now = self.now();
        let last = self.last.lock();
        ClockReport {
            wall: now.wall,
            steady: now.steady,
            dates: now.dates,
            settles_in: last.watch.settles_in(),
            jumps: last.watch.jumps(),
            offset: last.watch.offset(),
            log_ahead: Duration::from_micros(now.calendar.0 - now.wall.0),
        }
    }

    /// Clocks of another store that goes on from here.
    pub(crate) fn again(&self) -> Self {
        Self::resume(Arc::clone(&self.clock), self.mark(self.now()), self.settle)
    }

    /// What to write down beside a moment of this store.
    pub(crate) fn mark(&self, now: Now) -> ClockMark {
        let last = self.last.lock();
        let machine = Steady(now.steady.0.wrapping_sub(last.offset));
        let (watch, expired) = (Some(last.watch.mark()), now.expiry);
        ClockMark { calendar: now.calendar, steady: now.steady, machine, epoch: self.epoch, watch, expired }
    }
}

/// Resumes the clocks after a reboot. Steady time includes the time the store was closed only as far as the wall clock is
/// trusted at once, so delays may end late but never early.
fn rebooted(mark: ClockMark, wall: Timestamp, settle: Duration) -> (Steady, ClockWatch) {
    let closed_since = |time: u64| Duration::from_micros(wall.0.saturating_sub(time)).min(CLOCK_CLOSED_MAX);
    let Some(known) = mark.watch else {
        let steady = mark.steady.after(closed_since(mark.calendar.0));
        return (steady, ClockWatch::unmarked(settle, mark.expired, wall, steady));
    };
    let (mut watch, observed) = ClockWatch::rebooted(settle, known, mark.steady, wall, mark.steady);
    if let Some(jump) = observed.jump {
        warn_of(jump, settle);
        return (mark.steady, watch);
    }
    let written = known.believed.0.saturating_add(mark.steady.since(known.steady).as_micros() as u64);
    let closed_for = closed_since(written);
    watch.shift_steady(closed_for.as_micros() as u64);
    (mark.steady.after(closed_for), watch)
}

fn warn_of(jump: i64, settle: Duration) {
    tracing::warn!(
        jump_s = jump / 1_000_000,
        settle_s = settle.as_secs(),
        "the wall clock jumped: nothing is deleted by its age, and dates go on by the steady clock, until the wall clock has agreed with it for the settling time"
    );
}

#[cfg(test)]
mod tests {
    use laneway_core::{CLOCK_SETTLE, ManualClock};

    use super::*;

    #[test]
    fn log_time_stands_still_when_the_wall_clock_goes_back() {
        let manual = ManualClock::default();
        let clock = StoreClock::resume(Arc::new(manual.clone()), ClockMark::default(), CLOCK_SETTLE);
        let before = clock.now();
        manual.jump_to(Timestamp(before.calendar.0 - 3_600_000_000));
        manual.advance(Duration::from_secs(1));
        let after = clock.now();
        assert_eq!(after.calendar, before.calendar);
        assert_eq!(after.wall, manual.calendar(), "nothing had confirmed the time before");
        assert_eq!(after.steady, before.steady.after(Duration::from_secs(1)));
    }

    #[test]
    fn steady_time_counts_the_time_the_store_was_closed() {
        let manual = ManualClock::default();
        let clock = StoreClock::resume(Arc::new(manual.clone()), ClockMark::default(), CLOCK_SETTLE);
        let closed = clock.now();
        let mark = clock.mark(closed);
        manual.advance(Duration::from_secs(100));
        manual.jump_to(Timestamp(0));
        let reopened = StoreClock::resume(Arc::new(manual.clone()), mark, CLOCK_SETTLE);
        assert_eq!(reopened.now().steady, closed.steady.after(Duration::from_secs(100)));
        let other_boot = ClockMark { epoch: 77, ..mark };
        manual.jump_to(closed.calendar.after(Duration::from_secs(5)));
        let rebooted = StoreClock::resume(Arc::new(manual), other_boot, CLOCK_SETTLE);
        assert_eq!(rebooted.now().steady, closed.steady.after(Duration::from_secs(5)));
    }

    #[test]
    fn wrong_clock_in_the_log_since_the_last_checkpoint_of_a_release_before_expires_nothing() {
        let manual = ManualClock::default();
        let resume = |mark| StoreClock::resume(Arc::new(manual.clone()), mark, CLOCK_SETTLE);
        let clock = resume(ClockMark::default());
        let closed = clock.now();
        let checkpoint = ClockMark { watch: None, expired: closed.calendar, ..clock.mark(closed) };
        for epoch in [checkpoint.epoch, 77] {
            let mark = ClockMark { epoch, ..checkpoint };
            let year = Duration::from_secs(365 * 24 * 3_600);
            manual.jump_to(closed.calendar.after(year));
            let logged = resume(mark).now();
            assert!(logged.calendar > closed.calendar.after(year / 2), "the log says so");
            // It is killed before it makes a checkpoint, and the clock is corrected.
            manual.jump_to(closed.calendar);
            manual.advance(Duration::from_secs(2));
            let again = resume(mark.at(logged.calendar.0, logged.steady.0)).now();
            assert_eq!((again.expiry, again.settled), (closed.calendar, false));
        }
    }
}
