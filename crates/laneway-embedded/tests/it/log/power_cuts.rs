//! Power cuts at random calls, again and again on one disk, also during recovery.

use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::file::log::{LogError, Mark, Opened, Options, Replay, Space, SyncMode};

use super::harness::{self, History, body, from, open, small, upkeep};

#[derive(Debug, Default)]
struct Tally {
    cuts: u64,
    acknowledged: u64,
    unknown_kept: u64,
    torn: u64,
    interrupted_recoveries: u64,
    clean_closes: u64,
    released: u64,
    violations: Vec<String>,
}

/// One disk, many lives.
struct Life<'a> {
    rng: fastrand::Rng,
    disk: SimulatedDisk,
    options: Options,
    history: History,
    /// Where a checkpoint would let replay begin, and how far the log must reach.
    checkpoint: Mark,
    tally: &'a mut Tally,
}

impl Life<'_> {
    fn run(&mut self, cuts: u64) -> Result<(), String> {
        for _ in 0..cuts {
            let opened = self.recover()?;
            self.work(opened);
            self.disk.power_cut(&mut self.rng);
            self.tally.cuts += 1;
        }
        self.recover().map(drop)
    }

    /// Recovers, sometimes interrupted by further power cuts, and checks what is there.
    fn recover(&mut self) -> Result<Opened, String> {
        while self.rng.u8(0..4) == 0 {
            self.disk.power_off_at(self.rng.u64(1..6));
            let finished = open(&self.disk, &self.options, Replay::default()).is_ok();
            self.tally.interrupted_recoveries += u64::from(!finished);
            self.disk.power_cut(&mut self.rng);
            self.tally.cuts += 1;
        }
        let must_reach = Some(self.checkpoint.position);
        let from = self.rng.bool().then_some(self.checkpoint);
        let replay = Replay { from, must_reach };
        let before = self.disk.contents();
        let (opened, frames) = open(&self.disk, &self.options, replay).map_err(|error| error.to_string())?;
        if self.disk.contents() != before {
            return Err("recovery changed what it read".to_owned());
        }
        let first = from.map_or_else(|| oldest_number(&opened), |mark| mark.number);
        let known = self.history.bodies.len();
        self.history.check(first, &frames)?;
        self.tally.unknown_kept += (self.history.bodies.len() - known) as u64;
        self.tally.torn += u64::from(opened.recovered.cut.is_some());
        let read = harness::read_all(&opened).map_err(|error| error.to_string())?;
        self.history.check(oldest_number(&opened), &read)?;
        Ok(opened)
    }

    /// Writes until the power goes off, or closes in order.
    fn work(&mut self, mut opened: Opened) {
        self.disk.power_off_at(self.rng.u64(1..60));
        let steps = self.rng.usize(0..40);
        for _ in 0..steps {
            match self.rng.u8(0..20) {
                0 => upkeep(&opened),
                1 => {
                    opened.log.upkeep();
                }
                2 => self.checkpoint_and_release(&opened),
                _ => {
                    if !self.write(&mut opened) {
                        return;
                    }
                }
            }
        }
        if self.rng.bool() {
            let segments = opened.log.segments().len();
            self.tally.clean_closes += u64::from(opened.writer.close().is_ok() && segments > 0);
        }
    }

    fn write(&mut self, opened: &mut Opened) -> bool {
        let len_max = if self.rng.u8(0..8) == 0 { 30_000 } else { 2_000 };
        let body = body(&mut self.rng, opened.writer.end().number, len_max);
        let written = harness::write(&mut opened.writer, &body, Space::Ordinary);
        match written {
            Ok(()) => {
                self.history.bodies.push(body);
                self.tally.acknowledged += 1;
                true
            }
            Err(LogError::Poisoned(_)) => {
                self.history.unknown = Some(body);
                false
            }
            Err(error) => panic!("unexpected {error}"),
        }
    }

    fn checkpoint_and_release(&mut self, opened: &Opened) {
        // Only what survives a cut may be promised; without syncs nothing does.
        if self.options.sync == SyncMode::Always {
            self.checkpoint = opened.reader.end();
        }
        for segment in opened.log.segments() {
            if segment.sealed && segment.serial < self.checkpoint.position.serial {
                opened.log.release(segment.serial);
                self.tally.released += 1;
            }
        }
    }
}

fn oldest_number(opened: &Opened) -> u64 {
    opened.log.segments().first().map_or(1, |segment| segment.first_frame)
}

