//! The two kinds of time as types, so that they cannot be mixed up.

use std::time::Duration;

/// Calendar time: microseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// Steady time: microseconds since an arbitrary start; never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Steady(pub u64);

/// Microseconds of a duration, saturating: a far future stays a far future.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Timestamp {
    /// This time plus a duration, at most the end of time.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// This time minus a duration, at least the epoch.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// Whole milliseconds since the epoch, as a UUIDv7 wants them.
    pub fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
}

impl Steady {
    /// This time plus a duration, at most the end of time.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// How long ago `earlier` was; zero if it was not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}
