//! The server's clock, watched: Redis has no steady clock, so the process that asks compares the server's with its own.
//!
//! Every call says what time the server should have. A script that finds another time, by more than a minute, does nothing
//! and answers its own; the clocks are compared then, and the call is made again. So no script ever works with a time that
//! was not judged. What was found lies in one record on the server, for the other processes and the next start; see
//! `docs/design/redis-format.md`.
//!
//! Steady time is the server's time less all jumps. All processes take the sum of the jumps from the record, so they agree.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use laneway_core::clock::CLOCK_JUMP;
use laneway_core::{Clock, ClockReport, ClockWatch, Result, Steady, SystemClock, Timestamp, WatchMark};
use parking_lot::Mutex;

use crate::failure::Failure;
use crate::pack::{ABSENT, Arg, named};
use crate::reply::corrupt;
use crate::store::{RedisStore, last};

/// How often the clocks are compared and the record is written.
const COMPARE_MICROS: u64 = 10_000_000;
const JUMP_MICROS: u64 = CLOCK_JUMP.as_micros() as u64;
const RECORD_VERSION: u8 = 1;
const RECORD_BYTES: usize = 1 + 16 + 10 * 8 + 1;

/// The times of one call, as scripts take them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimes {
    pub(crate) calendar: u64,
    pub(crate) steady: u64,
    pub(crate) wall: u64,
    pub(crate) dates: u64,
    /// Everything that expires before this time has expired. Does not advance while the clock is unsettled.
    pub(crate) expiry: u64,
    pub(crate) settled: bool,
    /// For leases: jumps of the wall clock do not move it.
    pub(crate) lease: u64,
    /// What the server's clock should read; `None` where a test gives the time.
    pub(crate) expected: Option<u64>,
}

impl CallTimes {
    /// For the script that reads the clock.
    pub(crate) const UNKNOWN: Self = Self {
        calendar: 0,
        steady: 0,
        wall: 0,
        dates: 0,
        expiry: 0,
        settled: false,
        lease: 0,
        expected: None,
    };
}

/// The server's clock as this process knows it.
#[derive(Debug)]
pub(crate) struct ServerClock {
    own: Arc<dyn Clock>,
    /// A test gives the time of day, too.
    given: bool,
    settle: Duration,
    state: Mutex<Option<State>>,
    /// Held while the clocks are compared.
    comparing: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The server's clock, and the own steady clock at that moment.
    read: u64,
    machine: u64,
    /// Less all jumps, wrapping.
    shift: u64,
    /// Steady time counts from here, wrapping; zero but in tests.
    base: u64,
    watch: ClockWatch,
    /// Of the record that was last seen or written.
    version: u64,
    calendar: u64,
    compare_at: u64,
}

/// What lies on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    shift: u64,
    base: u64,
    machine: u64,
    epoch: u128,
    mark: WatchMark,
}

impl ServerClock {
    pub(crate) fn new(given: Option<Arc<dyn Clock>>, settle: Duration) -> Self {
        let is_given = given.is_some();
        let own = given.unwrap_or_else(|| Arc::new(SystemClock));
        let (state, comparing) = (Mutex::new(None), tokio::sync::Mutex::new(()));
        Self { own, given: is_given, settle, state, comparing }
    }

    /// The times for a call that is made now. `None` before the clocks were compared for the first time.
    pub(crate) fn times(&self) -> Option<CallTimes> {
        let mut state = self.state.lock();
        let state = state.as_mut()?;
        self.go_on(state);
        let times = state.watch.times();
        state.calendar = state.calendar.max(times.wall.0);
        Some(CallTimes {
            calendar: state.calendar,
            steady: state.steady(),
            wall: times.wall.0,
            dates: times.dates.0,
            expiry: times.expiry.0,
            settled: times.settled,
            lease: state.read.wrapping_add(state.shift),
            expected: (!self.given).then_some(state.read),
        })
    }

    /// How the clock stands, for people.
    pub(crate) fn report(&self) -> Option<ClockReport> {
        let times = self.times()?;
        let state = (*self.state.lock())?;
        Some(ClockReport {
            wall: Timestamp(times.wall),
            steady: Steady(times.steady),
            dates: Timestamp(times.dates),
            settles_in: state.watch.settles_in(),
            jumps: state.watch.jumps(),
            offset: state.watch.offset(),
            log_ahead: Duration::from_micros(times.calendar - times.wall),
        })
    }

    /// Moves the state on to now. The server's clock goes on as the own one does, until it is read again.
    fn go_on(&self, state: &mut State) {
        let machine = self.own.steady().0.max(state.machine);
        let read = if self.given { self.own.calendar().0 } else { state.expected(machine) };
        self.take(state, read, machine);
    }

