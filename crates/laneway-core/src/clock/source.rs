//! The one trait through which everything else learns what time it is.

use super::{Steady, Timestamp};

/// Where a part of the system learns what time it is.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The wall clock. It may jump in both directions.
    fn calendar(&self) -> Timestamp;

    /// Microseconds since an arbitrary start. Never goes back and goes on while the machine sleeps.
    fn steady(&self) -> Steady;

    /// Names the start that [`Clock::steady`] counts from: two readings may be compared only when this is
    /// equal. On a real machine it is the boot.
    fn epoch(&self) -> u128;
}
