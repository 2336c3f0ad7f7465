//! The first 4 KiB of a segment file: who it is and what came before it.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `LANESEG1` |
//! | 8 | 4 | format version |
//! | 12 | 4 | flags: 1 growing file, 2 written without syncs |
//! | 16 | 16 | store id |
//! | 32 | 8 | serial |
//! | 40 | 8 | number of its first frame |
//! | 48 | 8 | salt: random bits |
//! | 56 | 8 | serial of the previous segment, 0 if there was none |
//! | 64 | 8 | end offset of the previous segment |
//! | 72 | 4020 | zeros |
//! | 4092 | 4 | CRC-32 of all bytes before |
//!
//! The end of the previous segment is what makes a cut final: bytes behind it are not part of the log,
//! and frames missing before it are damage.

use std::path::Path;

use super::error::LogError;
use super::frame::SegmentKey;

/// Length of the header; the first frame begins here.
pub(super) const BYTES: usize = 4096;
/// Where the first frame of a segment begins.
pub(crate) const FIRST_FRAME: u64 = BYTES as u64;
/// The format this release writes.
pub(super) const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"LANESEG1";
const CHECKSUM_AT: usize = BYTES - 4;
const FLAG_GROWING: u32 = 1;
const FLAG_UNSYNCED: u32 = 2;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) store_id: u128,
    pub(super) serial: u64,
    pub(super) first_frame: u64,
    pub(super) salt: u64,
    pub(super) previous_serial: u64,
    pub(super) previous_end: u64,
    /// The file grew with its frames instead of being filled with zeros before.
    pub(super) growing: bool,
    /// Frames were acknowledged without a sync, so that any of the last ones may be missing.
    pub(super) unsynced: bool,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        let flags =
            if self.growing { FLAG_GROWING } else { 0 } | if self.unsynced { FLAG_UNSYNCED } else { 0 };
        bytes[0..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&flags.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.serial.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_frame.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.salt.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.previous_serial.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.previous_end.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header of `file`, whose name says that it has this serial.
    pub(super) fn decode(bytes: &[u8], file: &Path, serial: u64) -> Result<Header, LogError> {
        let corrupt = |offset: u64, what: String| LogError::Corrupt { file: file.to_owned(), offset, what };
        if bytes.len() < BYTES {
            return Err(corrupt(
                0,
                format!("{} bytes are too few for a segment header of {BYTES}", bytes.len()),
            ));
        }
        if &bytes[0..8] != MAGIC {
            return Err(corrupt(0, "does not begin like a log segment".to_owned()));
        }
        let version = word(bytes, 8);
        if version > VERSION {
            return Err(LogError::Newer { file: file.to_owned(), found: version, supported: VERSION });
        }
        if crc32fast::hash(&bytes[..CHECKSUM_AT]) != word(bytes, CHECKSUM_AT) || version == 0 {
            return Err(corrupt(0, "the header does not match its checksum".to_owned()));
        }
        let flags = word(bytes, 12);
        let header = Header {
            store_id: u128::from_le_bytes(std::array::from_fn(|index| bytes[16 + index])),
            serial: long(bytes, 32),
            first_frame: long(bytes, 40),
            salt: long(bytes, 48),
            previous_serial: long(bytes, 56),
            previous_end: long(bytes, 64),
            growing: flags & FLAG_GROWING != 0,
            unsynced: flags & FLAG_UNSYNCED != 0,
        };
        if header.serial != serial {
            return Err(corrupt(32, format!("the header has serial {}, the name {serial}", header.serial)));
        }
        Ok(header)
    }

    pub(super) fn key(&self) -> SegmentKey {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.store_id.to_le_bytes());
        hasher.update(&self.serial.to_le_bytes());
        hasher.update(&self.salt.to_le_bytes());
        SegmentKey { serial: self.serial, seed: hasher.finalize() }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        store_id: 5,
        serial: 42,
        first_frame: 1000,
        salt: 77,
        previous_serial: 41,
        previous_end: 8192,
        growing: true,
        unsynced: false,
    };

    #[test]
    fn header_survives_the_round_trip_and_notices_every_flipped_bit() {
        let bytes = HEADER.encode();
        let path = Path::new("42.seg");
        assert_eq!(Header::decode(&bytes, path, 42).unwrap(), HEADER);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&damaged, path, 42).is_err(), "bit {bit}");
        }
        assert!(Header::decode(&bytes, path, 43).is_err());
    }

    #[test]
    fn newer_version_is_refused_by_name() {
        let mut bytes = HEADER.encode();
        bytes[8] = 3;
        let error = Header::decode(&bytes, Path::new("42.seg"), 42).unwrap_err();
        assert!(error.to_string().contains("format version 3 is newer than 1"), "{error}");
    }
}
