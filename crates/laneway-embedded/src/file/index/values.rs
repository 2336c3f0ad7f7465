//! Values in the index: each carries a checksum over its key and itself, because redb checks none when reading.

use bytes::Bytes;
use laneway_core::{Incarnation, Steady, StoreError, Timestamp, WatchMark};

use crate::clock::ClockMark;
use crate::file::log::{Mark, Position};
use crate::machine::codec::{Decoder, Encoder, Malformed};

const CHECKSUM_BYTES: usize = 4;
/// Version 2 adds how far the wall clock could be trusted.
const META_VERSION: u8 = 2;

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(key.len() as u32).to_le_bytes());
    hasher.update(key);
    hasher.update(value);
    hasher.finalize()
}

/// Puts a value with its checksum into a reused buffer.
pub(super) fn seal(key: &[u8], value: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(value);
    buffer.extend_from_slice(&checksum(key, value).to_le_bytes());
}

/// The value again, if it is what was written under this key.
pub(super) fn open<'a>(what: &str, key: &[u8], stored: &'a [u8]) -> Result<&'a [u8], StoreError> {
    let damaged = || StoreError::Corrupt {
        what: format!("index.redb: {what} {} fails its checksum; restore a backup", key.escape_ascii()),
    };
    let at = stored.len().checked_sub(CHECKSUM_BYTES).ok_or_else(damaged)?;
    let (value, sum) = stored.split_at(at);
    if checksum(key, value).to_le_bytes() == sum { Ok(value) } else { Err(damaged()) }
}

/// What a checkpoint stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Names the folder's store: log and index of two stores are never mixed.
    pub(crate) store: u128,
    /// Which life of the store.
    pub(crate) incarnation: Incarnation,
    /// The log up to here is contained.
    pub(crate) mark: Mark,
    /// Where the clocks stood with the last frame contained.
    pub(crate) clock: ClockMark,
}

impl Meta {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.u8(META_VERSION);
        out.u128(self.store);
        out.u128(self.incarnation.0);
        let numbers = [self.mark.position.serial, self.mark.position.offset, self.mark.number];
        for value in
            numbers.into_iter().chain([self.clock.calendar.0, self.clock.steady.0, self.clock.machine.0])
        {
            Encoder::u64(&mut out, value);
        }
        out.u128(self.clock.epoch);
        out.flag(self.clock.watch.is_some());
        if let Some(watch) = &self.clock.watch {
            encode_watch(watch, &mut out);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let version = bytes.first().copied().unwrap_or(0);
        if version > META_VERSION {
            let what = format!(
                "index.redb: format version {version} is newer than {META_VERSION}, the newest this release can read"
            );
            return Err(StoreError::Corrupt { what });
        }
        Self::decode_parts(Decoder::new(Bytes::copy_from_slice(bytes)))
            .map_err(|malformed| malformed.in_what("index.redb: the checkpoint's own record"))
    }

    fn decode_parts(mut from: Decoder) -> Result<Self, Malformed> {
        let version = from.u8()?;
        let (store, incarnation) = (from.u128()?, Incarnation(from.u128()?));
        let position = Position { serial: from.u64()?, offset: from.u64()? };
        let mark = Mark { position, number: from.u64()? };
        let (calendar, steady, machine) = (Timestamp(from.u64()?), Steady(from.u64()?), Steady(from.u64()?));
        let epoch = from.u128()?;
        let watch = if version >= 2 && from.flag()? { Some(decode_watch(&mut from)?) } else { None };
        let clock = ClockMark { calendar, steady, machine, epoch, watch, expired: calendar };
        from.finish()?;
        Ok(Self { store, incarnation, mark, clock })
    }
}

fn encode_watch(watch: &WatchMark, out: &mut Vec<u8>) {
    let times =
        [watch.steady.0, watch.believed.0, watch.read.0, watch.since.0, watch.floor.0, watch.expired.0];
    for value in times.into_iter().chain([watch.jumps]) {
        Encoder::u64(out, value);
    }
    for value in [watch.firm, watch.settled, watch.gap] {
        out.flag(value);
    }
}

fn decode_watch(from: &mut Decoder) -> Result<WatchMark, Malformed> {
    Ok(WatchMark {
        steady: Steady(from.u64()?),
        believed: Timestamp(from.u64()?),
        read: Timestamp(from.u64()?),
        since: Steady(from.u64()?),
        floor: Timestamp(from.u64()?),
        expired: Timestamp(from.u64()?),
        jumps: from.u64()?,
        firm: from.flag()?,
        settled: from.flag()?,
        gap: from.flag()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(watch: Option<WatchMark>) -> Meta {
        let calendar = Timestamp(1);
        let (steady, machine) = (Steady(2), Steady(3));
        let clock = ClockMark { calendar, steady, machine, epoch: 4, watch, expired: calendar };
        let mark = Mark { position: Position { serial: 5, offset: 6 }, number: 7 };
        Meta { store: 8, incarnation: Incarnation(9), mark, clock }
    }

    #[test]
    fn checkpoint_records_come_back_as_they_were_written() {
        let watch = WatchMark {
            steady: Steady(10),
            believed: Timestamp(11),
            read: Timestamp(12),
            since: Steady(13),
            floor: Timestamp(14),
            expired: Timestamp(16),
            jumps: 15,
            firm: true,
            settled: false,
            gap: true,
        };
        for meta in [meta(None), meta(Some(watch))] {
            assert_eq!(Meta::decode(&meta.encode()).unwrap(), meta);
        }
    }

    #[test]
    fn checkpoint_record_without_a_watch_is_read() {
        let mut bytes = meta(None).encode();
        bytes.pop();
        bytes[0] = 1;
        assert_eq!(Meta::decode(&bytes).unwrap(), meta(None));
    }
}
