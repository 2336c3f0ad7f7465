//! A full disk: appends are refused, running work settles, and when room returns everything goes on without a
//! restart. Once on a simulated disk, once on a small real one where the machine allows it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;

use bytes::Bytes;
use futures::executor::block_on;
use laneway_core::store::{Append, Entry};
use laneway_core::{Draft, EventId, FullReason, Key, Kind, ManualClock, Store, StoreError};
use laneway_embedded::file::disk::Disk;
use laneway_embedded::file::disk::simulated::{SimulatedDisk, WatchedDisk};
use laneway_embedded::{FileOptions, FileStore};
use parking_lot::Mutex;

use super::actor::{Actor, Sort};
use super::lives::{DIR, small};
use super::oracle::{Last, Oracle};
use super::picture;
use super::print;
use super::world::World;

const SEED: u64 = 12;
/// Steps while the disk is full: the reserve is one segment.
const STEPS_FULL: u64 = 60;

fn options() -> FileOptions {
    FileOptions { backlog_bytes: 64 << 20, ..small() }
}

struct Run {
    store: FileStore,
    clock: ManualClock,
    oracle: Oracle,
    /// Payloads sent to the shared stream and acknowledged.
    filled: Vec<Bytes>,
    settled: u64,
    refused: u64,
}

impl Run {
    fn new(disk: Arc<dyn Disk>, dir: &Path) -> Self {
        let clock = ManualClock::default();
        let store =
            FileStore::open_on(disk, dir, options(), Arc::new(clock.clone())).expect("an empty disk opens");
        block_on(World::found(&store, 1)).expect("a healthy store takes definitions");
        let oracle = block_on(Oracle::found(store.about().incarnation, &clock, 1, SEED));
        Self { store, clock, oracle, filled: Vec::new(), settled: 0, refused: 0 }
    }

    /// Appends a large event; false if the store says that it is full.
    fn fill(&mut self) -> bool {
        let ground = &self.oracle.world.shared;
        let data = Bytes::from(self.filled.len().to_string().repeat(20_000));
        let key = Key::new("filling").expect("a short key");
        let draft = Draft::new(Some(key), Kind::new("fill").expect("a short kind"), data.clone());
        let incarnation = self.store.about().incarnation;
        let (shard, layout, drafts) = (ground.shard, ground.layout, vec![draft]);
        let append = Append { shard, incarnation, layout, origin: None, drafts, object: None };
        match block_on(self.store.append(append)) {
            Ok(_) => self.filled.push(data),
            Err(StoreError::Full(FullReason::Store { reason })) => {
                assert!(reason.contains("disk full"), "{reason}");
                return false;
            }
            Err(error) => panic!("{error}"),
        }
        true
    }

