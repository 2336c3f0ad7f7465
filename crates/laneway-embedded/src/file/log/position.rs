//! Places and times in the log, and a frame read back from it.

use bytes::Bytes;

use super::error::LogError;
use super::frame;
use super::segment;

/// Where a frame begins: segment serial and byte offset in its file. Ordered as the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Serial of the segment; the first one is 1.
    pub serial: u64,
    /// Offset in the segment's file.
    pub offset: u64,
}

impl Position {
    /// Before the first frame: reading from here begins with the oldest segment still kept.
    pub const START: Position = Position { serial: 0, offset: 0 };
}

/// A place between two frames together with the number of the frame that comes next.
///
/// What a checkpoint remembers, because a place alone does not tell how many frames came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Where the next frame begins, or the end of a segment.
    pub position: Position,
    /// The number of the next frame; the first frame of a log is 1.
    pub number: u64,
}

impl Mark {
    /// The mark of a log without frames.
    pub const START: Mark = Mark { position: Position::START, number: 1 };
}

/// The two clocks of a frame, as the caller gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Microseconds since 1970 of the calendar clock.
    pub calendar: u64,
    /// Microseconds of the steady clock.
    pub steady: u64,
}

/// A frame whose serial, number and checksum have been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Where it begins.
    pub position: Position,
    /// Its number, consecutive over the whole log.
    pub number: u64,
    /// Its clocks.
    pub stamp: Stamp,
    /// What the caller wrote.
    pub body: Bytes,
}

impl Frame {
    /// The place after this frame.
    pub fn end(&self) -> Mark {
        let offset = self.position.offset + frame::total_len(self.body.len()) as u64;
        Mark { position: Position { offset, ..self.position }, number: self.number + 1 }
    }

    /// The error of a caller that finds the body of a valid frame senseless, `at` bytes into the body.
    pub fn corrupt(&self, at: usize, what: impl Into<String>) -> LogError {
        LogError::Corrupt {
            file: segment::file_name(self.position.serial).into(),
            offset: self.position.offset + (frame::HEADER_BYTES + at) as u64,
            what: what.into(),
        }
    }
}
