//! CPU time of this process: all its threads, in user and in kernel mode.

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds used since the process began. Work that the kernel does on its own threads, such as writing a
/// synced page to the disk, is not in it.
pub(crate) fn seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// CPU seconds per million events.
pub(crate) fn per_million(cpu_seconds: f64, events: u64) -> f64 {
    cpu_seconds * 1e6 / events.max(1) as f64
}
