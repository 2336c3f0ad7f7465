//! Reading frames from a segment file: many per system call, each one verified.
//!
//! Stops at the first place that does not hold a valid frame and says why; whether that is the end of the
//! log, a torn tail or damage is decided by the callers.

use std::io;
use std::ops::RangeInclusive;

use bytes::Bytes;

use super::frame::{self, Invalid, SegmentKey};
use super::position::{Frame, Position};
use crate::file::disk::DiskFile;

/// Bytes per system call.
pub(super) const READ_BYTES: usize = 1 << 20;

/// Frames read in one go.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) frames: Vec<Frame>,
    /// Where the frame after the last one begins.
    pub(super) offset: u64,
    /// Why there is no frame at `offset`, if that is known.
    pub(super) stop: Option<Invalid>,
}

/// Reads frames in `offset..end` of a file, about `max_bytes` of them and at least one if there is one.
pub(super) fn read_batch(
    file: &dyn DiskFile,
    key: SegmentKey,
    offset: u64,
    end: u64,
    max_bytes: usize,
) -> io::Result<Batch> {
    let mut want = max_bytes.max(frame::HEADER_BYTES);
    loop {
        let room = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = read_exactly_or_to_end(file, offset, want.min(room))?;
        let mut frames = Vec::new();
        let mut at = 0;
        let stop = loop {
            match frame::decode(&bytes[at..], key) {
                Err(invalid) => break invalid,
                Ok(decoded) => {
                    let body_at = at + frame::HEADER_BYTES;
                    frames.push(Frame {
                        position: Position { serial: key.serial, offset: offset + at as u64 },
                        number: decoded.number,
                        stamp: decoded.stamp,
                        body: bytes.slice(body_at..body_at + decoded.body_len),
                    });
                    at += frame::total_len(decoded.body_len);
                }
            }
        };
        let next = offset + at as u64;
        match stop {
            // The frame does not fit between here and the end: no valid frame can begin here.
            Invalid::Short(need) if next + need as u64 > end || bytes.len() < want.min(room) => {
                return Ok(Batch { frames, offset: next, stop: Some(stop) });
            }
            // One frame longer than the read: read again for all of it.
            Invalid::Short(need) if frames.is_empty() => want = need,
            Invalid::Short(_) => return Ok(Batch { frames, offset: next, stop: None }),
            Invalid::Foreign | Invalid::Checksum => {
                return Ok(Batch { frames, offset: next, stop: Some(stop) });
            }
        }
    }
}

/// The first valid frame that begins after `offset`, at any place where a frame could begin.
pub(super) fn find_after(
    file: &dyn DiskFile,
    key: SegmentKey,
    offset: u64,
    end: u64,
    number_min: u64,
) -> io::Result<Option<Frame>> {
    // Numbers are consecutive, so no later frame of the file can be further on than this.
    let numbers = number_min..=number_min.saturating_add(end / frame::HEADER_BYTES as u64);
    let step = frame::ALIGNMENT as u64;
    let mut window_at = offset + step;
    while window_at < end {
        let room = usize::try_from(end - window_at).unwrap_or(usize::MAX);
        let window = read_exactly_or_to_end(file, window_at, room.min(READ_BYTES))?;
        for at in (0..window.len()).step_by(frame::ALIGNMENT) {
            let found = candidate(&window[at..], key, &numbers).then(|| window_at + at as u64);
            let Some(offset) = found else { continue };
            // Almost all candidates are refuted by what was read already.
            if frame::decode(&window[at..], key) == Err(Invalid::Checksum) {
                continue;
            }
            let batch = read_batch(file, key, offset, end, frame::HEADER_BYTES)?;
            if let Some(frame) = batch.frames.into_iter().next() {
                return Ok(Some(frame));
            }
        }
        if window.len() < READ_BYTES {
            break;
        }
        // The last candidate of the window needs the bytes behind it, so windows overlap.
        window_at += (READ_BYTES - frame::HEADER_BYTES) as u64;
    }
    Ok(None)
}

/// Whether serial and number could be those of a frame; cheap, because it is asked at every place.
fn candidate(bytes: &[u8], key: SegmentKey, numbers: &RangeInclusive<u64>) -> bool {
    bytes.len() >= frame::HEADER_BYTES
        && bytes[8..16] == key.serial.to_le_bytes()
        && numbers.contains(&u64::from_le_bytes(std::array::from_fn(|index| bytes[16 + index])))
}

fn read_exactly_or_to_end(file: &dyn DiskFile, offset: u64, len: usize) -> io::Result<Bytes> {
    let mut buffer = vec![0; len];
    let count = file.read_at(&mut buffer, offset)?;
    buffer.truncate(count);
    Ok(Bytes::from(buffer))
}
