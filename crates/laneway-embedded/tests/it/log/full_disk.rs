//! A full disk: new work is refused, running work settles from the reserve, and all goes on when space returns.

use laneway_embedded::file::disk::Disk;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::file::log::{LogError, Opened, Options, Replay, Space, Upkeep};

use super::harness::{self, DIR, History, body, open, small, upkeep};

struct Run {
    disk: SimulatedDisk,
    opened: Opened,
    history: History,
    rng: fastrand::Rng,
}

impl Run {
    fn new() -> Run {
        let disk = SimulatedDisk::new();
        let (opened, _) = open(&disk, &small(), Replay::default()).unwrap();
        Run { disk, opened, history: History::default(), rng: fastrand::Rng::with_seed(2) }
    }

    fn write(&mut self, space: Space) -> Result<(), LogError> {
        // All of one length, so that a frame is never accepted because it is smaller than the refused one.
        let mut body = body(&mut self.rng, self.opened.writer.end().number, 0);
        body.resize(1_500, 3);
        harness::write(&mut self.opened.writer, &body, space)?;
        self.history.bodies.push(body);
        Ok(())
    }

    /// Writes until it is refused; answers how many frames went in.
    fn fill(&mut self, space: Space) -> usize {
        let before = self.history.bodies.len();
        loop {
            match self.write(space) {
                Ok(()) => upkeep(&self.opened),
                Err(LogError::Full { .. }) => return self.history.bodies.len() - before,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn check(mut self) {
        let frames = harness::read_all(&self.opened).unwrap();
        self.history.check(1, &frames).unwrap();
        drop(self.opened);
        self.disk.power_cut(&mut self.rng);
        let (_, frames) = open(&self.disk, &small(), Replay::default()).unwrap();
        self.history.check(1, &frames).unwrap();
    }
}

#[test]
fn settling_goes_on_in_the_reserve_and_all_continues_when_space_returns() {
    let mut run = Run::new();
    upkeep(&run.opened);
    run.write(Space::Ordinary).unwrap();
    run.disk.set_capacity(Some(300 << 10));
    let ordinary = run.fill(Space::Ordinary);
    assert!(run.opened.log.spares().full);
    let end = run.opened.writer.end();
    for _ in 0..10 {
        assert!(matches!(run.write(Space::Ordinary), Err(LogError::Full { .. })));
    }
    assert_eq!(run.opened.writer.end(), end, "a refused frame leaves nothing behind");
    run.write(Space::Reserve).unwrap();
    assert!(
        matches!(run.write(Space::Ordinary), Err(LogError::Full { .. })),
        "the reserve is not for new work"
    );
    let reserved = 1 + run.fill(Space::Reserve);
    println!("full disk: {ordinary} ordinary frames, then {reserved} from the reserve");
    assert!(ordinary > 50 && reserved > 20);
    assert!(run.opened.writer.poisoned().is_none());

    run.disk.set_capacity(None);
    assert!(
        matches!(run.write(Space::Ordinary), Err(LogError::Full { .. })),
        "nothing has been prepared yet"
    );
    run.opened.writer.poke_spares();
    upkeep(&run.opened);
    for _ in 0..100 {
        run.write(Space::Ordinary).unwrap();
        upkeep(&run.opened);
    }
    run.check();
}

#[test]
fn released_segments_bring_space_back_without_any_new_block() {
    let mut run = Run::new();
    upkeep(&run.opened);
    run.write(Space::Ordinary).unwrap();
    run.disk.set_capacity(Some(300 << 10));
    run.fill(Space::Ordinary);
    let segments = run.opened.log.segments();
    for segment in &segments[..2] {
        run.opened.log.release(segment.serial);
    }
    upkeep(&run.opened);
    run.write(Space::Ordinary).unwrap();
    let frames = harness::read_all(&run.opened).unwrap();
    run.history.check(frames[0].number, &frames).unwrap();
}

#[test]
fn growing_first_segment_is_cut_back_when_the_disk_fills() {
    let mut run = Run::new();
    run.disk.set_capacity(Some(30 << 10));
    let mut written = 0;
    while run.write(Space::Ordinary).is_ok() {
        written += 1;
    }
    assert!(written > 3 && run.opened.writer.poisoned().is_none());
    assert!(matches!(run.write(Space::Reserve), Err(LogError::Full { .. })), "there is no reserve yet");
    let end = run.opened.writer.end().position;
    let segment = std::path::Path::new(harness::LOG_DIR).join("00000000000000000001.seg");
    assert_eq!(run.disk.size(&segment).unwrap(), end.offset, "what was begun takes no space");
    run.disk.set_capacity(None);
    run.write(Space::Ordinary).unwrap();
    assert_eq!(run.opened.writer.end().position.serial, end.serial, "the same segment goes on");
    run.check();
}

#[test]
fn growing_segment_gives_way_to_the_reserve_for_settling() {
    let mut run = Run::new();
    // The reserve of an earlier life is there at once.
    upkeep(&run.opened);
    drop(run.opened);
    for name in run.disk.list(std::path::Path::new(harness::LOG_DIR)).unwrap().iter().skip(1) {
        run.disk.remove(&std::path::Path::new(harness::LOG_DIR).join(name)).unwrap();
    }
    run.opened = open(&run.disk, &small(), Replay::default()).unwrap().0;
    assert_eq!(run.opened.log.spares().ready, 1);
    run.disk.set_capacity(Some(run.disk.used() + (20 << 10)));
    while run.write(Space::Ordinary).is_ok() {}
    assert!(run.opened.log.segments()[0].file_bytes < 30 << 10);
    run.write(Space::Reserve).unwrap();
    assert_eq!(run.opened.log.segments().len(), 2);
    assert!(matches!(run.write(Space::Ordinary), Err(LogError::Full { .. })));
    run.check();
}

#[test]
fn full_disk_at_open_refuses_writes_and_not_the_start() {
    let mut run = Run::new();
    for _ in 0..20 {
        run.write(Space::Ordinary).unwrap();
    }
    drop(run.opened);
    run.disk.set_capacity(Some(run.disk.used()));
    run.opened = open(&run.disk, &small(), Replay::default()).unwrap().0;
    assert!(matches!(run.write(Space::Ordinary), Err(LogError::Full { .. })));
    run.disk.set_capacity(None);
    run.write(Space::Ordinary).unwrap();
    run.check();
}

#[test]
fn upkeep_leaves_the_last_room_of_a_disk_to_its_neighbours() {
    let mut run = Run::new();
    upkeep(&run.opened);
    run.write(Space::Ordinary).unwrap();
    let less_than_a_segment = usize::try_from(small().segment_bytes).unwrap() - 4096;
    run.disk.set_capacity(Some(run.disk.used() + less_than_a_segment));
    run.fill(Space::Ordinary);
    assert!(run.opened.log.spares().full);
    let (used, creates) = (run.disk.used(), run.disk.calls().creates);
    for _ in 0..10 {
        run.opened.log.poke_spares();
        upkeep(&run.opened);
        assert_eq!(
            (run.disk.used(), run.disk.calls().creates),
            (used, creates),
            "a file was begun that cannot be filled"
        );
    }
    run.disk.set_capacity(None);
    run.opened.log.poke_spares();
    upkeep(&run.opened);
    run.write(Space::Ordinary).unwrap();
    run.check();
}

#[test]
fn background_thread_tries_again_when_poked() {
    let disk = SimulatedDisk::new();
    disk.set_capacity(Some(80 << 10));
    let hour = std::time::Duration::from_secs(3600);
    let options = Options { upkeep: Upkeep::Thread, space_retry: hour, ..small() };
    let (opened, _) = harness::open_in(
        std::sync::Arc::new(disk.clone()),
        std::path::Path::new(DIR),
        &options,
        Replay::default(),
    )
    .unwrap();
    let limit = std::time::Duration::from_secs(60);
    assert!(opened.log.wait_upkeep(limit));
    assert_eq!((opened.log.spares().ready, opened.log.spares().full), (1, true));
    disk.set_capacity(None);
    opened.log.poke_spares();
    assert!(opened.log.wait_upkeep(limit));
    assert_eq!((opened.log.spares().ready, opened.log.spares().full), (2, false));
}
