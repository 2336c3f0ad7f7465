//! CPU time of a process: all its threads, in user and in kernel mode.

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

/// CPU seconds used since the process began. Work that the kernel does on its own threads, such as writing a
/// synced page to the disk, is not in it.
pub(crate) fn seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The same of another process, in the kernel's ticks of a hundredth of a second.
pub(crate) fn seconds_of(pid: u32) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = ticks_in(&text).ok_or_else(|| format!("/proc/{pid}/stat is {text:?}"))?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The 14th and the 15th field. The second is the program's name, which may have spaces and brackets in it.
fn ticks_in(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let (user, kernel) = (fields.next()?, fields.next()?);
    Some(user.parse::<u64>().ok()? + kernel.parse::<u64>().ok()?)
}

/// CPU seconds per million events.
pub(crate) fn per_million(cpu_seconds: f64, events: u64) -> f64 {
    cpu_seconds * 1e6 / events.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 250 50 5 6 20 0 9 0 100 1 1 1";
        assert_eq!(ticks_in(stat), Some(300));
        assert_eq!(ticks_in("7 (a"), None);
        assert!(seconds_of(std::process::id()).unwrap() <= seconds() + 0.02);
    }
}
