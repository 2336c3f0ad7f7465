//! A store on a simulated disk that loses its power again and again, beside its oracle.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use futures::future::join_all;
use laneway_core::{ManualClock, Store, StoreError};
use laneway_embedded::file::Background;
use laneway_embedded::file::disk::Disk;
use laneway_embedded::file::disk::simulated::SimulatedDisk;
use laneway_embedded::{FileOptions, FileStore, SyncMode};

use super::actor::{Actor, Sort};
use super::oracle::{Last, Oracle};
use super::world::World;

pub(crate) const DIR: &str = "/store";

/// Small segments, small caches, frequent checkpoints: whatever can happen at an edge happens often.
pub(crate) fn small() -> FileOptions {
    FileOptions {
        sync: SyncMode::Always,
        segment_bytes: 3 << 19,
        checkpoint_every: Duration::from_millis(20),
        checkpoint_bytes: 96 << 10,
        backlog_bytes: 1 << 20,
        tail_cache: 4,
        index_cache_bytes: 1 << 20,
        recent_bytes: 32 << 10,
        clock_settle: laneway_core::CLOCK_SETTLE,
        background: Background::Threads,
    }
}

/// [`small`] without background threads.
pub(crate) fn manual() -> FileOptions {
    FileOptions { background: Background::Manual, ..small() }
}

/// Opens a store on an empty disk and defines what one actor works on.
pub(crate) fn founded(disk: &SimulatedDisk) -> FileStore {
    let store = open(Arc::new(disk.clone()), manual(), &ManualClock::default()).expect("an empty disk opens");
    block_on(World::found(&store, 1)).expect("a healthy store takes definitions");
    store
}

/// How a disk is handed to the store.
pub(crate) type Wrap = fn(SimulatedDisk) -> Arc<dyn Disk>;

/// How the lives of one disk are led.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) seed: u64,
    pub(crate) actors: usize,
    /// All actors at once and background threads, or one call after the other, which repeats exactly.
    pub(crate) together: bool,
    pub(crate) sync: SyncMode,
    pub(crate) wrap: Wrap,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) cuts: u64,
    pub(crate) cuts_in_recovery: u64,
    pub(crate) appends: u64,
    pub(crate) commits: u64,
    pub(crate) steps: u64,
    pub(crate) unknown_kept: u64,
    pub(crate) segments_recycled: u64,
    pub(crate) violations: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, oracle: &Oracle) {
        self.appends += oracle.count(Sort::Append);
        self.commits += oracle.count(Sort::Commit);
        self.steps += oracle.counts.values().sum::<u64>();
        self.unknown_kept += oracle.unknown_kept;
    }
}

/// One disk, many lives.
pub(crate) struct Lives {
    pub(crate) way: Way,
    pub(crate) disk: SimulatedDisk,
    pub(crate) clock: ManualClock,
    pub(crate) rng: fastrand::Rng,
    pub(crate) oracle: Oracle,
    pub(crate) last: Vec<Last>,
}

pub(crate) fn open(
    disk: Arc<dyn Disk>,
    options: FileOptions,
    clock: &ManualClock,
) -> Result<FileStore, StoreError> {
    FileStore::open_on(disk, DIR, options, Arc::new(clock.clone()))
}

impl Lives {
    /// A founded world; founding itself is not interrupted.
    pub(crate) fn begin(way: Way) -> Self {
        let (disk, clock) = (SimulatedDisk::new(), ManualClock::default());
        let store = open(Arc::new(disk.clone()), small(), &clock).expect("an empty disk opens");
        let world = block_on(World::found(&store, way.actors)).expect("a healthy store takes definitions");
        let oracle = block_on(Oracle::found(store.about().incarnation, &clock, way.actors, way.seed));
        assert_eq!(format!("{world:?}"), format!("{:?}", oracle.world), "both stores number alike");
        store.close().expect("closes in order");
        let rng = fastrand::Rng::with_seed(way.seed);
        Self { way, disk, clock, rng, oracle, last: vec![Last::Nothing; way.actors] }
    }

