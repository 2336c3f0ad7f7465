//! Copying: everything of one store into another, through the seam alone.
//!
//! [`copy`] reads lists and writes imports, so it works between any two stores that offer both. Ids, `prev`,
//! `seq`, job ids and ends, objects, states, lane records, sidings, dead letters, outbox, schedule, dedup ids,
//! sources, requests and progress come over as they are. What does not, and why that is safe, is told there. [`verify`]
//! compares both afterwards.

mod copy;
mod report;
mod rows;
mod seat;
mod shard;
mod shift;
mod verify;

pub use copy::copy;
pub use report::CopyReport;
pub use verify::{VerifyReport, verify};
