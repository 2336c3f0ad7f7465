//! The store on a Redis server of its own, and the same server used raw in the same minute.
//!
//! The server syncs every second, as most do: every figure says `buffered`.

mod idle;
mod latency;
mod nodes;
mod ours;
mod raw;
mod rows;

pub(crate) use rows::{names, run};
