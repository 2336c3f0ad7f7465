//! Time as the rest of the system sees it: two clocks, one trait, and a clock that tests move by hand.
//!
//! *Calendar* time follows the wall clock and may jump; `run_at`, retention and time stamps use it. *Steady*
//! time only grows, counts suspend, and keeps the length of delays and leases when the wall clock jumps.

mod manual;
mod source;
mod system;
mod time;

pub use manual::ManualClock;
pub use source::Clock;
pub use system::SystemClock;
pub use time::{Steady, Timestamp};
