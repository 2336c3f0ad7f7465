//! The situations together, in the order of the table that they are measured against.

use crate::Failure;
use crate::context::Context;
use crate::report::Row;

use super::{
    backup, count_drafts, dead_letters, dedup, due, far_lane, forget_lanes, held_disk, http_cpu, idle_seats,
    job_ends, job_lookup, large_results, partitions, quiet_partition, quiet_partitions, redrive, retry_storm,
    sparse_stream, sparse_trim, waiting_memory,
};

type Run = fn(&Context) -> Result<Vec<Row>, Failure>;

const SITUATIONS: [(&str, Run); 21] = [
    (quiet_partitions::NAME, quiet_partitions::run),
    (quiet_partition::NAME, quiet_partition::run),
    (sparse_stream::NAME, sparse_stream::run),
    (far_lane::NAME, far_lane::run),
    (sparse_trim::NAME, sparse_trim::run),
    (partitions::NAME, partitions::run),
    (dedup::NAME, dedup::run),
    (due::NAME, due::run),
    (waiting_memory::NAME, waiting_memory::run),
    (forget_lanes::NAME, forget_lanes::run),
    (count_drafts::NAME, count_drafts::run),
    (dead_letters::NAME, dead_letters::run),
    (large_results::NAME, large_results::run),
    (job_ends::NAME, job_ends::run),
    (held_disk::NAME, held_disk::run),
    (backup::NAME, backup::run),
    (redrive::NAME, redrive::run),
    (idle_seats::NAME, idle_seats::run),
    (job_lookup::NAME, job_lookup::run),
    (http_cpu::NAME, http_cpu::run),
    (retry_storm::NAME, retry_storm::run),
];

/// The beginning of the names of each situation's rows.
pub(crate) fn names() -> Vec<String> {
    SITUATIONS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Whether a situation is wanted that starts the server.
pub(crate) fn needs_server(context: &Context) -> bool {
    context.wants(http_cpu::NAME)
}

pub(crate) fn run(context: &Context) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (_, run) in SITUATIONS.iter().filter(|(name, _)| context.wants(name)) {
        rows.extend(run(context)?);
    }
    Ok(rows)
}
