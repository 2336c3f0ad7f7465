//! Stretches of frames that were read from files a short while ago.
//!
//! Busy shards share frames, so readers that are about as far as each other want the same stretch one after the other.
//! It is read and verified once. Bounded; the stretch that was read first goes first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::position::{Frame, Position};

#[derive(Debug)]
pub(super) struct Walked {
    limit: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By the place of their first frame.
    stretches: BTreeMap<Position, Arc<[Frame]>>,
    /// In the order they were read.
    order: VecDeque<Position>,
    bytes: usize,
}

impl Walked {
    pub(super) fn new(limit: usize) -> Walked {
        Walked { limit, kept: Mutex::default() }
    }

    /// Frames from exactly this position on, at least one; `None` if the position is in no stretch.
    pub(super) fn frames_from(&self, position: Position) -> Option<Vec<Frame>> {
        let (stretch, start) = self.find(position)?;
        Some(stretch[start..].to_vec())
    }

    /// The frame at exactly this position.
    pub(super) fn frame(&self, position: Position) -> Option<Frame> {
        self.find(position).map(|(stretch, at)| stretch[at].clone())
    }

    fn find(&self, position: Position) -> Option<(Arc<[Frame]>, usize)> {
        let stretch = {
            let kept = self.kept.lock();
            Arc::clone(kept.stretches.range(..=position).next_back()?.1)
        };
        let at = stretch.binary_search_by_key(&position, |frame| frame.position).ok()?;
        Some((stretch, at))
    }

    /// Keeps a stretch that was just read.
    pub(super) fn push(&self, frames: &[Frame]) {
        let (Some(first), bytes) = (frames.first(), bytes_of(frames)) else { return };
        if bytes > self.limit {
            return;
        }
        let mut kept = self.kept.lock();
        match kept.stretches.insert(first.position, Arc::from(frames)) {
            // Two readers came to it at the same time: its place in the order stays.
            Some(before) => kept.bytes -= bytes_of(&before),
            None => kept.order.push_back(first.position),
        }
        kept.bytes += bytes;
        while kept.bytes > self.limit
            && let Some(oldest) = kept.order.pop_front()
            && let Some(frames) = kept.stretches.remove(&oldest)
        {
            kept.bytes -= bytes_of(&frames);
        }
    }
}

fn bytes_of(frames: &[Frame]) -> usize {
    frames.iter().map(|frame| frame.body.len()).sum()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::position::Stamp;
    use super::*;

    /// Frames of ten bytes, a hundred apart.
    fn stretch(numbers: std::ops::Range<u64>) -> Vec<Frame> {
        let frame = |number| Frame {
            position: Position { serial: 1, offset: number * 100 },
            number,
            stamp: Stamp::default(),
            body: Bytes::from(vec![7; 10]),
        };
        numbers.map(frame).collect()
    }

    fn found(walked: &Walked, offset: u64) -> Option<Vec<u64>> {
        let frames = walked.frames_from(Position { serial: 1, offset })?;
        Some(frames.iter().map(|frame| frame.number).collect())
    }

    #[test]
    fn stretch_is_found_from_any_frame_of_it() {
        let walked = Walked::new(1_000);
        walked.push(&stretch(0..3));
        walked.push(&stretch(5..7));
        assert_eq!(found(&walked, 0), Some(vec![0, 1, 2]));
        assert_eq!(found(&walked, 200), Some(vec![2]));
        assert_eq!(found(&walked, 600), Some(vec![6]));
        assert_eq!(found(&walked, 300), None, "between two stretches");
        assert_eq!(found(&walked, 150), None, "no frame begins there");
    }

    #[test]
    fn first_read_goes_first_and_the_bound_is_kept() {
        let walked = Walked::new(50);
        walked.push(&stretch(0..3));
        walked.push(&stretch(0..3));
        walked.push(&stretch(5..7));
        assert_eq!((found(&walked, 0), found(&walked, 500)), (Some(vec![0, 1, 2]), Some(vec![5, 6])));
        walked.push(&stretch(8..9));
        assert_eq!((found(&walked, 0), found(&walked, 500)), (None, Some(vec![5, 6])));
        walked.push(&stretch(20..30));
        assert_eq!(found(&walked, 2_000), None, "larger than all that may be kept");
        assert_eq!(walked.kept.lock().bytes, 30);
    }
}
