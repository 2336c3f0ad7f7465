//! Resident memory of a process.

use crate::Failure;

/// Resident memory of this process in MiB, as the kernel counts it now.
pub(crate) fn resident_mib() -> Result<f64, Failure> {
    resident_mib_of("self")
}

/// The same of the process with this id.
pub(crate) fn resident_mib_of(pid: &str) -> Result<f64, Failure> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).ok_or("/proc/PID/status has no VmRSS")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}
