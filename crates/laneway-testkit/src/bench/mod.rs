//! A test's view of a store: short words for what cases do again and again.
//!
//! [`Bench`] holds the open store; [`Place`] is a stream with one partition and one processor; [`Snapshot`] is
//! everything that can be read of a shard, for "nothing was written" and "everything is still there".

mod calls;
mod draft;
mod open;
mod place;
mod snapshot;

pub(crate) use calls::{chain_of, read_of};
pub use draft::{
    DraftExt, delayed, draft, emit, ending, inline, job_draft, job_end, key, keyless, lane, lane_change,
    parked, passed, retrying,
};
pub use open::Bench;
pub use place::Place;
pub use snapshot::{SeatSnapshot, Snapshot};
