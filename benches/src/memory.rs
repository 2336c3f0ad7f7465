//! Resident memory of this process.

use crate::Failure;

/// Resident memory in MiB, as the kernel counts it now.
pub(crate) fn resident_mib() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).ok_or("/proc/self/status has no VmRSS")?;
    Ok(kib.parse::<f64>()? / 1024.0)
}
