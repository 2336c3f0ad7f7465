//! Emptying the kernel's page cache, so that a start reads from the disk. Needs the rights of root.

/// Writes back and drops clean pages. Answers why not, where that is not allowed.
pub(crate) fn empty() -> Result<(), std::io::Error> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "1")
}
