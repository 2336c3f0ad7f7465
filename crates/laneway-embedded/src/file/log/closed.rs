//! The mark of a clean close: a small file that says where the log ends.
//!
//! Without it the end of the log is wherever the frames stop, and a lost last frame cannot be told from
//! one that was never written. After a clean close that is known, so any difference is damage. The mark is
//! void as soon as a newer segment exists, because then that segment's header says the same.

use std::path::{Path, PathBuf};

use super::error::{LogError, io_error};
use super::header::VERSION;
use super::position::{Mark, Position};
use crate::file::disk::Disk;

const NAME: &str = "CLOSED";
pub(super) const TEMPORARY_NAME: &str = "CLOSED.tmp";
const MAGIC: &[u8; 8] = b"LANECLS1";
const BYTES: usize = 64;
const CHECKSUM_AT: usize = BYTES - 4;

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// Writes the mark so that it is there whole or not at all.
pub(super) fn write(disk: &dyn Disk, dir: &Path, store_id: u128, end: Mark) -> Result<(), LogError> {
    let temporary = dir.join(TEMPORARY_NAME);
    if disk.exists(&temporary).map_err(io_error("look for", &temporary))? {
        disk.remove(&temporary).map_err(io_error("remove", &temporary))?;
    }
    let file = disk.create(&temporary).map_err(io_error("create", &temporary))?;
    file.write_at(&encode(store_id, end), 0).map_err(io_error("write", &temporary))?;
    file.sync_data().map_err(io_error("sync", &temporary))?;
    disk.rename(&temporary, &path(dir)).map_err(io_error("rename", &temporary))?;
    disk.sync_dir(dir).map_err(io_error("sync folder", dir))
}

/// The mark, if there is one.
pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<(u128, Mark)>, LogError> {
    let path = path(dir);
    if !disk.exists(&path).map_err(io_error("look for", &path))? {
        return Ok(None);
    }
    let file = disk.open(&path).map_err(io_error("open", &path))?;
    // One byte more than the mark, so that a longer file is noticed too.
    let mut bytes = [0; BYTES + 1];
    let count = file.read_at(&mut bytes, 0).map_err(io_error("read", &path))?;
    decode(&bytes[..count], &path).map(Some)
}

fn encode(store_id: u128, end: Mark) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[0..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..28].copy_from_slice(&store_id.to_le_bytes());
    bytes[28..36].copy_from_slice(&end.position.serial.to_le_bytes());
    bytes[36..44].copy_from_slice(&end.position.offset.to_le_bytes());
    bytes[44..52].copy_from_slice(&end.number.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], path: &Path) -> Result<(u128, Mark), LogError> {
    let corrupt = |what: &str| LogError::Corrupt { file: path.to_owned(), offset: 0, what: what.to_owned() };
    if bytes.len() < 12 || &bytes[0..8] != MAGIC {
        return Err(corrupt("is not a mark of a clean close"));
    }
    let version = u32::from_le_bytes(std::array::from_fn(|index| bytes[8 + index]));
    if version > VERSION {
        return Err(LogError::Newer { file: path.to_owned(), found: version, supported: VERSION });
    }
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
    let stored = bytes
        .get(CHECKSUM_AT..BYTES)
        .map(|four| u32::from_le_bytes(std::array::from_fn(|index| four[index])));
    if bytes.len() != BYTES || stored != Some(crc32fast::hash(&bytes[..CHECKSUM_AT])) {
        return Err(corrupt("the mark of the clean close does not match its checksum"));
    }
    let store_id = u128::from_le_bytes(std::array::from_fn(|index| bytes[12 + index]));
    let position = Position { serial: long(28), offset: long(36) };
    Ok((store_id, Mark { position, number: long(44) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_survives_the_round_trip_and_notices_every_change() {
        let end = Mark { position: Position { serial: 3, offset: 4711 }, number: 99 };
        let bytes = encode(17, end);
        let path = Path::new("CLOSED");
        assert_eq!(decode(&bytes, path).unwrap(), (17, end));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged, path).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len], path).is_err(), "length {len}");
        }
    }
}
