//! How values become bytes: one file per family, each with a round-trip test.
//!
//! Little-endian, lengths as varints, optional parts behind a flag byte. Row keys are big-endian, so that they
//! sort as their numbers do. A version byte begins every stored family, so that a later one can be told apart.

mod bytes;
pub(crate) mod event;

pub(crate) use bytes::{Decoder, Encoder, Malformed};
