//! The log on simulated and real disks.
