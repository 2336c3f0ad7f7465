//! The one shape of a stored family: a version byte, then its fields, and nothing left over.
//!
//! Says nothing about where the bytes lie; keys of rows are in `keys.rs`.

use bytes::Bytes;
use laneway_core::Result;

use super::{Decoder, Malformed};
use crate::machine::{Table, View};

/// The only version there is; another one is refused as malformed, never guessed at.
const VERSION: u8 = 1;

/// A family of values that can be a row of its own or a part of another value.
pub(crate) trait Stored: Sized {
    /// What a message calls it.
    const NAME: &'static str;

    /// Writes the fields, without the version.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads the fields, without the version.
    fn decode(from: &mut Decoder) -> Result<Self, Malformed>;

    /// The whole row.
    fn to_row(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.push(VERSION);
        self.encode(&mut out);
        out
    }

    /// Reads a whole row.
    fn from_row(row: Bytes) -> Result<Self> {
        let mut from = Decoder::new(row);
        let read = |from: &mut Decoder| {
            if from.u8()? != VERSION {
                return Err(Malformed);
            }
            Self::decode(from)
        };
        let value = read(&mut from).map_err(|malformed| malformed.in_what(Self::NAME))?;
        from.finish().map_err(|malformed| malformed.in_what(Self::NAME))?;
        Ok(value)
    }
}

/// Reads a row of a family.
pub(crate) fn load<T: Stored>(state: &impl View, table: Table, key: &[u8]) -> Result<Option<T>> {
    state.get(table, key)?.map(T::from_row).transpose()
}