    fn take(&self, state: &mut State, read: u64, machine: u64) {
        let expected = state.expected(machine);
        // All processes must agree on steady time, so it follows the server's clock where that did not jump.
        if self.given || read.abs_diff(expected) > JUMP_MICROS {
            state.shift = state.shift.wrapping_sub(read.wrapping_sub(expected));
        }
        (state.read, state.machine) = (read, machine);
        let steady = Steady(state.steady());
        let observed = state.watch.observe(Timestamp(read), steady);
        observed.jump.into_iter().for_each(|jump| warn_of(jump, self.settle));
    }

    fn is_due(&self) -> bool {
        let state = self.state.lock();
        state.is_none_or(|state| self.own.steady().0 >= state.compare_at)
    }

    /// What to write down.
    fn record(&self, state: &State) -> Record {
        let (machine, epoch, mark) = (state.machine, self.own.epoch(), state.watch.mark());
        Record { shift: state.shift, base: state.base, machine, epoch, mark }
    }

    /// Begins with what the server has: its time, the record, and whether a store is there.
    fn begin(&self, read: u64, record: Option<(u64, Record)>, in_use: bool) -> State {
        let machine = self.own.steady().0;
        let read = if self.given { self.own.calendar().0 } else { read };
        let Some((version, record)) = record else {
            let base = if self.given { machine.wrapping_sub(read) } else { 0 };
            let (wall, steady) = (Timestamp(read), Steady(read.wrapping_add(base)));
            let watch = if in_use {
                ClockWatch::unmarked(self.settle, Timestamp(0), wall, steady)
            } else {
                ClockWatch::fresh(self.settle, wall, steady)
            };
            return State { read, machine, shift: 0, base, watch, version: 0, calendar: 0, compare_at: 0 };
        };
        let Record { shift, base, mark, .. } = record;
        let watch = ClockWatch::resume(self.settle, mark, mark.steady);
        let mut state = State {
            read: mark.read.0,
            machine: record.machine,
            shift,
            base,
            watch,
            version,
            calendar: 0,
            compare_at: 0,
        };
        if record.epoch == self.own.epoch() && machine >= record.machine {
            self.take(&mut state, read, machine);
            return state;
        }
        // Somebody looked less than a minute ago, so there was no jump in between.
        if read.abs_diff(state.read) <= JUMP_MICROS {
            (state.read, state.machine) = (read, machine);
            state.watch.observe(Timestamp(read), Steady(state.steady()));
            return state;
        }
        let before = state.read;
        (state.read, state.machine) = (read, machine);
        let reboot = |steady| ClockWatch::rebooted(self.settle, mark, mark.steady, Timestamp(read), steady);
        let (watch, observed) = reboot(Steady(state.steady()));
        state.watch = watch;
        if let Some(jump) = observed.jump {
            // The time passed is unknown, so steady time excludes it: delays may end late but never early.
            state.shift = shift.wrapping_sub(read.wrapping_sub(before));
            state.watch = reboot(Steady(state.steady())).0;
            warn_of(jump, self.settle);
        }
        state
    }
}

impl State {
    fn expected(&self, machine: u64) -> u64 {
        self.read.saturating_add(machine.saturating_sub(self.machine))
    }

    fn steady(&self) -> u64 {
        self.read.wrapping_add(self.shift).wrapping_add(self.base)
    }

    /// Takes over what another process found.
    fn adopt(&mut self, settle: Duration, version: u64, record: &Record) {
        self.version = version;
        if record.shift == self.shift && record.mark.jumps == self.watch.jumps() {
            return;
        }
        self.shift = record.shift;
        self.watch = ClockWatch::resume(settle, record.mark, record.mark.steady);
    }
}

impl Record {
    fn encode(&self) -> Bytes {
        let mark = &self.mark;
        let mut out = Vec::with_capacity(RECORD_BYTES);
        out.put_u8(RECORD_VERSION);
        out.put_u128(self.epoch);
        for value in [
            self.shift,
            self.base,
            self.machine,
            mark.steady.0,
            mark.believed.0,
            mark.read.0,
            mark.since.0,
            mark.floor.0,
            mark.expired.0,
            mark.jumps,
        ] {
            out.put_u64(value);
        }
        out.put_u8(u8::from(mark.firm) | u8::from(mark.settled) << 1 | u8::from(mark.gap) << 2);
        out.into()
    }

