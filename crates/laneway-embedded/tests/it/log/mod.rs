//! The log on simulated and real disks: nothing acknowledged is lost, nothing is invented, damage is loud.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests, and the counts they print")]

mod damage;
mod failing_calls;
mod full_disk;
mod harness;
mod power_cuts;
mod reading;
mod segments;
