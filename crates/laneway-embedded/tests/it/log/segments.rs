//! Rotation, spares, recycling and leftovers, on the simulated and on the real disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use laneway_embedded::file::disk::simulated::{Fault, SimulatedDisk};
use laneway_embedded::file::disk::{Disk, RealDisk};
use laneway_embedded::file::log::{LogError, Options, Replay, Space, Upkeep};

use super::harness::{self, DIR, History, LOG_DIR, body, buffer, open, open_in, small, stamp, upkeep};

#[test]
fn growing_first_segment_gives_way_to_a_prepared_one_and_is_deleted() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    harness::write(&mut opened.writer, b"first", Space::Ordinary).unwrap();
    assert!(opened.log.segments()[0].file_bytes < 8192, "opening fills nothing with zeros");
    upkeep(&opened);
    harness::write(&mut opened.writer, b"second", Space::Ordinary).unwrap();
    let segments = opened.log.segments();
    assert_eq!(segments.len(), 2);
    assert_eq!((segments[0].sealed, segments[1].sealed, segments[1].file_bytes), (true, false, 64 << 10));
    upkeep(&opened);
    let ready = opened.log.spares().ready;
    opened.log.release(1);
    upkeep(&opened);
    assert_eq!(opened.log.segments().len(), 1);
    assert_eq!(opened.log.spares().ready, ready, "a short file is not used again");
    assert!(!disk.exists(&PathBuf::from(LOG_DIR).join("00000000000000000001.seg")).unwrap());
}

#[test]
fn writing_costs_one_write_and_one_sync_per_frame() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    upkeep(&opened);
    harness::write(&mut opened.writer, b"first", Space::Ordinary).unwrap();
    let before = disk.calls();
    for _ in 0..50 {
        harness::write(&mut opened.writer, b"body", Space::Ordinary).unwrap();
    }
    let after = disk.calls();
    assert_eq!(
        (after.writes - before.writes, after.syncs - before.syncs, after.dir_syncs),
        (50, 50, before.dir_syncs)
    );
    assert_eq!(after.reads, before.reads);
}

#[test]
fn recycled_files_never_show_their_old_frames() {
    let disk = SimulatedDisk::new();
    let mut rng = fastrand::Rng::with_seed(4);
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    let mut history = History::default();
    let creates = |disk: &SimulatedDisk| disk.calls().creates;
    let mut settled = 0;
    for number in 1..=600 {
        upkeep(&opened);
        if number == 200 {
            settled = creates(&disk);
        }
        let body = body(&mut rng, number, 3_000);
        harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
        history.bodies.push(body);
        let current = opened.writer.end().position.serial;
        for segment in opened.log.segments().iter().filter(|segment| segment.serial + 1 < current) {
            opened.log.release(segment.serial);
        }
        if number % 50 == 0 {
            // A crash here leaves a segment that begins with new frames and goes on with old ones.
            let copy = disk.fork();
            let (reopened, frames) = open(&copy, &small(), Replay::default()).unwrap();
            history.check(frames[0].number, &frames).unwrap();
            assert_eq!(reopened.recovered.cut, None, "old frames are not a torn tail");
        }
    }
    assert_eq!(creates(&disk), settled, "released files are used again");
    assert!(opened.log.spares().ready <= small().spares_max);
}

#[test]
fn empty_segments_and_leftovers_do_not_stop_recovery() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    upkeep(&opened);
    let mut history = History::default();
    for _ in 0..3 {
        // A segment is begun (header, name), and its first frame is never written.
        disk.fail_nth(3, Fault::WriteError);
        harness::write(&mut opened.writer, b"lost", Space::Ordinary).unwrap_err();
        opened = open(&disk, &small(), Replay::default()).unwrap().0;
        upkeep(&opened);
    }
    assert!(opened.log.segments().iter().all(|segment| segment.end == 4096));
    let before = opened.log.segments().len();
    assert!(before >= 2);
    let half = disk.create(&PathBuf::from(LOG_DIR).join("00000000000000000777.tmp")).unwrap();
    half.write_at(&[0; 1000], 0).unwrap();
    disk.create(&PathBuf::from(LOG_DIR).join("00000000000000000778.spare")).unwrap();
    drop(opened);
    opened = open(&disk, &small(), Replay::default()).unwrap().0;
    upkeep(&opened);
    harness::write(&mut opened.writer, b"kept", Space::Ordinary).unwrap();
    history.bodies.push(b"kept".to_vec());
    let names = disk.list(Path::new(LOG_DIR)).unwrap();
    assert!(!names.iter().any(|name| name.contains("77")), "{names:?}");
    assert_eq!(opened.log.segments().len(), before + 1);
    drop(opened);
    let (opened, frames) = open(&disk, &small(), Replay::default()).unwrap();
    history.check(1, &frames).unwrap();
    assert_eq!(harness::read_all(&opened).unwrap(), frames);
}

