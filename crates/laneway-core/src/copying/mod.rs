//! Copying: everything of one store into another, through the seam alone.
//!
//! [`copy`] reads lists and writes imports, so it works between any two stores that offer both. Ids, `prev`,
//! `seq`, job ids and ends, objects, states, lane records, sidings, dead letters, outbox, schedule, dedup ids,
//! sources, requests and progress come over as they are. What does not, and why that is safe, is told there.

mod copy;
mod report;
mod rows;
mod seat;
mod shard;
mod shift;

pub use copy::copy;
pub use report::CopyReport;
