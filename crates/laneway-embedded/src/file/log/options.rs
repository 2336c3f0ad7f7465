//! Settings of the log: plain data, checked as a whole before anything is opened.

use std::time::Duration;

use super::error::LogError;
use super::header;

/// Smallest segment allowed: room for frames of some tens of kilobytes.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
/// Largest segment allowed: lengths and offsets of a frame stay far from 32 bits.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// When a frame counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// After the disk has confirmed it: survives a power cut.
    Always,
    /// After the operating system has taken it: survives a kill of the process; a power cut may lose the
    /// last moments.
    Os,
}

/// Who prepares and recycles segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upkeep {
    /// A background thread of the log.
    Thread,
    /// Whoever calls [`Log::upkeep`](super::Log::upkeep): for simulations that must repeat exactly.
    Caller,
}

/// Settings of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Length of a segment file, a multiple of 4096. Default 64 MiB.
    pub segment_bytes: u64,
    /// How many zero-filled segments are kept ready, the reserve for a full disk included. Default 3.
    pub spares: usize,
    /// How many ready segments are kept at most when released ones come back; more are deleted. Default 6: what a checkpoint
    /// releases at once is used again, not deleted and then filled with zeros anew.
    pub spares_max: usize,
    /// How many bytes of the newest frames stay in memory for readers. Default 16 MiB.
    pub recent_bytes: usize,
    /// When a frame counts as written. Default `Always`.
    pub sync: SyncMode,
    /// Who prepares and recycles segments. Default `Thread`.
    pub upkeep: Upkeep,
    /// How long the background thread waits before it tries again after a full disk. Default 1 s.
    pub space_retry: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 64 << 20,
            spares: 3,
            spares_max: 6,
            recent_bytes: 16 << 20,
            sync: SyncMode::Always,
            upkeep: Upkeep::Thread,
            space_retry: Duration::from_secs(1),
        }
    }
}

impl Options {
    /// The longest frame body that fits into a segment.
    pub fn body_len_max(&self) -> usize {
        let room = self.segment_bytes - header::BYTES as u64 - super::frame::HEADER_BYTES as u64;
        usize::try_from(room & !7).unwrap_or(usize::MAX)
    }

    /// Checks all settings and names every one that is out of bounds.
    pub(super) fn check(&self) -> Result<(), LogError> {
        let mut wrong = Vec::new();
        let bytes = self.segment_bytes;
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&bytes) || !bytes.is_multiple_of(4096) {
            wrong.push(format!(
                "segment_bytes is {bytes}, must be a multiple of 4096 from {SEGMENT_BYTES_MIN} to {SEGMENT_BYTES_MAX}"
            ));
        }
        if self.spares < 2 {
            wrong.push(format!("spares is {}, must be at least 2 (one of them is the reserve)", self.spares));
        }
        if self.spares_max < self.spares {
            wrong
                .push(format!("spares_max is {}, must be at least spares, {}", self.spares_max, self.spares));
        }
        if wrong.is_empty() { Ok(()) } else { Err(LogError::Options { what: wrong.join("; ") }) }
    }
}
