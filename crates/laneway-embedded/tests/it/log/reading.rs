//! Readers beside the writer.

use laneway_embedded::file::disk::simulated::{Fault, SimulatedDisk};
use laneway_embedded::file::log::{LogError, Options, Position, Replay, Space, Upkeep};

use super::harness::{self, History, body, open, small};

#[test]
fn fresh_frames_are_read_without_touching_the_disk() {
    let disk = SimulatedDisk::new();
    let options = Options { recent_bytes: 1 << 20, ..small() };
    let (mut opened, _) = open(&disk, &options, Replay::default()).unwrap();
    let mut rng = fastrand::Rng::with_seed(8);
    let mut history = History::default();
    for number in 1..=200 {
        let body = body(&mut rng, number, 2_000);
        harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
        history.bodies.push(body);
    }
    assert!(opened.log.segments().len() > 2);
    let before = disk.calls();
    let frames = harness::read_all(&opened).unwrap();
    history.check(1, &frames).unwrap();
    assert_eq!(disk.calls(), before);
    for frame in &frames {
        assert_eq!(opened.reader.read_at(frame.position, 1).unwrap(), *frame);
    }
    assert_eq!(opened.reader.frames_from(opened.reader.end().position, 1000).unwrap(), []);
}

#[test]
fn old_frames_come_from_their_files_in_few_reads() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    for _ in 0..200 {
        harness::write(&mut opened.writer, &[5; 1000], Space::Ordinary).unwrap();
    }
    let before = disk.calls().reads;
    let frames = opened.reader.frames_from(Position::START, 40_000).unwrap();
    assert!((30..=40).contains(&frames.len()), "{}", frames.len());
    assert_eq!(disk.calls().reads - before, 1);
    let one = opened.reader.frames_from(frames[3].position, 1).unwrap();
    assert_eq!(one, frames[3..4], "one frame at least");
}

#[test]
fn frame_too_large_for_memory_is_read_from_its_file_and_nothing_is_skipped() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) =
        open(&disk, &Options { recent_bytes: 5_000, ..small() }, Replay::default()).unwrap();
    let mut history = History::default();
    for len in [10, 20_000, 30, 6_000, 40] {
        let body = vec![7; len];
        harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
        history.bodies.push(body);
        let frames = harness::read_all(&opened).unwrap();
        history.check(1, &frames).unwrap();
    }
}

#[test]
fn read_error_is_told_and_the_next_read_works() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &Options { recent_bytes: 0, ..small() }, Replay::default()).unwrap();
    harness::write(&mut opened.writer, b"body", Space::Ordinary).unwrap();
    disk.fail_nth(1, Fault::ReadError);
    assert!(matches!(opened.reader.frames_from(Position::START, 10), Err(LogError::Io { .. })));
    assert_eq!(opened.reader.frames_from(Position::START, 10).unwrap().len(), 1);
}

#[test]
fn readers_follow_the_writer_over_rotation_and_release() {
    let disk = SimulatedDisk::new();
    let options = Options { upkeep: Upkeep::Thread, ..small() };
    let (mut opened, _) = open(&disk, &options, Replay::default()).unwrap();
    const FRAMES: u64 = 3_000;
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (reader, log, done) = (opened.reader.clone(), opened.log.clone(), &done);
                scope.spawn(move || follow(&reader, &log, done, FRAMES))
            })
            .collect();
        let mut rng = fastrand::Rng::with_seed(9);
        for number in 1..=FRAMES {
            let body = body(&mut rng, number, 1_000);
            harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
            let current = opened.writer.end().position.serial;
            if number % 100 == 0 && current > 6 {
                opened.log.release(current - 5);
                for segment in opened.log.segments().iter().filter(|segment| segment.serial + 5 < current) {
                    opened.log.release(segment.serial);
                }
            }
        }
        done.store(true, std::sync::atomic::Ordering::Release);
        let seen: Vec<u64> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        println!("readers saw {seen:?} of {FRAMES} frames, the others were released before");
    });
}

/// Reads to the end; answers how many frames it saw. Starts over at the oldest segment when it fell behind.
fn follow(
    reader: &laneway_embedded::file::log::LogReader,
    log: &laneway_embedded::file::log::Log,
    done: &std::sync::atomic::AtomicBool,
    frames: u64,
) -> u64 {
    let (mut position, mut next, mut seen) = (Position::START, 1, 0);
    loop {
        let finished = done.load(std::sync::atomic::Ordering::Acquire);
        match reader.frames_from(position, 8_000) {
            Ok(batch) => {
                for frame in &batch {
                    let jumped = position == Position::START && frame.number > next;
                    assert!(frame.number == next || jumped, "frame {} where {next} belongs", frame.number);
                    assert_eq!(frame.body[..8], frame.number.to_le_bytes());
                    (next, position) = (frame.number + 1, frame.end().position);
                    seen += 1;
                }
                if batch.is_empty() && finished {
                    assert_eq!(next, frames + 1, "segments {:?}", log.segments());
                    return seen;
                }
            }
            Err(LogError::Released { .. }) => position = Position::START,
            Err(error) => panic!("{error}"),
        }
    }
}
