//! What the engine does beyond the steady cycle: one hot lane, a backlog, latency, lanes that stand in the way.

mod backlog;
mod hot_lane;
mod interference;
mod latency;
mod load;
mod rows;

pub(crate) use backlog::raw_drain;
pub(crate) use latency::waits;
pub(crate) use rows::{names, run};
