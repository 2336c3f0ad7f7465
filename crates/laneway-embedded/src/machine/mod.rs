//! The rules of the store, as plain synchronous code with time passed in.
//!
//! One file per transition of the seam, over the [`State`] that a store keeps. Both stores of this crate use
//! these rules, so they can differ only in where bytes lie; stores on a server have rules of their own and are
//! held to these by the conformance suite.

pub(crate) mod codec;
mod state;

pub(crate) use state::{Now, SeatHead, SeatState, State, StoredEnd, Table, Tail};