    fn decode(mut from: Bytes) -> Result<Self> {
        if from.len() != RECORD_BYTES || from.get_u8() != RECORD_VERSION {
            return Err(corrupt("the record of the clock is of another release or damaged"));
        }
        let epoch = from.get_u128();
        let [shift, base, machine, steady, believed, read, since, floor, expired, jumps] =
            std::array::from_fn(|_| from.get_u64());
        let flags = from.get_u8();
        let mark = WatchMark {
            steady: Steady(steady),
            believed: Timestamp(believed),
            read: Timestamp(read),
            since: Steady(since),
            floor: Timestamp(floor),
            expired: Timestamp(expired),
            jumps,
            firm: flags & 1 != 0,
            settled: flags & 2 != 0,
            gap: flags & 4 != 0,
        };
        Ok(Self { shift, base, machine, epoch, mark })
    }
}

fn warn_of(jump: i64, settle: Duration) {
    tracing::warn!(
        jump_s = jump / 1_000_000,
        settle_s = settle.as_secs(),
        "the clock of the Redis server jumped: nothing is deleted by its age, and dates go on by the steady clock of this machine, until both have agreed for the settling time"
    );
}

impl RedisStore {
    /// Compares the clocks if that is due.
    pub(crate) async fn keep_time(&self) -> Result<(), Failure> {
        if !self.clock().is_due() {
            return Ok(());
        }
        // Somebody else compares them already; only the very first comparison must be waited for.
        match self.clock().comparing.try_lock() {
            Ok(_held) => self.compare().await,
            Err(_) if self.clock().state.lock().is_some() => Ok(()),
            Err(_) => self.compare_clocks().await,
        }
    }

    /// Compares the clocks now, one call at a time.
    pub(crate) async fn compare_clocks(&self) -> Result<(), Failure> {
        let _held = self.clock().comparing.lock().await;
        self.compare().await
    }

    /// Data of another store comes: the clock must settle before any of it is deleted by its age. The next start learns it
    /// from the record.
    pub(crate) async fn unsettle_clock(&self) -> Result<()> {
        self.compare_clocks().await.map_err(last)?;
        self.clock().state.lock().iter_mut().for_each(|state| state.watch.unsettle());
        self.compare_clocks().await.map_err(last)
    }

    async fn compare(&self) -> Result<(), Failure> {
        let clock = self.clock();
        let (expected, version, record) = {
            let mut state = clock.state.lock();
            state.as_mut().map_or((ABSENT, 0, ABSENT), |state| {
                clock.go_on(state);
                state.compare_at = state.machine.saturating_add(COMPARE_MICROS);
                let expected = if clock.given { ABSENT } else { Arg::Number(state.read) };
                (expected, state.version, Arg::Bytes(clock.record(state).encode()))
            })
        };
        let call = named! { record: record, expected: expected, version: version };
        let mut reply = self.ask_clock(&call).await?;
        let (read, stored, found) = (reply.number()?, reply.number()?, reply.optional()?);
        let (in_use, written) = (reply.flag()?, reply.flag()?);
        let found = found.map(Record::decode).transpose()?;
        let mut state = clock.state.lock();
        let Some(state) = state.as_mut() else {
            *state = Some(clock.begin(read, found.map(|record| (stored, record)), in_use));
            return Ok(());
        };
        if written {
            state.version = stored;
        }
        let machine = clock.own.steady().0.max(state.machine);
        let jumped = !clock.given && read.abs_diff(state.expected(machine)) > JUMP_MICROS;
        match found.filter(|_| !written) {
            // It is this process that lost time, or another one has found the jump already.
            Some(record)
                if jumped && record.mark.read.0.abs_diff(read) <= JUMP_MICROS && stored != state.version =>
            {
                (state.read, state.machine) = (read, machine);
                state.adopt(clock.settle, stored, &record);
            }
            found => {
                if !clock.given {
                    clock.take(state, read, machine);
                }
                match found {
                    Some(_) if jumped => state.version = stored,
                    Some(record) => state.adopt(clock.settle, stored, &record),
                    // The record was deleted; write it again at the next comparison.
                    None if !written => state.version = 0,
                    None => {}
                }
                if jumped {
                    // The others learn it at once.
                    state.compare_at = 0;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_comes_back_as_it_was_written() {
        let mark = WatchMark {
            steady: Steady(1),
            believed: Timestamp(2),
            read: Timestamp(3),
            since: Steady(4),
            floor: Timestamp(5),
            expired: Timestamp(11),
            jumps: 6,
            firm: true,
            settled: false,
            gap: true,
        };
        let record = Record { shift: 7_u64.wrapping_neg(), base: 8, machine: 9, epoch: 10 << 70, mark };
        assert_eq!(Record::decode(record.encode()).unwrap(), record);
        assert!(Record::decode(record.encode().slice(1..)).is_err());
    }
}
