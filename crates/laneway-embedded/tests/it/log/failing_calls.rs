//! Every single call of a fixed script fails once, in every way it can fail.

use laneway_embedded::file::disk::simulated::{Fault, SimulatedDisk};
use laneway_embedded::file::log::{LogError, Opened, Replay, Space};

use super::harness::{self, History, body, open, small, upkeep};

#[derive(Debug, Default)]
struct Tally {
    points: u64,
    poisoned: u64,
    full: u64,
    refused: u64,
    violations: Vec<String>,
}

/// Writes over several segments, with upkeep, release, clean close and a second life.
fn script(disk: &SimulatedDisk, history: &mut History, tally: &mut Tally) -> Result<(), LogError> {
    let mut rng = fastrand::Rng::with_seed(5);
    for life in 0..3 {
        let (mut opened, frames) = open(disk, &small(), Replay::default())?;
        let first = opened.log.segments().first().map_or(1, |segment| segment.first_frame);
        history.check(first, &frames).unwrap_or_else(|wrong| tally.violations.push(wrong));
        for step in 0..30 {
            if step % 7 == 3 {
                upkeep(&opened);
            }
            if step == 20 {
                opened.log.release(opened.log.segments()[0].serial);
            }
            let body = body(&mut rng, opened.writer.end().number, 6_000);
            write(disk, &mut opened, body, history, tally)?;
        }
        if life != 1 {
            opened.writer.close()?;
        }
    }
    Ok(())
}

fn write(
    disk: &SimulatedDisk,
    opened: &mut Opened,
    body: Vec<u8>,
    history: &mut History,
    tally: &mut Tally,
) -> Result<(), LogError> {
    let mut result = harness::write(&mut opened.writer, &body, Space::Ordinary);
    if let Err(LogError::Full { .. }) = result {
        // The fault is over, so the space is there again: the log must go on as if nothing had been.
        tally.full += 1;
        opened.log.poke_spares();
        upkeep(opened);
        result = harness::write(&mut opened.writer, &body, Space::Ordinary);
    }
    match result {
        Ok(()) => history.bodies.push(body),
        Err(error @ LogError::Poisoned(_)) => {
            history.unknown = Some(body);
            tally.poisoned += 1;
            check_poisoned(disk, opened, history, tally);
            return Err(error);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// A poisoned writer writes and syncs nothing more, and what was acknowledged stays readable.
fn check_poisoned(disk: &SimulatedDisk, opened: &mut Opened, history: &History, tally: &mut Tally) {
    let before = disk.calls();
    let again = harness::write(&mut opened.writer, b"x", Space::Reserve);
    let message = again.map_or_else(|error| error.to_string(), |()| "accepted".to_owned());
    if !message.contains("check the disk, then restart") {
        tally.violations.push(format!("poisoned writer answered: {message}"));
    }
    upkeep(opened);
    if opened.writer.sync().is_ok() || disk.calls() != before {
        tally.violations.push(format!("calls after the poison: {before:?} {:?}", disk.calls()));
    }
    let first = opened.log.segments().first().map_or(1, |segment| segment.first_frame);
    let mut acknowledged = History { unknown: None, ..history.clone() };
    let read = harness::read_all(opened).map_err(|error| error.to_string());
    if let Err(wrong) = read.and_then(|frames| acknowledged.check(first, &frames)) {
        tally.violations.push(format!("reading after the poison: {wrong}"));
    }
}

/// Opens again without the fault, and once more after a power cut, and compares.
fn aftermath(disk: &SimulatedDisk, history: &mut History, seed: u64) -> Result<(), String> {
    for cut in [false, true] {
        if cut {
            disk.power_cut(&mut fastrand::Rng::with_seed(seed));
        }
        let (mut opened, frames) =
            open(disk, &small(), Replay::default()).map_err(|error| error.to_string())?;
        let first = opened.log.segments().first().map_or(1, |segment| segment.first_frame);
        history.check(first, &frames)?;
        let number = opened.writer.end().number;
        harness::write(&mut opened.writer, &number.to_le_bytes(), Space::Ordinary)
            .map_err(|error| error.to_string())?;
        history.bodies.push(number.to_le_bytes().to_vec());
    }
    Ok(())
}

fn check(fault: Fault) -> Tally {
    let mut tally = Tally::default();
    for n in 1.. {
        let disk = SimulatedDisk::new();
        disk.fail_nth(n, fault);
        let mut history = History::default();
        let outcome = script(&disk, &mut history, &mut tally);
        let happened = disk.clear_faults() == 0;
        if let Err(LogError::Corrupt { .. } | LogError::Newer { .. }) = outcome {
            tally.violations.push(format!("call {n}: {outcome:?}"));
        }
        tally.refused += u64::from(matches!(outcome, Err(LogError::Io { .. })));
        for seed in 0..4 {
            if let Err(wrong) = aftermath(&disk.fork(), &mut history.clone(), seed) {
                tally.violations.push(format!("call {n}, then seed {seed}: {wrong}"));
            }
        }
        if !happened {
            assert!(outcome.is_ok(), "without a fault the script ends: {outcome:?}");
            break;
        }
        tally.points += 1;
    }
    println!(
        "{fault:?}: {} calls failed in turn; {} poisoned, {} full, {} refused to open or close, {} violations",
        tally.points,
        tally.poisoned,
        tally.full,
        tally.refused,
        tally.violations.len()
    );
    assert_eq!(tally.violations, Vec::<String>::new(), "{fault:?}");
    tally
}

#[test]
fn every_write_that_fails_stops_the_writer_and_loses_nothing() {
    let tally = check(Fault::WriteError);
    assert!(tally.points > 100 && tally.poisoned > 80, "{tally:?}");
}

#[test]
fn every_torn_write_stops_the_writer_and_loses_nothing() {
    let tally = check(Fault::TornWrite);
    assert!(tally.points > 90 && tally.poisoned > 80, "{tally:?}");
}

#[test]
fn every_sync_that_fails_stops_the_writer_and_is_never_repeated() {
    let tally = check(Fault::SyncError);
    assert!(tally.points > 90 && tally.poisoned > 80, "{tally:?}");
}

#[test]
fn every_call_that_meets_a_full_disk_leaves_the_log_healthy() {
    let tally = check(Fault::NoSpace);
    assert!(tally.points > 100 && tally.full > 80 && tally.poisoned == 0, "{tally:?}");
}

#[test]
fn every_read_that_fails_is_told_and_changes_nothing() {
    let tally = check(Fault::ReadError);
    assert!(tally.points >= 3 && tally.refused >= 3 && tally.poisoned == 0, "{tally:?}");
}
