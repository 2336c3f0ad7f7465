//! The whole way of a job through the store: append, read in order, commit with a result, trim.
//!
//! `flow` is what both sides share (room, counters, the end of a round), `store_side` is the store with consumers
//! that own seats, `engine_side` the engine with an empty handler, `raw_side` the raw log doing the same calls with the same bytes, `rounds` runs them in turns.

mod engine_side;
mod flow;
mod raw_index;
mod raw_side;
mod rounds;
mod store_side;

pub(crate) use rounds::{names, run};
