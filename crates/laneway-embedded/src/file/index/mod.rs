//! The index: what cannot be found by walking the log, as of the last checkpoint, in a redb file.
//!
//! It is written only by checkpoints, in large transactions that carry the log position they stand for, and is
//! never on the commit path. Losing it would lose tails and rows, so every value has a checksum of its own.

mod database;
#[cfg(test)]
pub(crate) mod fixture;
mod packed;
mod storage;
mod values;

pub(crate) use database::{CheckpointWrite, Index, IndexTable, Snapshot, prefix_end};
pub(crate) use packed::PackedChanges;
pub(crate) use storage::Patience;
pub(crate) use values::Meta;
