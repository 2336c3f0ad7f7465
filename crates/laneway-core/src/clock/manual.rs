//! A clock that stands still until a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Clock, Steady, Timestamp};

/// A clock for tests: cheap to clone, all clones share one time.
///
/// ```
/// use laneway_core::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::default();
/// let before = clock.calendar();
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(clock.calendar(), before.after(Duration::from_secs(3)));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    calendar: Arc<AtomicU64>,
    steady: Arc<AtomicU64>,
    boots: Arc<AtomicU64>,
}

impl Default for ManualClock {
    /// Starts in November 2026, so that time stamps in test output look like time stamps.
    fn default() -> Self {
        Self {
            calendar: Arc::new(AtomicU64::new(1_794_700_000_000_000)),
            steady: Arc::new(AtomicU64::new(1_000_000)),
            boots: Arc::new(AtomicU64::new(1)),
        }
    }
}

impl ManualClock {
    /// Lets time pass: both clocks move.
    pub fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.calendar.fetch_add(micros, Ordering::SeqCst);
        self.steady.fetch_add(micros, Ordering::SeqCst);
    }

    /// Sets the wall clock, as an operator or a time server would; steady time does not move.
    pub fn jump_to(&self, calendar: Timestamp) {
        self.calendar.store(calendar.0, Ordering::SeqCst);
    }

    /// Boots the machine: steady time counts from another start. The wall clock does not move.
    pub fn reboot(&self) {
        self.steady.store(1_000_000, Ordering::SeqCst);
        self.boots.fetch_add(1, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn calendar(&self) -> Timestamp {
        Timestamp(self.calendar.load(Ordering::SeqCst))
    }

    fn steady(&self) -> Steady {
        Steady(self.steady.load(Ordering::SeqCst))
    }

    fn epoch(&self) -> u128 {
        u128::from(self.boots.load(Ordering::SeqCst))
    }
}
