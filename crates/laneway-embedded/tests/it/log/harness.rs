//! What the log tests share: small options, frames that can be recognised, and the list of what must be there.

use std::path::Path;
use std::sync::Arc;

use laneway_embedded::file::disk::Disk;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::file::log::{
    Frame, FrameBuffer, Log, LogError, LogWriter, Mark, Opened, Options, Replay, Space, Stamp, SyncMode,
    Upkeep,
};

pub(crate) const DIR: &str = "/store";
pub(crate) const LOG_DIR: &str = "/store/log";

/// Small segments, and upkeep only when the test says so.
pub(crate) fn small() -> Options {
    Options {
        segment_bytes: 64 << 10,
        spares: 2,
        spares_max: 3,
        recent_bytes: 16 << 10,
        sync: SyncMode::Always,
        upkeep: Upkeep::Caller,
        ..Options::default()
    }
}

/// Opens the log and answers it with the frames it visited.
pub(crate) fn open(
    disk: &SimulatedDisk,
    options: &Options,
    replay: Replay,
) -> Result<(Opened, Vec<Frame>), LogError> {
    open_in(Arc::new(disk.clone()), Path::new(DIR), options, replay)
}

pub(crate) fn open_in(
    disk: Arc<dyn Disk>,
    dir: &Path,
    options: &Options,
    replay: Replay,
) -> Result<(Opened, Vec<Frame>), LogError> {
    let mut frames = Vec::new();
    let mut keep = |frame| {
        frames.push(frame);
        Ok(())
    };
    let opened = Log::open(disk, dir, options.clone(), replay, &mut keep)?;
    Ok((opened, frames))
}

pub(crate) fn from(mark: Mark) -> Replay {
    Replay { from: Some(mark), must_reach: None }
}

pub(crate) fn stamp(number: u64) -> Stamp {
    Stamp { calendar: number * 3, steady: number * 2 }
}

/// A body that tells its number and cannot be confused with another try at the same number.
pub(crate) fn body(rng: &mut fastrand::Rng, number: u64, len_max: usize) -> Vec<u8> {
    let mut body = number.to_le_bytes().to_vec();
    body.extend(rng.u64(..).to_le_bytes());
    let filler = rng.u8(..);
    body.resize(16 + rng.usize(0..=len_max), filler);
    body
}

pub(crate) fn buffer(body: &[u8]) -> FrameBuffer {
    let mut buffer = FrameBuffer::default();
    buffer.body_mut().extend_from_slice(body);
    buffer
}

/// Writes a body with the stamp of its number.
pub(crate) fn write(writer: &mut LogWriter, body: &[u8], space: Space) -> Result<(), LogError> {
    let number = writer.end().number;
    let position = writer.write(&mut buffer(body), stamp(number), space)?;
    assert_eq!(writer.end().number, number + 1);
    assert_eq!(writer.end().position.serial, position.serial);
    Ok(())
}

/// What was acknowledged, and what may be there without having been.
#[derive(Debug, Default, Clone)]
pub(crate) struct History {
    /// Bodies by frame number, from 1 on.
    pub(crate) bodies: Vec<Vec<u8>>,
    /// The frame whose write answered an error.
    pub(crate) unknown: Option<Vec<u8>>,
}

impl History {
    /// Compares frames from number `first` on with what must be there, and takes over the unknown one if it
    /// is there. Answers what is wrong.
    pub(crate) fn check(&mut self, first: u64, frames: &[Frame]) -> Result<(), String> {
        let skipped = usize::try_from(first - 1).unwrap();
        for (index, frame) in frames.iter().enumerate() {
            let number = first + index as u64;
            if (frame.number, frame.stamp) != (number, stamp(number)) {
                return Err(format!("frame {} with {:?} where {number} belongs", frame.number, frame.stamp));
            }
            let expected = match self.bodies.get(skipped + index) {
                Some(expected) => expected,
                None => self.unknown.as_ref().ok_or(format!("frame {number} was never written"))?,
            };
            if frame.body != *expected {
                return Err(format!("frame {number} has another body"));
            }
            if skipped + index == self.bodies.len() {
                self.bodies.extend(self.unknown.take());
            }
        }
        self.unknown = None;
        let missing = self.bodies.len().saturating_sub(skipped + frames.len());
        if missing == 0 { Ok(()) } else { Err(format!("{missing} acknowledged frames are missing")) }
    }
}

/// All frames a reader finds, from the oldest on.
pub(crate) fn read_all(opened: &Opened) -> Result<Vec<Frame>, LogError> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut position = laneway_embedded::file::log::Position::START;
    loop {
        let batch = opened.reader.frames_from(position, 20_000)?;
        let Some(last) = batch.last() else { return Ok(frames) };
        position = last.end().position;
        frames.extend(batch);
    }
}

/// Runs all upkeep that does not have to wait.
pub(crate) fn upkeep(opened: &Opened) {
    while opened.log.upkeep() {}
}
