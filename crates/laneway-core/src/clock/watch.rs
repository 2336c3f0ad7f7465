//! Compares the wall clock with the steady clock and decides how far to trust it.
//!
//! The wall clock can be wrong after boot, until a time server corrects it, or because somebody sets it. A store that
//! accepts every reading would delete data that is not old, and run work before its date. So the watch provides three
//! times:
//!
//! - [`Times::wall`] is the base of new deadlines. After a jump it continues from the old time by the steady clock, until
//!   the new time is accepted.
//! - [`Times::dates`] decides which dates are due. It is never ahead of a time that the steady clock confirms.
//! - [`Times::expiry`] decides what has expired. It does not advance while the clock is unsettled: expired data stays
//!   expired, and nothing else expires.
//!
//! A new time is accepted after it has agreed with the steady clock for the settling time. A return to the old time is
//! accepted at once. The watch does no I/O.

use std::time::Duration;

use super::{Steady, Timestamp};

/// A larger difference between wall clock and steady clock is a jump. Time servers slew by less.
pub const CLOCK_JUMP: Duration = Duration::from_secs(60);

/// Default settling time: how long a new time must agree with the steady clock before it is accepted.
pub const CLOCK_SETTLE: Duration = Duration::from_secs(600);

/// After a reboot, nothing confirms how long the store was closed. Up to this time, trust the wall clock.
pub const CLOCK_CLOSED_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Time servers slew by at most 500 ppm, so the tolerance grows with the time between readings.
const SLEW_DIVISOR: u64 = 2_000;

const JUMP_MICROS: u64 = CLOCK_JUMP.as_micros() as u64;
const CLOSED_MICROS: u64 = CLOCK_CLOSED_MAX.as_micros() as u64;

/// A moment on both clocks, extrapolated by steady time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    wall: u64,
    steady: u64,
}

impl Line {
    fn at(self, steady: u64) -> u64 {
        self.wall.saturating_add(steady.saturating_sub(self.steady))
    }
}

/// The times to use at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The time of day: new deadlines count from here.
    pub wall: Timestamp,
    /// Dates up to this are due.
    pub dates: Timestamp,
    /// Everything that expires before this time has expired.
    pub expiry: Timestamp,
    /// Whether data may be deleted by age.
    pub settled: bool,
}

/// The wall clock as a store found it: what people are shown when they ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReport {
    /// The time of day by which the store works.
    pub wall: Timestamp,
    /// The store's steady time.
    pub steady: Steady,
    /// Dates up to this are due.
    pub dates: Timestamp,
    /// How long the wall clock must still agree with steady time before data is deleted by its age; zero when it
    /// is settled.
    pub settles_in: Duration,
    /// How often the wall clock was found to have jumped.
    pub jumps: u64,
    /// Microseconds by which the wall clock reads more than the store believes; negative: less.
    pub offset: i64,
    /// How far log time is ahead of the time of day. Log time never goes back.
    pub log_ahead: Duration,
}

impl ClockReport {
    /// Whether data may be deleted because of its age.
    pub fn is_settled(&self) -> bool {
        self.settles_in.is_zero()
    }
}

/// What changed with one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Microseconds by which the wall clock jumped, if it did.
    pub jump: Option<i64>,
}

/// What a watch writes down, to go on after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchMark {
    /// Steady time of the mark.
    pub steady: Steady,
    /// The believed time then.
    pub believed: Timestamp,
    /// The last reading of the wall clock then.
    pub read: Timestamp,
    /// Since when the wall clock has agreed with steady time.
    pub since: Steady,
    /// The least that the time can be: it was believed once.
    pub floor: Timestamp,
    /// Expiry time when the clock was last settled.
    pub expired: Timestamp,
    /// How often the wall clock was found to have jumped.
    pub jumps: u64,
    /// The believed time was confirmed for a whole settling time.
    pub firm: bool,
    /// Data may be deleted by its age.
    pub settled: bool,
    /// The later reading may be right, so new deadlines are based on it.
    pub gap: bool,
}

