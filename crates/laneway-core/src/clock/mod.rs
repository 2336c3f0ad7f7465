//! Time as the rest of the system sees it: two clocks, one trait, and a clock that tests move by hand.
//!
//! *Calendar* time follows the wall clock and may jump; `run_at`, retention and time stamps use it. *Steady*
//! time only grows, counts suspend, and keeps the length of delays and leases when the wall clock jumps.

mod manual;
mod system;
mod time;

pub use manual::ManualClock;
pub use system::SystemClock;
pub use time::{Steady, Timestamp};

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
