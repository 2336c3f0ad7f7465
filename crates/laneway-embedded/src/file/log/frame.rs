//! One frame as bytes: a header of 40 bytes, the body, zeros up to a multiple of eight.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | body length |
//! | 4 | 4 | CRC-32 of all other header bytes and the body, started with the segment's seed |
//! | 8 | 8 | serial of the segment |
//! | 16 | 8 | frame number |
//! | 24 | 8 | calendar microseconds |
//! | 32 | 8 | steady microseconds |
//!
//! All integers are little-endian. The seed comes from random bits in the segment's header, so neither
//! the earlier content of a recycled file nor a body that imitates a frame can look valid. Knows nothing
//! of files.

use super::position::Stamp;

/// Bytes in front of every body.
pub const HEADER_BYTES: usize = 40;
/// Frames begin at multiples of this.
pub const ALIGNMENT: usize = 8;

/// What a frame of one segment must carry to be valid there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentKey {
    /// Serial of the segment.
    pub serial: u64,
    /// Start value of its checksums.
    pub seed: u32,
}

/// The verified header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Number of the frame.
    pub number: u64,
    /// Its clocks.
    pub stamp: Stamp,
    /// Length of its body, which follows the header.
    pub body_len: usize,
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// The bytes end before the frame does; it needs this many.
    Short(usize),
    /// No frame of this segment begins here.
    Foreign,
    /// A frame of this segment was begun here, but its bytes do not match their checksum.
    Checksum,
}

/// Bytes a frame with a body of this length takes in the file.
pub const fn total_len(body_len: usize) -> usize {
    (HEADER_BYTES + body_len).next_multiple_of(ALIGNMENT)
}

/// Verifies the frame at the start of `bytes`.
///
/// The length is only trusted together with the checksum: [`Invalid::Short`] may come from a damaged one.
pub fn decode(bytes: &[u8], key: SegmentKey) -> Result<Decoded, Invalid> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Err(Invalid::Short(HEADER_BYTES)) };
    if long(header, 8) != key.serial {
        return Err(Invalid::Foreign);
    }
    let body_len = word(header, 0) as usize;
    let total = total_len(body_len);
    let Some(whole) = bytes.get(..total) else { return Err(Invalid::Short(total)) };
    // The padding counts too: a frame is either exactly what was written or not valid.
    let padding_is_zero = whole[HEADER_BYTES + body_len..].iter().all(|byte| *byte == 0);
    if checksum(&whole[..HEADER_BYTES + body_len], key) != word(header, 4) || !padding_is_zero {
        return Err(Invalid::Checksum);
    }
    let stamp = Stamp { calendar: long(header, 24), steady: long(header, 32) };
    Ok(Decoded { number: long(header, 16), stamp, body_len })
}

/// A reusable buffer in which the caller builds a body behind the space reserved for the header.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
}

impl Default for FrameBuffer {
    fn default() -> Self {
        FrameBuffer::with_capacity(0)
    }
}

impl FrameBuffer {
    /// An empty buffer with room for a body of this length.
    pub fn with_capacity(body_len: usize) -> FrameBuffer {
        let mut bytes = Vec::with_capacity(total_len(body_len));
        bytes.resize(HEADER_BYTES, 0);
        FrameBuffer { bytes }
    }

    /// Forgets the body and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEADER_BYTES);
    }

    /// The body so far.
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// Length of the body so far.
    pub fn body_len(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// The vector to push the body into. Its first [`HEADER_BYTES`] belong to the log: push, or change what
    /// was pushed, and never make it shorter than that.
    pub fn body_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Completes header and padding; the returned bytes are what goes to the file.
    pub(super) fn seal(&mut self, key: SegmentKey, number: u64, stamp: Stamp) -> Sealed<'_> {
        let body_len = self.body_len();
        let length = u32::try_from(body_len).expect("the writer refuses bodies longer than a segment");
        self.bytes[0..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[8..16].copy_from_slice(&key.serial.to_le_bytes());
        self.bytes[16..24].copy_from_slice(&number.to_le_bytes());
        self.bytes[24..32].copy_from_slice(&stamp.calendar.to_le_bytes());
        self.bytes[32..40].copy_from_slice(&stamp.steady.to_le_bytes());
        let checksum = checksum(&self.bytes, key);
        self.bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        self.bytes.resize(total_len(body_len), 0);
        Sealed { buffer: self, body_len }
    }
}

/// A completed frame; the padding goes when this goes, so that the body can be written again elsewhere.
pub(super) struct Sealed<'a> {
    buffer: &'a mut FrameBuffer,
    body_len: usize,
}

impl Sealed<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer.bytes
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.buffer.bytes[HEADER_BYTES..HEADER_BYTES + self.body_len]
    }
}

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        self.buffer.bytes.truncate(HEADER_BYTES + self.body_len);
    }
}

/// Checksum of header and body without the checksum field itself.
fn checksum(header_and_body: &[u8], key: SegmentKey) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(key.seed);
    hasher.update(&header_and_body[..4]);
    hasher.update(&header_and_body[8..]);
    hasher.finalize()
}

fn word(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn long(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SegmentKey = SegmentKey { serial: 7, seed: 99 };

    fn sealed(body: &[u8]) -> Vec<u8> {
        let mut buffer = FrameBuffer::default();
        buffer.body_mut().extend_from_slice(body);
        let bytes = buffer.seal(KEY, 3, Stamp { calendar: 11, steady: 12 }).bytes().to_vec();
        assert_eq!(buffer.body(), body, "sealing must leave the body as it was");
        bytes
    }

    #[test]
    fn what_was_sealed_is_decoded() {
        for len in 0..40 {
            let body: Vec<u8> = (0..len).collect();
            let bytes = sealed(&body);
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            let stamp = Stamp { calendar: 11, steady: 12 };
            assert_eq!(decode(&bytes, KEY), Ok(Decoded { number: 3, stamp, body_len: body.len() }));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = sealed(b"an uneven body");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged, KEY).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let bytes = sealed(b"an uneven body");
        for len in 0..bytes.len() {
            assert!(matches!(decode(&bytes[..len], KEY), Err(Invalid::Short(_))), "length {len}");
        }
    }

    #[test]
    fn frames_of_another_segment_or_seed_are_not_valid() {
        let bytes = sealed(b"body");
        assert_eq!(decode(&bytes, SegmentKey { serial: 8, ..KEY }), Err(Invalid::Foreign));
        assert_eq!(decode(&bytes, SegmentKey { seed: 98, ..KEY }), Err(Invalid::Checksum));
        assert_eq!(decode(&[0; 64], KEY), Err(Invalid::Foreign));
    }
}
