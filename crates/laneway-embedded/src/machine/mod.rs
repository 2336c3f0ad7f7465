//! The rules of the store, as plain synchronous code with time passed in.
//!
//! One file per transition of the seam, over the [`State`] that a store keeps. Both stores of this crate use
//! these rules, so they can differ only in where bytes lie; stores on a server have rules of their own and are
//! held to these by the conformance suite.
//!
//! Reading order: `state` (what there is), `append` with `joins`, `dedup` and `schedule`, `promote`, `read`;
//! then `seize`, `commit` with `lane_changes` and `job_ends`; the rest is one small file each.

mod ahead;
pub(crate) mod append;
pub(crate) mod codec;
pub(crate) mod commit;
mod dedup;
pub(crate) mod define;
pub(crate) mod documents;
pub(crate) mod expiry;
mod export;
mod gate;
pub(crate) mod idle;
mod ids;
mod import;
mod job_ends;
pub(crate) mod jobs;
mod joins;
pub(crate) mod kept;
mod lane_changes;
pub(crate) mod lanes;
pub(crate) mod promote;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod request;
mod schedule;
pub(crate) mod seize;
pub(crate) mod stash;
mod state;
pub(crate) mod trim;

pub(crate) use state::{Now, SeatHead, SeatState, State, StoredEnd, Table, Tail, View, look_at_all};
