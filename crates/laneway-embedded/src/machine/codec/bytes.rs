//! The primitives: an encoder over a growing buffer and a decoder that never panics.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{Due, EventId, Key, Steady, StoreError, Timestamp};

/// The bytes are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Malformed {
    /// The error for a caller who knows what was being read.
    pub(crate) fn in_what(self, what: impl Into<String>) -> StoreError {
        StoreError::Corrupt { what: what.into() }
    }
}

/// Writes primitives to the end of a buffer.
pub(crate) trait Encoder {
    fn u8(&mut self, value: u8);
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    fn u128(&mut self, value: u128);
    /// Seven bits a byte, low first.
    fn varint(&mut self, value: u64);
    /// A length and the bytes.
    fn bytes(&mut self, value: &[u8]);
    /// One byte, 0 or 1.
    fn flag(&mut self, value: bool);
    /// Whole microseconds; a longer time than fits stays the longest.
    fn duration(&mut self, value: Duration);
    /// A flag, then the number if there is one.
    fn optional(&mut self, value: Option<u64>);
    /// Which clock, then the moment on it.
    fn due(&mut self, value: Due);
}

impl Encoder for Vec<u8> {
    fn u8(&mut self, value: u8) {
        self.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u128(&mut self, value: u128) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.extend_from_slice(value);
    }

    fn flag(&mut self, value: bool) {
        self.push(u8::from(value));
    }

    fn duration(&mut self, value: Duration) {
        self.varint(u64::try_from(value.as_micros()).unwrap_or(u64::MAX));
    }

    fn optional(&mut self, value: Option<u64>) {
        self.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.varint(value);
        }
    }

    fn due(&mut self, value: Due) {
        let (clock, moment) = match value {
            Due::Steady(due) => (0, due.0),
            Due::Calendar(due) => (1, due.0),
        };
        self.push(clock);
        self.extend_from_slice(&moment.to_le_bytes());
    }
}

/// Reads primitives from the front of shared bytes; slices share them.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    bytes: Bytes,
    at: usize,
}

impl Decoder {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// How many bytes were read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let chunk = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).ok_or(Malformed)?;
        self.at += N;
        Ok(*chunk)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.take::<1>().map(|bytes| bytes[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, Malformed> {
        self.take().map(u128::from_le_bytes)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    /// A varint that is a count or length in memory.
    pub(crate) fn len(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed)
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, Malformed> {
        self.part().map(Bytes::from)
    }

    /// The bytes that follow their length.
    fn part(&mut self) -> Result<Part<'_>, Malformed> {
        let len = self.len()?;
        let start = self.at;
        self.skip(len)?;
        Ok(Part { buffer: &self.bytes, place: start..self.at })
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    pub(crate) fn duration(&mut self) -> Result<Duration, Malformed> {
        self.varint().map(Duration::from_micros)
    }

    /// A varint of at most 32 bits.
    pub(crate) fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed)
    }

    pub(crate) fn optional(&mut self) -> Result<Option<u64>, Malformed> {
        if self.flag()? { self.varint().map(Some) } else { Ok(None) }
    }

    pub(crate) fn due(&mut self) -> Result<Due, Malformed> {
        match self.u8()? {
            0 => Ok(Due::Steady(Steady(self.u64()?))),
            1 => Ok(Due::Calendar(Timestamp(self.u64()?))),
            _ => Err(Malformed),
        }
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Malformed> {
        self.u64().map(Timestamp)
    }

    pub(crate) fn id(&mut self) -> Result<EventId, Malformed> {
        self.varint().map(EventId)
    }

    pub(crate) fn key(&mut self) -> Result<Key, Malformed> {
        Key::new(self.part()?).map_err(|_| Malformed)
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| Malformed)
    }

    /// Passes over bytes that were announced with their length.
    pub(crate) fn skip(&mut self, len: usize) -> Result<(), Malformed> {
        self.at = self.at.checked_add(len).filter(|end| *end <= self.bytes.len()).ok_or(Malformed)?;
        Ok(())
    }

    /// Nothing may be left over.
    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// A part of a buffer that many readers share. Every slice of it is counted there, so none is made for what is empty or
/// is copied.
struct Part<'a> {
    buffer: &'a Bytes,
    place: Range<usize>,
}

impl AsRef<[u8]> for Part<'_> {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.place.clone()]
    }
}

impl From<Part<'_>> for Bytes {
    fn from(part: Part<'_>) -> Self {
        if part.place.is_empty() { Self::new() } else { part.buffer.slice(part.place) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn primitives_read_back_as_written(a: u8, b: u32, c: u64, d: u128, e: u64, f: Vec<u8>) {
            let mut buffer = Vec::new();
            buffer.u8(a);
            buffer.u32(b);
            Encoder::u64(&mut buffer, c);
            buffer.u128(d);
            buffer.varint(e);
            Encoder::bytes(&mut buffer, &f);
            let mut decoder = Decoder::new(buffer.into());
            prop_assert_eq!(decoder.u8(), Ok(a));
            prop_assert_eq!(decoder.u32(), Ok(b));
            prop_assert_eq!(decoder.u64(), Ok(c));
            prop_assert_eq!(decoder.u128(), Ok(d));
            prop_assert_eq!(decoder.varint(), Ok(e));
            prop_assert_eq!(decoder.bytes(), Ok(Bytes::from(f)));
            prop_assert_eq!(decoder.finish(), Ok(()));
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            let mut decoder = Decoder::new(bytes.into());
            while decoder.bytes().is_ok() && decoder.varint().is_ok() {}
        }
    }
}