/// Compares readings of the wall clock with steady time.
///
/// ```
/// use std::time::Duration;
/// use laneway_core::{CLOCK_SETTLE, ClockWatch, Steady, Timestamp};
///
/// let (noon, started) = (Timestamp(1_794_700_000_000_000), Steady(0));
/// let mut watch = ClockWatch::fresh(CLOCK_SETTLE, noon, started);
/// let hour = Duration::from_secs(3_600);
/// // An hour later somebody sets the clock a day ahead: dates of tomorrow stay where they are.
/// watch.observe(noon.after(hour), started.after(hour));
/// assert!(watch.observe(noon.after(25 * hour), started.after(hour)).jump.is_some());
/// let times = watch.times();
/// assert_eq!((times.dates, times.settled), (noon.after(hour), false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockWatch {
    settle: u64,
    /// The last reading.
    read: Line,
    /// What is believed. The same as the reading, unless a jump is in doubt.
    line: Line,
    since: u64,
    floor: Line,
    expired: u64,
    jumps: u64,
    firm: bool,
    settled: bool,
    gap: bool,
}

impl ClockWatch {
    /// Begins with a store that holds nothing yet: there is nothing that a wrong clock could take for old.
    pub fn fresh(settle: Duration, wall: Timestamp, steady: Steady) -> Self {
        let read = Line { wall: wall.0, steady: steady.0 };
        Self {
            settle: micros(settle),
            read,
            line: read,
            since: steady.0,
            floor: Line::default(),
            expired: 0,
            jumps: 0,
            firm: false,
            settled: true,
            gap: false,
        }
    }

    /// Starts a watch for a store that holds data but no mark. The clock has to settle first; everything that expires
    /// before `expired` has expired.
    pub fn unmarked(settle: Duration, expired: Timestamp, wall: Timestamp, steady: Steady) -> Self {
        Self { settled: false, expired: expired.0, ..Self::fresh(settle, wall, steady) }
    }

    /// Goes on where steady time was never interrupted, as on the same boot. Readings from now on show whether the
    /// wall clock was set in between. `last` is when something was last written down.
    pub fn resume(settle: Duration, mark: WatchMark, last: Steady) -> Self {
        let at = |wall: Timestamp| Line { wall: wall.0, steady: mark.steady.0 };
        Self {
            settle: micros(settle),
            read: at(mark.read),
            line: at(mark.believed),
            since: mark.since.0,
            floor: if mark.floor.0 == 0 { Line::default() } else { at(mark.floor) },
            expired: mark.expired_at(last),
            jumps: mark.jumps,
            firm: mark.firm,
            settled: mark.settled,
            gap: mark.gap,
        }
    }

    /// Goes on after a reboot: nothing tells how long it took but the wall clock itself. `steady` is where steady
    /// time goes on, `last` is when something was last written down.
    pub fn rebooted(
        settle: Duration,
        mark: WatchMark,
        last: Steady,
        wall: Timestamp,
        steady: Steady,
    ) -> (Self, Observed) {
        let expired = Timestamp(mark.expired_at(last));
        let mut watch = Self { jumps: mark.jumps, ..Self::unmarked(settle, expired, wall, steady) };
        // A time that nothing has confirmed says nothing about the next one.
        let believed = if mark.firm || mark.settled { mark.believed } else { mark.floor };
        if believed.0 == 0 {
            return (watch, Observed::default());
        }
        let floor = believed.0.saturating_add(last.0.saturating_sub(mark.steady.0));
        watch.floor = Line { wall: floor, steady: steady.0 };
        if watch.is_plausible() {
            return (watch, Observed::default());
        }
        watch.line = watch.floor;
        watch.gap = wall.0 > floor;
        watch.jumps += 1;
        (watch, Observed { jump: Some(difference(wall.0, floor)) })
    }

