//! Faults that were once in the file store, each with the test that keeps it away.

mod costs;
mod dedup_bound;
mod harness;
mod idle;
mod refused;
mod smallest;
mod streams;
mod unsynced;
