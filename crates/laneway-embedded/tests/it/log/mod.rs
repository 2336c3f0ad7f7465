//! The log on simulated and real disks: nothing acknowledged is lost, nothing is invented, damage is loud.

mod damage;
mod failing_calls;
mod full_disk;
mod harness;
mod power_cuts;
mod reading;
mod segments;