    /// Whether the wall clock reads a time that a reboot can explain.
    fn is_plausible(&self) -> bool {
        let floor = self.floor.at(self.read.steady);
        self.read.wall.saturating_add(JUMP_MICROS) >= floor
            && self.read.wall <= floor.saturating_add(CLOSED_MICROS)
    }

    /// Takes a reading of both clocks in.
    pub fn observe(&mut self, wall: Timestamp, steady: Steady) -> Observed {
        let steady = steady.0.max(self.read.steady);
        let passed = steady - self.read.steady;
        let tolerance = JUMP_MICROS + passed / SLEW_DIVISOR;
        let expected = self.read.at(steady);
        let jumped = wall.0.abs_diff(expected) > tolerance;
        self.read = Line { wall: wall.0, steady };
        if jumped {
            if self.settled {
                self.expired = self.line.at(steady);
            }
            // While no time is confirmed, a later one is as likely to be right.
            self.gap |= !self.firm && wall.0 > expected;
            self.jumps += 1;
            self.since = steady;
            self.settled = false;
        } else if steady.saturating_sub(self.since) >= self.settle {
            (self.firm, self.settled) = (true, true);
        }
        // Without a settling time every reading is believed.
        self.settled |= self.settle == 0;
        self.believe(tolerance);
        Observed { jump: jumped.then(|| difference(wall.0, expected)) }
    }

    /// Moves what is believed on to the last reading, or leaves it to steady time.
    fn believe(&mut self, tolerance: u64) {
        let Line { wall, steady } = self.read;
        let line = self.line.at(steady);
        let confirmed = self.settled && (self.firm || self.settle == 0);
        let agrees = wall.abs_diff(line) <= tolerance;
        let explained = self.gap && self.is_plausible();
        if confirmed || agrees || explained {
            self.gap = false;
            self.line = self.read;
        } else if !self.firm && wall < line {
            // Nothing has confirmed the time before the jump either, and the earlier one harms least.
            self.line = Line { wall: wall.max(self.floor.at(steady)), steady };
        }
    }

    /// The times at the last reading.
    pub fn times(&self) -> Times {
        let line = self.line.at(self.read.steady);
        let wall = if self.gap { self.read.wall.max(line) } else { line };
        let expiry = if self.settled { wall } else { self.expired.min(line) };
        Times {
            wall: Timestamp(wall),
            dates: Timestamp(line),
            expiry: Timestamp(expiry),
            settled: self.settled,
        }
    }

    /// How often the wall clock was found to have jumped.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// How long the wall clock must still agree with steady time; zero when it is settled.
    pub fn settles_in(&self) -> Duration {
        if self.settled {
            return Duration::ZERO;
        }
        let agreed = self.read.steady.saturating_sub(self.since);
        Duration::from_micros(self.settle.saturating_sub(agreed).max(1))
    }

    /// Microseconds by which the wall clock reads more than is believed; negative: less.
    pub fn offset(&self) -> i64 {
        difference(self.read.wall, self.line.at(self.read.steady))
    }

    /// Steady time counts from another moment: everything remembered moves with it.
    pub fn shift_steady(&mut self, by: u64) {
        for line in [&mut self.read, &mut self.line, &mut self.floor] {
            line.steady = line.steady.saturating_add(by);
        }
        self.since = self.since.saturating_add(by);
    }

    /// Data comes that may be older than the store, as with a copy: from the last reading on the clock must settle before
    /// any of it is deleted by its age.
    pub fn unsettle(&mut self) {
        (self.settled, self.expired, self.since) = (self.settle == 0, 0, self.read.steady);
    }

    /// What to write down.
    pub fn mark(&self) -> WatchMark {
        let steady = self.read.steady;
        WatchMark {
            steady: Steady(steady),
            believed: Timestamp(self.line.at(steady)),
            read: Timestamp(self.read.wall),
            since: Steady(self.since),
            floor: Timestamp(if self.floor.wall == 0 { 0 } else { self.floor.at(steady) }),
            expired: self.times().expiry,
            jumps: self.jumps,
            firm: self.firm,
            settled: self.settled,
            gap: self.gap,
        }
    }
}