    fn options(&self) -> FileOptions {
        let background = if self.way.together { Background::Threads } else { Background::Manual };
        FileOptions { sync: self.way.sync, background, ..small() }
    }

    pub(crate) fn open(&self) -> Result<FileStore, StoreError> {
        open((self.way.wrap)(self.disk.clone()), self.options(), &self.clock)
    }

    /// Loses the power so often, and checks everything each time.
    pub(crate) fn run(&mut self, cuts: u64, tally: &mut Tally) -> Result<(), String> {
        for _ in 0..cuts {
            self.recover(tally)?;
            let store = self.open().map_err(|error| format!("second opening: {error}"))?;
            self.disk.power_off_at(self.rng.u64(1..120));
            let steps = self.rng.u64(1..30);
            let segments = self.log_files();
            block_on(self.work(&store, steps))?;
            tally.segments_recycled += u64::from(self.log_files() != segments);
            drop(store);
            self.disk.power_cut(&mut self.rng);
            tally.cuts += 1;
        }
        self.recover(tally)
    }

    /// Opens, sometimes interrupted by further power cuts, and checks what is there.
    pub(crate) fn recover(&mut self, tally: &mut Tally) -> Result<(), String> {
        while self.rng.u8(0..4) == 0 {
            self.disk.power_off_at(self.rng.u64(1..12));
            let opened = self.open();
            tally.cuts_in_recovery += u64::from(opened.is_err());
            drop(opened);
            self.disk.power_cut(&mut self.rng);
            tally.cuts += 1;
        }
        let store = self.open().map_err(|error| format!("opening: {error}"))?;
        block_on(self.oracle.judge_all(&store, &self.last))?;
        self.last.fill(Last::Nothing);
        self.clock.advance(Duration::from_secs(self.rng.u64(0..40)));
        // Half of the time the next life finds what the checks left behind, without a close in order.
        if self.rng.bool() {
            self.disk.power_off_at(1);
            drop(store);
            self.disk.power_cut(&mut self.rng);
        }
        Ok(())
    }

    /// The names of the files of the log.
    fn log_files(&self) -> Vec<String> {
        self.disk.list(&std::path::Path::new(DIR).join("log")).unwrap_or_default()
    }

    /// So many steps of every actor, until the store is in trouble.
    pub(crate) async fn work(&mut self, store: &FileStore, steps: u64) -> Result<(), String> {
        if !self.way.together {
            return self.work_in_turn(store, steps).await;
        }
        let (oracle, seed) = (&self.oracle, self.way.seed);
        let runs = oracle.world.territories.iter().zip(&oracle.done).map(|(territory, done)| async move {
            let mut answers = Vec::new();
            for number in *done..*done + steps {
                match (Actor { store, territory, seed }).step(number).await.answer {
                    Ok(answer) => answers.push(answer),
                    Err(error) => return (answers, Some(error)),
                }
            }
            (answers, None)
        });
        let ended = join_all(runs).await;
        for (actor, (answers, trouble)) in ended.into_iter().enumerate() {
            for answer in answers {
                self.oracle.answered(actor, &answer).await?;
            }
            self.last[actor] = trouble.as_ref().map_or(Last::Nothing, Last::of);
        }
        Ok(())
    }

    async fn work_in_turn(&mut self, store: &FileStore, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            for actor in 0..self.way.actors {
                let territory = &self.oracle.world.territories[actor];
                let step =
                    Actor { store, territory, seed: self.way.seed }.step(self.oracle.done[actor]).await;
                match step.answer {
                    Ok(answer) => self.oracle.answered(actor, &answer).await?,
                    Err(error) => {
                        self.last[actor] = Last::of(&error);
                        return Ok(());
                    }
                }
                if self.rng.u8(0..12) == 0 {
                    // An error shows in the next step.
                    let _stopped = store.checkpoint();
                }
            }
        }
        Ok(())
    }
}