    /// So many steps of the actor; what is refused for want of room is left out.
    fn work(&mut self, steps: u64) {
        for _ in 0..steps {
            let territory = &self.oracle.world.territories[0];
            let actor = Actor { store: &self.store, territory, seed: SEED };
            let step = block_on(actor.step(self.oracle.done[0]));
            match step.answer {
                Ok(answer) => {
                    self.settled += u64::from(step.kind == Sort::Commit);
                    block_on(self.oracle.answered(0, &answer)).unwrap_or_else(|wrong| panic!("{wrong}"));
                }
                Err(StoreError::Full(_)) => {
                    assert!(step.kind != Sort::Commit, "running work must settle");
                    self.refused += 1;
                    self.oracle.skip(0);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Starts again on the same disk.
    fn restart(&mut self, disk: &SimulatedDisk) {
        // A full disk has no room for the mark of an end in order: the next start reads the end of the log instead.
        let _not_marked = self.store.clone().close();
        let (disk, clock) = (Arc::new(disk.clone()), Arc::new(self.clock.clone()));
        self.store = FileStore::open_on(disk, DIR, options(), clock).expect("a full disk opens");
    }

    fn check(&mut self) {
        block_on(self.oracle.judge(&self.store, 0, &Last::Nothing)).unwrap_or_else(|wrong| panic!("{wrong}"));
        let ground = &self.oracle.world.shared;
        let entries = block_on(picture::entries(&self.store, ground, EventId(0))).expect("readable");
        let found = entries.iter().map(|entry| match entry {
            Entry::Event(event) => &event.data,
            other => panic!("{other:?} in a queue"),
        });
        assert!(found.eq(self.filled.iter()), "everything acknowledged before, during and after");
    }

    /// Fills the disk, works on it, gives it room again and works on. `full` leaves no room beside what exists.
    fn play(mut self, what: &str, disk: Arc<dyn Disk>, dir: &Path, full: impl Fn(), room: impl FnOnce()) {
        self.work(40);
        full();
        let before = self.filled.len();
        while self.fill() {
            // What is given back to the system while filling is taken at once.
            full();
        }
        let taken = self.filled.len() - before;
        self.settled = 0;
        self.work(STEPS_FULL);
        let (settled, refused) = (self.settled, self.refused);
        self.check();
        room();
        // The thread that prepares segments asks the disk again after a while.
        while !self.fill() {
            std::thread::yield_now();
        }
        self.work(60);
        self.check();
        self.store.clone().close().expect("closes in order");
        self.store =
            FileStore::open_on(disk, dir, options(), Arc::new(self.clock.clone())).expect("opens again");
        self.check();
        print(&format!(
            "full disk, {what}: {taken} appends from prepared space, then {settled} commits settled and {refused} calls \
             were refused, then all went on; 0 lost"
        ));
        // Small appends may still fit where a large one was refused.
        assert!(settled > 10 && refused > 3, "{settled} settled, {refused} refused");
    }
}

#[test]
fn full_simulated_disk_refuses_appends_settles_work_and_goes_on() {
    let disk = SimulatedDisk::new();
    let run = Run::new(Arc::new(disk.clone()), Path::new(DIR));
    let full = || disk.set_capacity(Some(disk.used()));
    let room = || disk.set_capacity(None);
    run.play("simulated", Arc::new(disk.clone()), Path::new(DIR), full, room);
}

/// The thread that prepares segments.
const UPKEEP: &str = "laneway-log";

/// A store whose appends are refused because its disk is full, and how to fill the disk again.
fn on_a_full_disk(disk: &SimulatedDisk) -> (Run, impl Fn()) {
    let mut run = Run::new(Arc::new(disk.clone()), Path::new(DIR));
    let full = || disk.set_capacity(Some(disk.used()));
    run.work(40);
    full();
    while run.fill() {
        full();
    }
    (run, full)
}

#[test]
fn append_that_comes_before_the_upkeep_does_not_take_the_reserve_of_a_full_disk() {
    let disk = SimulatedDisk::new();
    let (mut run, full) = on_a_full_disk(&disk);
    let _not_marked = run.store.clone().close();
    full();
    // The upkeep is held up at its first look at the disk.
    let watched = WatchedDisk::new(disk.clone());
    let (go, held) = channel::<()>();
    let held = Mutex::new(held);
    watched.watch(move |_, _| {
        if std::thread::current().name() == Some(UPKEEP) {
            // It goes on when the test has dropped the other end.
            let _gone = held.lock().recv();
        }
        Ok(())
    });
    let clock = Arc::new(run.clock.clone());
    run.store = FileStore::open_on(Arc::new(watched), DIR, options(), clock).expect("a full disk opens");
    assert!(!run.fill(), "the append took the space that is kept for settling");
    run.settled = 0;
    run.work(STEPS_FULL);
    assert!(run.settled > 10, "{} settled", run.settled);
    drop(go);
    run.check();
}

/// How often a full disk is opened: the first call comes before anything in the background could have met it.
const STARTS: usize = 20;

#[test]
fn restart_on_a_full_disk_refuses_appends_at_once_and_settles_from_the_reserve() {
    let disk = SimulatedDisk::new();
    let (mut run, full) = on_a_full_disk(&disk);
    for start in 0..STARTS {
        run.restart(&disk);
        full();
        assert!(!run.fill(), "start {start}: an append took the space that is kept for settling");
    }
    run.settled = 0;
    run.work(STEPS_FULL);
    assert!(run.settled > 10, "{} settled", run.settled);
    run.check();

    // The reserve is used up now: everything is refused, and nothing waits for room.
    run.restart(&disk);
    full();
    let refused = (0..STEPS_FULL).filter(|number| {
        let territory = &run.oracle.world.territories[0];
        let actor = Actor { store: &run.store, territory, seed: SEED };
        match block_on(actor.step(run.oracle.done[0] + number)).answer {
            Err(StoreError::Full(FullReason::Store { reason })) => {
                assert!(reason.contains("free space and repeat"), "{reason}");
                true
            }
            Err(error) => panic!("{error}"),
            // A refusal by the rules changes nothing.
            Ok(_) => false,
        }
    });
    let refused = refused.count();
    print(&format!("full disk, started again without a reserve: {refused} of {STEPS_FULL} calls refused"));
    assert!(refused > 10, "{refused} refused");
    run.check();
    disk.set_capacity(None);
    while !run.fill() {
        std::thread::yield_now();
    }
    run.work(60);
    run.check();
}

/// A small file system in memory; unmounted when dropped.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    fn new() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("not root".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=24m", "laneway-proof"]).arg(folder.path());
        let output = command.output().map_err(|error| format!("mount: {error}"))?;
        if output.status.success() {
            return Ok(Self { folder });
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn ballast(&self) -> PathBuf {
        self.folder.path().join("ballast")
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        use std::io::Write;
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.append(true).create(true).open(self.ballast()).expect("a name needs no room");
        while file.write(&[1; 4096]).is_ok() {}
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.folder.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            print(&format!("could not unmount {}", self.folder.path().display()));
        }
    }
}

#[test]
fn full_real_disk_refuses_appends_settles_work_and_goes_on() {
    let small = match Small::new() {
        Ok(small) => small,
        Err(reason) => {
            return print(&format!("full disk on a real file system: not possible here: {reason}"));
        }
    };
    let dir = small.folder.path().join("store");
    let disk: Arc<dyn Disk> = Arc::new(laneway_embedded::file::disk::RealDisk);
    let run = Run::new(Arc::clone(&disk), &dir);
    let room = || std::fs::remove_file(small.ballast()).expect("the ballast is there");
    run.play("tmpfs", disk, &dir, || small.fill(), room);
}
