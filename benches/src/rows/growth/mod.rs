//! Cost that stays flat: what a situation costs those who have nothing to do with it, and whether it grows.
//!
//! One file per situation. Each opens a folder store of its own, makes the situation, measures, and removes its files.

mod backup;
mod count_drafts;
mod dead_letters;
mod dedup;
mod due;
mod far_lane;
mod figure;
mod forget_lanes;
mod held_disk;
mod http_cpu;
mod idle_seats;
mod job_ends;
mod job_lookup;
mod large_results;
mod partitions;
mod quiet_partition;
mod quiet_partitions;
mod redrive;
mod retry_storm;
mod rows;
mod sparse_stream;
mod sparse_trim;
mod waiting_memory;

pub(crate) use idle_seats::child as idle_seats_child;
pub(crate) use rows::{names, needs_server, run};
pub(crate) use waiting_memory::child as waiting_memory_child;