impl WatchMark {
    /// Returns the expiry time at the last write.
    fn expired_at(&self, last: Steady) -> u64 {
        if self.settled {
            self.believed.0.saturating_add(last.0.saturating_sub(self.steady.0))
        } else {
            self.expired.0
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn difference(found: u64, expected: u64) -> i64 {
    i64::try_from(i128::from(found) - i128::from(expected)).unwrap_or(if found > expected {
        i64::MAX
    } else {
        i64::MIN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_794_700_000_000_000;
    const MINUTE: u64 = 60_000_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;

    /// A watch and both clocks that it reads.
    struct World {
        watch: ClockWatch,
        wall: u64,
        steady: u64,
    }

    impl World {
        /// A store that has been open for an hour with a right clock.
        fn settled() -> Self {
            let mut world = Self::fresh();
            world.pass(HOUR);
            assert!(world.watch.times().settled && world.watch.mark().firm);
            world
        }

        fn fresh() -> Self {
            let watch = ClockWatch::fresh(CLOCK_SETTLE, Timestamp(NOON), Steady(7));
            Self { watch, wall: NOON, steady: 7 }
        }

        fn read(&mut self) -> Observed {
            self.watch.observe(Timestamp(self.wall), Steady(self.steady))
        }

        fn pass(&mut self, by: u64) -> Observed {
            self.wall += by;
            self.steady += by;
            self.read()
        }

        fn jump(&mut self, by: i64) -> Observed {
            self.wall = self.wall.saturating_add_signed(by);
            self.read()
        }

        /// Wall and dates as differences from a moment, and whether data may be deleted by age.
        fn since(&self, moment: u64) -> (i64, i64, bool) {
            let times = self.watch.times();
            (difference(times.wall.0, moment), difference(times.dates.0, moment), times.settled)
        }

        /// Another process opens the store on the same boot after so long.
        fn reopen(&mut self, closed: u64, wall_by: i64) -> Observed {
            self.watch = ClockWatch::resume(CLOCK_SETTLE, self.watch.mark(), Steady(self.steady));
            self.wall = (self.wall + closed).saturating_add_signed(wall_by);
            self.steady += closed;
            self.read()
        }

        /// The machine boots, and its wall clock shows another time than when the store was closed.
        fn reboot(&mut self, wall_by: i64) -> Observed {
            self.wall = self.wall.saturating_add_signed(wall_by);
            let (mark, last) = (self.watch.mark(), Steady(self.steady));
            let observed;
            (self.watch, observed) =
                ClockWatch::rebooted(CLOCK_SETTLE, mark, last, Timestamp(self.wall), Steady(self.steady));
            observed
        }
    }

    #[test]
    fn jumps_move_no_date_until_the_clock_has_settled() {
        for by in [YEAR as i64, -(YEAR as i64), HOUR as i64, -(HOUR as i64), 61_000_000, -61_000_000] {
            let mut world = World::settled();
            let before = world.wall;
            assert_eq!(world.jump(by).jump, Some(by));
            assert_eq!(world.since(before), (0, 0, false), "jump by {by}");
            world.pass(9 * MINUTE);
            assert_eq!(world.since(before), (9 * MINUTE as i64, 9 * MINUTE as i64, false), "jump by {by}");
            assert_eq!(world.watch.offset(), by);
            world.pass(MINUTE);
            let later = 10 * MINUTE as i64 + by;
            assert_eq!(world.since(before), (later, later, true), "jump by {by}");
            assert_eq!((world.watch.jumps(), world.watch.offset()), (1, 0));
        }
    }

    #[test]
    fn corrected_clock_is_believed_at_once_and_deletes_after_it_settled() {
        for by in [YEAR as i64, -(YEAR as i64), HOUR as i64] {
            let mut world = World::settled();
            let before = world.wall;
            world.jump(by);
            world.pass(2_000_000);
            assert_eq!(world.jump(-by).jump, Some(-by));
            assert_eq!(world.since(before), (2_000_000, 2_000_000, false));
            world.pass(CLOCK_SETTLE.as_micros() as u64 - 1);
            assert!(!world.watch.times().settled, "a moment too early");
            world.pass(1);
            assert_eq!((world.watch.times().settled, world.watch.jumps()), (true, 2));
        }
    }

    #[test]
    fn slew_is_followed_and_is_not_a_jump() {
        let mut world = World::settled();
        for _ in 0..1_000 {
            world.steady += MINUTE;
            world.wall += MINUTE + 30_000;
            assert_eq!(world.read().jump, None);
            assert_eq!(world.since(world.wall), (0, 0, true));
        }
        // Nobody looked for a month.
        world.steady += 30 * DAY;
        world.wall += 30 * DAY + 20 * MINUTE;
        assert_eq!(world.read().jump, None);
    }

    #[test]
    fn wrong_clock_at_the_first_start_is_corrected_at_once_if_it_was_ahead() {
        let mut world = World::fresh();
        assert_eq!(world.since(NOON), (0, 0, true), "nothing is old in a new store");
        world.pass(2_000_000);
        world.jump(-(YEAR as i64));
        assert_eq!(world.since(world.wall), (0, 0, false));
        let mut world = World::fresh();
        world.jump(YEAR as i64);
        let times = (YEAR as i64, 0, false);
        assert_eq!(
            world.since(NOON),
            times,
            "dates wait until the later time has settled, lives count from it"
        );
    }

    #[test]
    fn restart_on_the_same_boot_stays_settled_if_the_clocks_agree() {
        let mut world = World::settled();
        assert_eq!(world.reopen(3 * DAY, 0), Observed::default());
        assert_eq!(world.since(world.wall), (0, 0, true));
        let right = world.wall + HOUR;
        assert_eq!(world.reopen(HOUR, YEAR as i64).jump, Some(YEAR as i64));
        assert_eq!(world.since(right), (0, 0, false));
        // A restart in the middle changes nothing.
        assert_eq!(world.reopen(MINUTE, 0), Observed::default());
        assert_eq!(world.since(right), (MINUTE as i64, MINUTE as i64, false));
        world.reopen(0, -(YEAR as i64));
        assert_eq!(world.since(right), (MINUTE as i64, MINUTE as i64, false));
        world.pass(10 * MINUTE);
        assert_eq!(world.since(world.wall), (0, 0, true));
    }

    #[test]
    fn reboot_that_the_wall_clock_explains_delays_no_date() {
        for closed in [0, HOUR, DAY] {
            let mut world = World::settled();
            assert_eq!(world.reboot(closed as i64), Observed::default());
            assert_eq!(world.since(world.wall), (0, 0, false), "closed for {closed}");
            world.pass(10 * MINUTE);
            assert!(world.watch.times().settled);
        }
    }

    #[test]
    fn reboot_with_a_clock_far_ahead_holds_dates_until_it_settles() {
        let mut world = World::settled();
        let closed = world.wall;
        assert_eq!(world.reboot(YEAR as i64).jump, Some(YEAR as i64));
        assert_eq!(world.since(closed), (YEAR as i64, 0, false));
        // It was right: the machine was off for a year.
        world.pass(9 * MINUTE);
        assert_eq!(world.since(closed).1, 9 * MINUTE as i64);
        world.pass(MINUTE);
        assert_eq!(world.since(world.wall), (0, 0, true));
        // It was wrong: an hour has passed in truth.
        let mut world = World::settled();
        world.reboot(YEAR as i64);
        world.pass(2_000_000);
        let observed = world.jump(-((YEAR - HOUR) as i64));
        assert!(observed.jump.is_some());
        assert_eq!(world.since(world.wall), (0, 0, false));
    }

    #[test]
    fn reboot_with_a_clock_far_back_goes_on_from_the_last_known_time() {
        let mut world = World::settled();
        let closed = world.wall;
        world.reboot(-(YEAR as i64));
        assert_eq!(world.since(closed), (0, 0, false));
        world.pass(MINUTE);
        assert_eq!(world.since(closed), (MINUTE as i64, MINUTE as i64, false));
        let mut late = World { ..world };
        world.jump((YEAR + HOUR) as i64);
        assert_eq!(world.since(world.wall), (0, 0, false), "a boot within a day explains it");
        world.pass(10 * MINUTE);
        assert_eq!(world.since(world.wall), (0, 0, true));
        late.jump((YEAR + 2 * DAY) as i64);
        assert_eq!(late.since(closed).1, MINUTE as i64, "a later time has to settle first");
        late.pass(10 * MINUTE);
        assert_eq!(late.since(late.wall), (0, 0, true));
    }

    #[test]
    fn unmarked_store_deletes_nothing_until_the_clock_has_settled() {
        let mut watch = ClockWatch::unmarked(CLOCK_SETTLE, Timestamp(NOON - 7), Timestamp(NOON), Steady(0));
        assert_eq!((watch.times().settled, watch.times().expiry), (false, Timestamp(NOON - 7)));
        watch.observe(Timestamp(NOON + 10 * MINUTE), Steady(10 * MINUTE));
        assert!(watch.times().settled);
    }

    #[test]
    fn without_a_settling_time_every_reading_is_believed() {
        let mut watch = ClockWatch::fresh(Duration::ZERO, Timestamp(NOON), Steady(0));
        assert!(watch.observe(Timestamp(NOON + YEAR), Steady(1)).jump.is_some());
        let wall = Timestamp(NOON + YEAR);
        assert_eq!(watch.times(), Times { wall, dates: wall, expiry: wall, settled: true });
    }

    #[test]
    fn what_was_over_stays_over_and_nothing_else_is() {
        for by in [YEAR as i64, HOUR as i64] {
            let mut world = World::settled();
            let before = world.wall;
            world.jump(by);
            world.pass(MINUTE);
            assert_eq!(world.watch.times().expiry, Timestamp(before), "jump by {by}");
            // Also after a restart, and after a boot.
            world.reopen(MINUTE, 0);
            assert_eq!(world.watch.times().expiry, Timestamp(before));
            world.reboot(HOUR as i64);
            assert_eq!(world.watch.times().expiry, Timestamp(before));
        }
        // What went since the last mark is over as well.
        let mut world = World::settled();
        let mark = world.watch.mark();
        world.pass(MINUTE);
        let (wall, last) = (Timestamp(world.wall + HOUR), Steady(world.steady));
        let (watch, _) = ClockWatch::rebooted(CLOCK_SETTLE, mark, last, wall, last);
        assert_eq!(watch.times().expiry, Timestamp(world.wall));
        // A clock that went back ends nothing of the time to come.
        let mut world = World::settled();
        world.jump(-(YEAR as i64));
        world.pass(10 * MINUTE);
        world.jump(HOUR as i64);
        assert!(world.watch.times().expiry <= world.watch.times().dates);
    }

    #[test]
    fn lives_given_while_a_late_clock_is_corrected_are_not_too_short() {
        // A machine without a battery boots with the time of its end; three days were lost.
        let mut world = World::settled();
        world.reboot(0);
        world.pass(20_000_000);
        let three_days = 3 * DAY as i64;
        let before = world.wall;
        world.jump(three_days);
        assert_eq!(world.since(before), (three_days, 0, false));
        world.pass(10 * MINUTE);
        assert_eq!(world.since(world.wall), (0, 0, true));
    }

    #[test]
    fn mark_carries_a_doubt_over_a_restart() {
        let mut world = World::settled();
        world.jump(YEAR as i64);
        world.pass(MINUTE);
        let mark = world.watch.mark();
        assert_eq!(ClockWatch::resume(CLOCK_SETTLE, mark, mark.steady).mark(), mark);
        world.watch.shift_steady(HOUR);
        assert_eq!(world.watch.mark().steady.0, mark.steady.0 + HOUR);
        assert_eq!(world.watch.mark().believed, mark.believed);
    }
}
