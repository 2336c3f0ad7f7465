//! The newest frames, kept in memory so that fresh work is read without a system call.
//!
//! A bounded window at the end of the log. Bodies are copied once, into chunks that many frames share, so
//! that a frame costs no allocation of its own. Says nothing about durability: only frames that readers
//! may see are put in.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use parking_lot::RwLock;

use super::position::{Frame, Position};

/// Bodies share allocations of this size.
const CHUNK_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Recent {
    limit: usize,
    window: RwLock<Window>,
}

#[derive(Debug, Default)]
struct Window {
    frames: VecDeque<Frame>,
    bytes: usize,
}

/// The writer's end: copies bodies into shared chunks.
#[derive(Debug, Default)]
pub(super) struct Chunk(BytesMut);

impl Chunk {
    pub(super) fn copy(&mut self, body: &[u8]) -> Bytes {
        if self.0.capacity() < body.len() {
            self.0 = BytesMut::with_capacity(body.len().max(CHUNK_BYTES));
        }
        self.0.extend_from_slice(body);
        self.0.split().freeze()
    }
}

impl Recent {
    pub(super) fn new(limit: usize) -> Recent {
        Recent { limit, window: RwLock::default() }
    }

    /// Whether a frame with a body of this length would be kept at all.
    pub(super) fn keeps(&self, body_len: usize) -> bool {
        body_len <= self.limit && self.limit > 0
    }

    /// Adds the newest frame and drops the oldest ones beyond the limit.
    pub(super) fn push(&self, frame: Frame) {
        let mut window = self.window.write();
        window.bytes += frame.body.len();
        window.frames.push_back(frame);
        while window.bytes > self.limit {
            let Some(oldest) = window.frames.pop_front() else { break };
            window.bytes -= oldest.body.len();
        }
    }

    /// Forgets everything: the next frame will not follow the ones kept.
    pub(super) fn clear(&self) {
        *self.window.write() = Window::default();
    }

    /// Frames from exactly this position on, at least one, up to `max_bytes` of bodies; `None` if the
    /// position is not in the window.
    pub(super) fn frames_from(&self, position: Position, max_bytes: usize) -> Option<Vec<Frame>> {
        let window = self.window.read();
        let start = window.frames.binary_search_by_key(&position, |frame| frame.position).ok()?;
        let mut bytes = 0;
        let fits = |frame: &&Frame| {
            let first = bytes == 0;
            bytes += frame.body.len().max(1);
            first || bytes <= max_bytes
        };
        Some(window.frames.range(start..).take_while(fits).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::position::Stamp;
    use super::*;

    fn position(number: u64) -> Position {
        Position { serial: 1, offset: number * 100 }
    }

    fn filled(limit: usize, frames: u64) -> Recent {
        let recent = Recent::new(limit);
        let mut chunk = Chunk::default();
        for number in 0..frames {
            let body = chunk.copy(&[u8::try_from(number).unwrap(); 10]);
            recent.push(Frame { position: position(number), number, stamp: Stamp::default(), body });
        }
        recent
    }

    #[test]
    fn only_the_newest_frames_within_the_limit_are_kept() {
        let recent = filled(35, 9);
        let numbers = |from, max| {
            let frames = recent.frames_from(position(from), max)?;
            Some(frames.iter().map(|frame| frame.number).collect::<Vec<_>>())
        };
        assert_eq!(numbers(5, 100), None);
        assert_eq!(numbers(6, 100), Some(vec![6, 7, 8]));
        assert_eq!(numbers(6, 20), Some(vec![6, 7]));
        assert_eq!(numbers(8, 0), Some(vec![8]), "one frame at least, however small the limit");
        assert_eq!(recent.frames_from(Position { serial: 1, offset: 650 }, 100), None);
        assert_eq!(recent.frames_from(position(7), 100).unwrap()[0].body[..], [7; 10]);
    }

    #[test]
    fn bodies_larger_than_a_chunk_are_kept_whole() {
        let mut chunk = Chunk::default();
        let body = vec![3; CHUNK_BYTES + 5];
        assert_eq!(chunk.copy(&body), body);
        assert_eq!(chunk.copy(b"x")[..], *b"x");
    }
}
