//! Reading the log: from any frame on, up to what is durable.
//!
//! The newest frames come from memory, older ones from their files, verified whenever they are read from there. Never
//! reads what the writer has not published, and works on after the writer was poisoned.

use std::sync::Arc;

use super::error::{LogError, io_error};
use super::header;
use super::open::Shared;
use super::position::{Frame, Mark, Position};
use super::scan::read_batch;
use super::segment::Segment;

/// Reads frames; cheap to clone and usable from many threads.
#[derive(Debug, Clone)]
pub struct LogReader {
    shared: Arc<Shared>,
}

impl LogReader {
    pub(super) fn new(shared: Arc<Shared>) -> LogReader {
        LogReader { shared }
    }

    /// The end of what can be read now.
    pub fn end(&self) -> Mark {
        *self.shared.end.lock()
    }

    /// Frames from `position` on, in order, about `max_bytes` of them.
    ///
    /// Answers at least one frame unless `position` is the end, then none. The answer may stop at the end
    /// of a segment: go on from [`Frame::end`] of the last frame.
    pub fn frames_from(&self, position: Position, max_bytes: usize) -> Result<Vec<Frame>, LogError> {
        let Some((segment, position, end)) = self.locate(position)? else { return Ok(Vec::new()) };
        if let Some(frames) = self.shared.recent.frames_from(position, max_bytes) {
            return Ok(frames);
        }
        if let Some(frames) = self.shared.walked.frames_from(position) {
            return Ok(frames);
        }
        self.read_file(&segment, position, end, max_bytes)
    }

    /// The frame that begins at `position`, if it is one of the newest or was read a short while ago.
    pub fn frame_in_memory(&self, position: Position) -> Option<Frame> {
        self.shared.recent.frame(position).or_else(|| self.shared.walked.frame(position))
    }

    /// The frame that begins at `position`. What is read with it, about `max_bytes`, stays in memory for a while.
    pub fn read_at(&self, position: Position, max_bytes: usize) -> Result<Frame, LogError> {
        if let Some(frame) = self.frame_in_memory(position) {
            return Ok(frame);
        }
        let found = self.locate(position)?.filter(|(_, found, _)| *found == position);
        let Some((segment, position, end)) = found else {
            return Err(LogError::Corrupt {
                file: self.shared.table.path(position.serial),
                offset: position.offset,
                what: "no frame begins here: the log or the segment ends before".to_owned(),
            });
        };
        let mut frames = self.read_file(&segment, position, end, max_bytes)?;
        Ok(frames.swap_remove(0))
    }

    /// The segment that holds the frame at `position` and how far it may be read; `None` at the end of the
    /// log. The end of a sealed segment is the start of the next one.
    fn locate(&self, mut position: Position) -> Result<Option<(Arc<Segment>, Position, u64)>, LogError> {
        let table = &self.shared.table;
        let mut segment = if position == Position::START {
            let Some(first) = table.first() else { return Ok(None) };
            position = start_of(&first);
            first
        } else {
            table.get(position.serial).ok_or_else(|| table.released_error(position.serial))?
        };
        loop {
            let sealed = segment.is_sealed();
            let end = segment.end();
            if position.offset < end {
                return Ok(Some((segment, position, end)));
            }
            if position.offset > end {
                return Err(LogError::Corrupt {
                    file: table.path(position.serial),
                    offset: position.offset,
                    what: format!("asked for a frame behind the end of the segment, {end}"),
                });
            }
            let Some(next) = sealed.then(|| table.next(position.serial)).flatten() else { return Ok(None) };
            // The one that follows may have been released meanwhile, and then its frames must not be skipped.
            if next.key.serial != position.serial + 1 {
                return Err(table.released_error(position.serial + 1));
            }
            position = start_of(&next);
            segment = next;
        }
    }

    fn read_file(
        &self,
        segment: &Segment,
        position: Position,
        end: u64,
        max_bytes: usize,
    ) -> Result<Vec<Frame>, LogError> {
        let table = &self.shared.table;
        let file = table.file(position.serial)?;
        let path = table.path(position.serial);
        let batch = read_batch(file.as_ref(), segment.key, position.offset, end, max_bytes)
            .map_err(io_error("read", &path))?;
        // A bad frame behind good ones is told by the next call, which begins with it.
        if !batch.frames.is_empty() {
            self.shared.walked.push(&batch.frames);
            return Ok(batch.frames);
        }
        // Bytes of a segment that was recycled during the read belong to another life of the file.
        if table.get(position.serial).is_none() {
            return Err(table.released_error(position.serial));
        }
        let what = format!("frame is not valid ({:?}) although it was acknowledged", batch.stop);
        Err(LogError::Corrupt { file: path, offset: batch.offset, what })
    }
}

fn start_of(segment: &Segment) -> Position {
    Position { serial: segment.key.serial, offset: header::BYTES as u64 }
}