fn lives(seeds: std::ops::Range<u64>, cuts: u64, sync: SyncMode, lying: bool) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let disk = SimulatedDisk::new();
        disk.set_lying(lying);
        let options = Options { sync, ..small() };
        let (history, rng) = (History::default(), fastrand::Rng::with_seed(seed));
        let checkpoint = Mark::START;
        let outcome = Life { rng, disk, options, history, checkpoint, tally: &mut tally }.run(cuts);
        if let Err(violation) = outcome {
            tally.violations.push(format!("seed {seed}: {violation}"));
        }
    }
    tally
}

#[test]
fn nothing_acknowledged_is_lost_in_thousands_of_power_cuts() {
    let tally = lives(0..60, 50, SyncMode::Always, false);
    println!(
        "{} cuts, {} acknowledged frames, {} unknown ones kept, {} torn tails, {} interrupted recoveries, \
         {} clean closes, {} segments released, {} lost",
        tally.cuts,
        tally.acknowledged,
        tally.unknown_kept,
        tally.torn,
        tally.interrupted_recoveries,
        tally.clean_closes,
        tally.released,
        tally.violations.len()
    );
    assert_eq!(tally.violations, Vec::<String>::new());
    assert!(tally.cuts >= 3000 && tally.acknowledged > 10_000, "{tally:?}");
    let rare =
        [tally.unknown_kept, tally.torn, tally.interrupted_recoveries, tally.clean_closes, tally.released];
    assert!(rare.iter().all(|count| *count > 20), "everything must have happened: {tally:?}");
}

#[test]
fn control_without_syncs_the_same_cuts_lose_frames() {
    let tally = lives(0..20, 20, SyncMode::Os, false);
    println!("control, no syncs: {} of 20 disks lost frames", tally.violations.len());
    assert!(tally.violations.len() > 10, "the test cannot see losses: {tally:?}");
    let lost = tally.violations.iter().filter(|violation| violation.contains("missing")).count();
    assert!(lost > 0, "{tally:?}");
}

#[test]
fn control_on_a_lying_disk_the_same_cuts_lose_frames() {
    let tally = lives(0..20, 20, SyncMode::Always, true);
    println!("control, lying disk: {} of 20 disks lost frames", tally.violations.len());
    assert!(tally.violations.len() > 10, "the test cannot see losses: {tally:?}");
}

#[test]
fn log_without_syncs_opens_after_every_cut_with_a_prefix_of_its_frames() {
    let mut rng = fastrand::Rng::with_seed(7);
    let options = Options { sync: SyncMode::Os, ..small() };
    let mut cut_tails = 0;
    for round in 0..300 {
        let disk = SimulatedDisk::new();
        let (mut opened, _) = open(&disk, &options, Replay::default()).unwrap();
        let mut history = History::default();
        let mut synced = 0;
        for number in 1..rng.u64(2..120) {
            if number % 10 == 0 {
                upkeep(&opened);
            }
            let body = body(&mut rng, number, 2_000);
            harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
            history.bodies.push(body);
            if rng.u8(0..30) == 0 {
                opened.writer.sync().unwrap();
                synced = history.bodies.len();
            }
        }
        drop(opened);
        disk.power_cut(&mut rng);
        let (opened, frames) =
            open(&disk, &options, Replay::default()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(frames.len() >= synced, "round {round}: what sync answered for is there");
        history.bodies.truncate(frames.len());
        history.check(1, &frames).unwrap();
        cut_tails += usize::from(opened.recovered.cut.is_some());
    }
    assert!(cut_tails > 30, "{cut_tails}");
}

#[test]
fn recovery_from_a_mark_visits_only_what_follows_it() {
    let disk = SimulatedDisk::new();
    let mut rng = fastrand::Rng::with_seed(3);
    let (mut opened, _) = open(&disk, &small(), Replay::default()).unwrap();
    let mut marks = vec![opened.writer.end()];
    for number in 1..=100 {
        let body = body(&mut rng, number, 4_000);
        harness::write(&mut opened.writer, &body, Space::Ordinary).unwrap();
        marks.push(opened.writer.end());
    }
    assert!(opened.log.segments().len() > 2);
    drop(opened);
    for mark in marks {
        let (opened, frames) = open(&disk, &small(), from(mark)).unwrap();
        assert_eq!(frames.len() as u64, 101 - mark.number);
        assert!(frames.first().is_none_or(|frame| frame.number == mark.number));
        assert_eq!(opened.writer.end().number, 101);
    }
}
