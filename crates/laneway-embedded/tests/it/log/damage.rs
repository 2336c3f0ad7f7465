//! Bit flips and truncations in every file after a clean close: loud or harmless, never a shorter history.

use std::path::PathBuf;

use laneway_embedded::file::disk::Disk;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::file::log::{Frame, LogError, Mark, Position, Replay, Space};

use super::harness::{self, LOG_DIR, body, open, small, upkeep};

/// A log of several segments, some of them recycled, closed in order; its frames, and a mark in its middle.
fn closed_log() -> (SimulatedDisk, Vec<Frame>, Mark) {
    let disk = SimulatedDisk::new();
    let mut rng = fastrand::Rng::with_seed(11);
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    let mut middle = Mark::START;
    for number in 1..=160 {
        upkeep(&opened);
        if number == 60 {
            for segment in opened.log.segments() {
                opened.log.release(segment.serial);
            }
        }
        if number == 110 {
            middle = opened.writer.end();
        }
        let body = body(&mut rng, number, 4_000);
        harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
    }
    let frames = harness::read_all(&opened).unwrap();
    assert!(frames[0].number > 1 && opened.log.segments().len() > 2);
    opened.writer.close().unwrap();
    (disk, frames, middle)
}

/// Opens a damaged disk and reads everything; `Ok` only if it is all there.
fn survive(disk: &SimulatedDisk, frames: &[Frame], from: Option<Mark>) -> Result<(), LogError> {
    let (opened, visited) = open(disk, &small(), Replay { from, must_reach: None })?;
    let expected: Vec<_> =
        frames.iter().filter(|frame| from.is_none_or(|mark| frame.number >= mark.number)).cloned().collect();
    assert_eq!(visited, expected, "visited something else without a word");
    let read = harness::read_all(&opened)?;
    assert_eq!(read, frames, "read something else without a word");
    Ok(())
}

#[test]
fn bit_flips_and_truncations_are_loud_or_harmless() {
    let (disk, frames, middle) = closed_log();
    let files: Vec<(PathBuf, usize)> =
        disk.contents().into_iter().map(|(path, bytes)| (path, bytes.len())).collect();
    let mut rng = fastrand::Rng::with_seed(12);
    let (mut loud, mut harmless) = (0, 0);
    for round in 0..1000 {
        let damaged = disk.fork();
        // Every other round aims at the file's first bytes, where the headers are.
        let (path, len) = &files[rng.usize(0..files.len())];
        let reach = if round % 2 == 0 { *len } else { (*len).min(8192) };
        let at = rng.usize(0..reach);
        damaged
            .damage(path, |bytes| {
                if round % 5 == 0 {
                    bytes.truncate(at);
                } else {
                    bytes[at] ^= 1 << rng.u8(0..8);
                }
            })
            .unwrap();
        let from = (round % 3 == 0).then_some(middle);
        match survive(&damaged, &frames, from) {
            Ok(()) => harmless += 1,
            Err(LogError::Corrupt { .. } | LogError::Newer { .. }) => loud += 1,
            Err(error) => panic!("round {round}, {} at {at}: {error}", path.display()),
        }
    }
    println!(
        "{} bit flips and truncations: {loud} loud, {harmless} harmless, 0 silently shorter",
        loud + harmless
    );
    assert!(loud > 300 && harmless > 50, "{loud} {harmless}");
}

#[test]
fn every_damaged_frame_is_refused_by_file_and_offset() {
    let (disk, frames, _) = closed_log();
    for frame in &frames {
        let damaged = disk.fork();
        let path = PathBuf::from(LOG_DIR).join(format!("{:020}.seg", frame.position.serial));
        let at = usize::try_from(frame.position.offset).unwrap() + 50;
        damaged.damage(&path, |bytes| bytes[at] ^= 1).unwrap();
        match survive(&damaged, &frames, None) {
            Err(LogError::Corrupt { file, offset, .. }) => {
                assert_eq!((file, offset), (path, frame.position.offset))
            }
            other => panic!("frame {}: {other:?}", frame.number),
        }
    }
}

