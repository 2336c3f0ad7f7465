//! A clock that follows tokio's: with paused time, tests and the simulator move it.

use std::time::Duration;

use laneway_core::{Clock, Steady, Timestamp};
use parking_lot::Mutex;

/// Time since the runtime's clock was first asked, from a date in November 2026 on. The wall clock may be moved apart
/// from it.
#[derive(Debug)]
pub struct TokioClock {
    start: tokio::time::Instant,
    calendar_start: Mutex<u64>,
}

const CALENDAR_START: u64 = 1_794_700_000_000_000;
/// Steady time does not begin at zero, so that nothing works only because it does.
const STEADY_START: u64 = 1_000_000;

impl TokioClock {
    /// A clock that starts now. Must be called inside a tokio runtime.
    #[expect(clippy::disallowed_methods, reason = "this clock is the seam to tokio's time")]
    pub fn start() -> Self {
        Self { start: tokio::time::Instant::now(), calendar_start: Mutex::new(CALENDAR_START) }
    }

    #[expect(clippy::disallowed_methods, reason = "this clock is the seam to tokio's time")]
    fn elapsed(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Sets the wall clock forward or, with a negative sign, back; steady time does not move.
    pub fn jump(&self, forward: bool, by: Duration) {
        let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        let mut start = self.calendar_start.lock();
        *start = if forward { start.saturating_add(by) } else { start.saturating_sub(by) };
    }
}

impl Clock for TokioClock {
    fn calendar(&self) -> Timestamp {
        Timestamp(*self.calendar_start.lock() + self.elapsed())
    }

    fn steady(&self) -> Steady {
        Steady(STEADY_START + self.elapsed())
    }

    fn epoch(&self) -> u128 {
        1
    }
}
