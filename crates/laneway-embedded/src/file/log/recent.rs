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
/// Chunks kept for use; in a steady flow one is left for each one begun.
const FREE_CHUNKS_MAX: usize = 2;

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
///
/// Chunks are used again when the window has left them. Fresh memory from the system costs more than the
/// copy itself, because every page of it is a fault on the commit path.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    current: BytesMut,
    free: Vec<BytesMut>,
}

impl Chunks {
    pub(super) fn copy(&mut self, body: &[u8]) -> Bytes {
        if self.current.capacity() < body.len() {
            let reused = if body.len() <= CHUNK_BYTES { self.free.pop() } else { None };
            self.current = reused.unwrap_or_else(|| BytesMut::with_capacity(body.len().max(CHUNK_BYTES)));
        }
        self.current.extend_from_slice(body);
        self.current.split().freeze()
    }

    /// Takes the chunk back if this was the last body in it that anybody holds.
    fn take_back(&mut self, body: Bytes) {
        if self.free.len() < FREE_CHUNKS_MAX
            && let Ok(mut chunk) = body.try_into_mut()
        {
            chunk.clear();
            if chunk.try_reclaim(CHUNK_BYTES) {
                self.free.push(chunk);
            }
        }
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
    pub(super) fn push(&self, frame: Frame, chunks: &mut Chunks) {
        let mut window = self.window.write();
        window.bytes += frame.body.len();
        window.frames.push_back(frame);
        while window.bytes > self.limit {
            let Some(oldest) = window.frames.pop_front() else { break };
            window.bytes -= oldest.body.len();
            chunks.take_back(oldest.body);
        }
    }

    /// Forgets everything: the next frame will not follow the ones kept.
    pub(super) fn clear(&self) {
        *self.window.write() = Window::default();
    }

    /// The frame at exactly this position.
    pub(super) fn frame(&self, position: Position) -> Option<Frame> {
        let window = self.window.read();
        let at = window.frames.binary_search_by_key(&position, |frame| frame.position).ok()?;
        Some(window.frames[at].clone())
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
        let mut chunks = Chunks::default();
        for number in 0..frames {
            let body = chunks.copy(&[u8::try_from(number).unwrap(); 10]);
            recent.push(
                Frame { position: position(number), number, stamp: Stamp::default(), body },
                &mut chunks,
            );
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
        let mut chunks = Chunks::default();
        let body = vec![3; CHUNK_BYTES + 5];
        assert_eq!(chunks.copy(&body), body);
        assert_eq!(chunks.copy(b"x")[..], *b"x");
    }
    #[test]
    fn chunks_are_used_again_unless_somebody_holds_a_body() {
        let recent = Recent::new(4 << 20);
        let mut chunks = Chunks::default();
        let mut held = None;
        let mut places = std::collections::BTreeSet::new();
        for number in 0..400 {
            let body = chunks.copy(&vec![u8::try_from(number % 251).unwrap(); 100_000]);
            places.insert(body.as_ptr() as usize);
            if number == 60 {
                held = Some(body.clone());
            }
            recent.push(
                Frame { position: position(number), number, stamp: Stamp::default(), body },
                &mut chunks,
            );
        }
        assert_eq!(held.unwrap(), vec![60; 100_000], "a body somebody holds never changes");
        assert!(places.len() < 120, "{} places for 400 bodies", places.len());
        for frame in recent.frames_from(position(370), usize::MAX).unwrap() {
            assert_eq!(frame.body, vec![u8::try_from(frame.number % 251).unwrap(); 100_000]);
        }
    }
}
