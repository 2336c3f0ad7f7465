//! The one place where real time is read.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use super::{Clock, Steady, Timestamp};

/// The clocks of the machine: wall time, and the boot clock, which also counts suspend.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the seam through which everyone else reads time")]
    fn calendar(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }

    fn steady(&self) -> Steady {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
        Steady(seconds * 1_000_000 + nanos / 1_000)
    }

    /// The kernel's boot id; where there is none, zero, which makes every start look like the same boot and
    /// is corrected by the wall clock when steady time went back.
    fn epoch(&self) -> u128 {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        u128::from_str_radix(&digits, 16).unwrap_or(0)
    }
}