#[test]
fn opening_and_closing_without_writing_changes_nothing() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    harness::write(&mut opened.writer, b"body", Space::Ordinary).unwrap();
    opened.writer.close().unwrap();
    let before = (disk.contents(), disk.calls());
    for _ in 0..3 {
        let (opened, frames) = open(&disk, &small(), Replay::default()).unwrap();
        assert!(opened.recovered.clean && frames.len() == 1);
        opened.writer.close().unwrap();
    }
    let mut calls = disk.calls();
    calls.reads = before.1.reads;
    assert_eq!((disk.contents(), calls), before);
    let mark = PathBuf::from(LOG_DIR).join("CLOSED");
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    assert!(disk.exists(&mark).unwrap());
    harness::write(&mut opened.writer, b"body", Space::Ordinary).unwrap();
    assert!(!disk.exists(&mark).unwrap(), "the mark goes with the first write");
}

#[test]
fn every_removal_is_durable_before_the_next_one() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    for _ in 0..100 {
        upkeep(&opened);
        harness::write(&mut opened.writer, &[1; 5_000], Space::Ordinary).unwrap();
    }
    upkeep(&opened);
    let segments = opened.log.segments();
    assert!(segments.len() > 4);
    // Released in the wrong order on purpose: the oldest still goes first.
    for segment in segments.iter().rev() {
        opened.log.release(segment.serial);
    }
    for segment in &segments[..segments.len() - 1] {
        assert_eq!(opened.log.segments()[0].serial, segment.serial);
        let before = disk.calls();
        assert!(opened.log.upkeep());
        let after = disk.calls();
        assert_eq!(after.renames + after.removes, before.renames + before.removes + 1);
        assert_eq!(after.dir_syncs, before.dir_syncs + 1);
    }
    assert!(!opened.log.upkeep());
    assert_eq!(opened.log.spares().ready, small().spares_max);
}

#[test]
fn frame_larger_than_a_segment_is_refused_with_size_and_limit() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    let limit = opened.log.body_len_max();
    assert_eq!(limit, (64 << 10) - 4096 - 40);
    let error = opened.writer.write(&mut buffer(&vec![1; limit + 1]), stamp(1), Space::Ordinary).unwrap_err();
    assert!(
        error.to_string().contains(&(limit + 1).to_string())
            && error.to_string().contains(&limit.to_string())
    );
    for _ in 0..3 {
        harness::write(&mut opened.writer, &vec![1; limit], Space::Ordinary).unwrap();
    }
    let frames = harness::read_all(&opened).unwrap();
    assert_eq!(frames.iter().map(|frame| frame.body.len()).collect::<Vec<_>>(), [limit; 3]);
}

#[test]
fn wrong_options_are_named_all_at_once() {
    let options = Options { segment_bytes: 5000, spares: 1, spares_max: 0, ..small() };
    let error = open(&SimulatedDisk::new(), &options, Replay::default()).unwrap_err().to_string();
    assert!(
        ["segment_bytes is 5000", "spares is 1", "spares_max is 0"].iter().all(|part| error.contains(part)),
        "{error}"
    );
}

#[test]
fn newest_segment_stays_until_there_is_a_newer_one() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    harness::write(&mut opened.writer, b"one", Space::Ordinary).unwrap();
    drop(opened);
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    opened.log.release(1);
    upkeep(&opened);
    assert_eq!(opened.log.segments().len(), 1);
    harness::write(&mut opened.writer, b"two", Space::Ordinary).unwrap();
    upkeep(&opened);
    assert_eq!(opened.log.segments()[0].serial, 2);
    let error =
        opened.reader.frames_from(laneway_embedded::file::log::Position { serial: 1, offset: 4096 }, 10);
    assert!(matches!(error, Err(LogError::Released { serial: 1, oldest: 2 })), "{error:?}");
    drop(opened);
    let (_, frames) = open(&disk, &small(), Replay::default()).unwrap();
    assert_eq!(frames[0].number, 2, "numbers go on");
}

#[test]
fn real_disk_with_background_upkeep_keeps_everything_over_restarts() {
    let temp = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let options = Options { segment_bytes: 256 << 10, upkeep: Upkeep::Thread, ..small() };
    let mut rng = fastrand::Rng::with_seed(6);
    let mut history = History::default();
    for life in 0..4 {
        let (mut opened, frames) =
            open_in(Arc::clone(&disk), temp.path(), &options, Replay::default()).unwrap();
        let first = opened.log.segments().first().map_or(1, |segment| segment.first_frame);
        history.check(first, &frames).unwrap();
        assert_eq!(opened.recovered.clean, life % 2 == 0);
        for round in 0..150 {
            let body = body(&mut rng, opened.writer.end().number, 10_000);
            harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
            history.bodies.push(body);
            if round == 50 {
                assert!(opened.log.wait_upkeep(Duration::from_secs(60)));
            }
        }
        let oldest = opened.log.segments()[0].serial;
        opened.log.release(oldest);
        assert!(opened.log.wait_upkeep(Duration::from_secs(60)));
        assert!(opened.log.segments()[0].serial > oldest);
        assert!(opened.log.spares().ready >= 2);
        let read = harness::read_all(&opened).unwrap();
        history.check(read[0].number, &read).unwrap();
        if life % 2 == 1 {
            opened.writer.close().unwrap();
        }
    }
}

#[test]
fn store_id_stays_the_same() {
    let disk = SimulatedDisk::new();
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    let id = opened.log.store_id();
    harness::write(&mut opened.writer, b"body", Space::Ordinary).unwrap();
    drop(opened);
    assert_eq!(open(&disk, &small(), Replay::default()).unwrap().0.log.store_id(), id);
    assert!(disk.contents().keys().all(|path| path.starts_with(DIR)));
}
