//! How values become bytes: one file per family, each with a round-trip test.
//!
//! Little-endian, lengths as varints, optional parts behind a flag byte. Row keys are big-endian, so that they
//! sort as their numbers do. A version byte begins every stored family, so that a later one can be told apart.

mod bytes;
mod dead;
mod dedup;
mod draft;
pub(crate) mod event;
mod job;
pub(crate) mod keys;
mod lane;
mod request;
#[cfg(test)]
mod samples;
mod seat;
mod stored;
mod stream;
mod values;

pub(crate) use bytes::{Decoder, Encoder, Malformed};
pub(crate) use dedup::Remembered;
pub(crate) use draft::{Outgoing, Waiting};
pub(crate) use job::ScheduledJob;
pub(crate) use request::{Filed, Token};
pub(crate) use stored::{Stored, load};
pub(crate) use values::{Chunk, IdleLanes, Numbered, Seen, Value};