#[test]
fn missing_segment_is_refused() {
    let (disk, frames, _) = closed_log();
    let serials: Vec<u64> = (frames[0].position.serial..=frames.last().unwrap().position.serial).collect();
    assert!(serials.len() > 2);
    for serial in &serials[1..] {
        let damaged = disk.fork();
        damaged.remove(&PathBuf::from(LOG_DIR).join(format!("{serial:020}.seg"))).unwrap();
        let result = open(&damaged, &small(), Replay::default());
        assert!(matches!(result, Err(LogError::Corrupt { .. })), "segment {serial}: {result:?}");
    }
    // The oldest one may have been released; whoever needs it says so.
    let damaged = disk.fork();
    damaged.remove(&PathBuf::from(LOG_DIR).join(format!("{:020}.seg", serials[0]))).unwrap();
    let from = Mark { position: frames[0].position, number: frames[0].number };
    assert!(matches!(open(&damaged, &small(), harness::from(from)), Err(LogError::Corrupt { .. })));
}

#[test]
fn log_that_ends_before_a_checkpoint_is_refused() {
    let (disk, frames, _) = closed_log();
    let last = frames.last().unwrap();
    let end = last.end().position;
    disk.remove(&PathBuf::from(LOG_DIR).join("CLOSED")).unwrap();
    let path = PathBuf::from(LOG_DIR).join(format!("{:020}.seg", end.serial));
    disk.damage(&path, |bytes| bytes[usize::try_from(last.position.offset).unwrap()] ^= 4).unwrap();
    let must_reach = |position| Replay { from: None, must_reach: Some(position) };
    let (opened, visited) = open(&disk, &small(), must_reach(last.position)).unwrap();
    assert_eq!(visited.len(), frames.len() - 1, "without a mark this is a torn tail");
    assert_eq!(opened.recovered.cut.map(|cut| (cut.file, cut.offset)), Some((path, last.position.offset)));
    let error = open(&disk, &small(), must_reach(end)).unwrap_err();
    assert!(matches!(error, LogError::Corrupt { .. }) && error.to_string().contains("checkpoint"), "{error}");
}

#[test]
fn bad_frame_before_a_good_one_is_corruption_also_without_a_clean_close() {
    let (disk, frames, _) = closed_log();
    disk.remove(&PathBuf::from(LOG_DIR).join("CLOSED")).unwrap();
    let last = frames.last().unwrap();
    let before = &frames[frames.len() - 2];
    assert_eq!(before.position.serial, last.position.serial);
    let path = PathBuf::from(LOG_DIR).join(format!("{:020}.seg", last.position.serial));
    for at in [0, 4, 8, 16, 30, 45] {
        let damaged = disk.fork();
        damaged
            .damage(&path, |bytes| bytes[usize::try_from(before.position.offset).unwrap() + at] ^= 1)
            .unwrap();
        let error = open(&damaged, &small(), Replay::default()).unwrap_err();
        assert!(error.to_string().contains(&format!("at offset {}", before.position.offset)), "{error}");
    }
}

#[test]
fn newer_format_is_refused_clearly() {
    let (disk, frames, _) = closed_log();
    let path = PathBuf::from(LOG_DIR).join(format!("{:020}.seg", frames[0].position.serial));
    disk.damage(&path, |bytes| bytes[8] = 3).unwrap();
    let error = open(&disk, &small(), Replay::default()).unwrap_err();
    assert!(matches!(error, LogError::Newer { found: 3, supported: 1, .. }));
    assert!(error.to_string().contains("format version 3 is newer than 1"), "{error}");
}

#[test]
fn segment_of_another_store_is_refused() {
    let (disk, frames, _) = closed_log();
    let (other, _, _) = closed_log();
    let path = PathBuf::from(LOG_DIR).join(format!("{:020}.seg", frames.last().unwrap().position.serial));
    let foreign = other.contents()[&path].clone();
    disk.damage(&path, |bytes| *bytes = foreign).unwrap();
    let error = open(&disk, &small(), Replay::default()).unwrap_err();
    assert!(error.to_string().contains("another store"), "{error}");
}

#[test]
fn position_inside_a_frame_is_not_taken_for_a_frame() {
    let (disk, frames, _) = closed_log();
    let (opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    let frame = &frames[3];
    assert_eq!(opened.reader.read_at(frame.position, 1).unwrap(), *frame);
    let inside = Position { offset: frame.position.offset + 8, ..frame.position };
    assert!(matches!(opened.reader.read_at(inside, 1), Err(LogError::Corrupt { .. })));
}
