//! Time as the rest of the system sees it: two clocks, one trait, and a clock that tests move by hand.
//!
//! *Calendar* time follows the wall clock and may jump; `run_at`, retention and time stamps use it. *Steady*
//! time only grows, counts suspend, and keeps the length of delays and leases when the wall clock jumps. A
//! [`ClockWatch`] compares the two and says how far the wall clock can be trusted.

mod manual;
mod source;
mod system;
mod time;
mod watch;

pub use manual::ManualClock;
pub use source::Clock;
pub use system::SystemClock;
pub use time::{Steady, Timestamp};
pub use watch::{
    CLOCK_CLOSED_MAX, CLOCK_JUMP, CLOCK_SETTLE, ClockReport, ClockWatch, Observed, Times, WatchMark,
};
