//! The seam to the file system: every byte the store reads or writes passes through these two traits,
//! so that a test can fail, count or lose any single call.

mod calls;
mod real;
pub mod simulated;

pub use calls::{Disk, DiskFile};
pub use real::RealDisk;
