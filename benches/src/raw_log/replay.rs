//! Scanning a raw log from its first byte to its last: what a start costs when nothing else is kept.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::writer::FRAME_HEAD;
use crate::Failure;

/// How much of a file is read at a time.
const READ_BYTES: usize = 1 << 20;

/// What a scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub(crate) frames: u64,
    pub(crate) body_bytes: u64,
}

/// Reads every frame of every file and verifies its checksum.
pub(crate) fn replay(dir: &Path) -> Result<Replayed, Failure> {
    let names = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
    let mut paths = names.collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    paths.sort();
    let mut found = Replayed::default();
    for path in paths {
        scan(&File::open(path)?, &mut found)?;
    }
    Ok(found)
}

fn scan(file: &File, found: &mut Replayed) -> Result<(), Failure> {
    let (mut buffer, mut read_to) = (Vec::new(), 0);
    loop {
        // What is left of the bytes read last stays in front of the next ones.
        let mut at = 0;
        while let Some(body) = whole_frame(&buffer[at..])? {
            at += FRAME_HEAD + body;
            found.frames += 1;
            found.body_bytes += body as u64;
        }
        if buffer[at..].first_chunk::<4>().is_some_and(|length| *length == [0; 4]) {
            return Ok(());
        }
        buffer.drain(..at);
        let kept = buffer.len();
        buffer.resize(kept + READ_BYTES, 0);
        let count = file.read_at(&mut buffer[kept..], read_to)?;
        buffer.truncate(kept + count);
        read_to += count as u64;
        if count == 0 {
            return Ok(());
        }
    }
}

/// Body length of the frame at the start of the bytes; `None` where zeros begin or more bytes are needed.
fn whole_frame(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(head) = bytes.first_chunk::<FRAME_HEAD>() else { return Ok(None) };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let body = word(0) as usize;
    let Some(frame) = bytes.get(..FRAME_HEAD + body).filter(|_| body > 0) else { return Ok(None) };
    if crc32fast::hash(&frame[8..]) != word(4) {
        return Err("a frame of the raw log does not match its checksum".into());
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use super::super::{RawLog, RawOptions, RawRecords};
    use super::*;
    use crate::seam;

    #[test]
    fn everything_acknowledged_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let log = RawLog::create(folder.path(), RawOptions::default()).unwrap();
        let runtime = seam::runtime().unwrap();
        for len in [1, 100, READ_BYTES + 7, 3] {
            runtime.block_on(log.append(RawRecords::Ends(vec![5; len]))).unwrap();
        }
        drop(log);
        let expected = Replayed { frames: 4, body_bytes: (READ_BYTES + 111) as u64 };
        assert_eq!(replay(folder.path()).unwrap(), expected);
        let first = folder.path().join(format!("{:020}.raw", 1));
        File::options().write(true).open(first).unwrap().write_all_at(&[6], FRAME_HEAD as u64).unwrap();
        assert!(replay(folder.path()).is_err());
    }
}
