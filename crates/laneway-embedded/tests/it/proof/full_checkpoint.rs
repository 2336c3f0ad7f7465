//! A disk that becomes full inside a checkpoint, at every place where one asks for room: nothing acknowledged
//! before or meanwhile is lost, whether room returns before the store is closed or only after.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use futures::executor::block_on;
use laneway_core::{Incarnation, ManualClock, Result, Store};
use laneway_embedded::file::Background;
use laneway_embedded::file::disk::simulated::{Call, SimulatedDisk, WatchedDisk};
use laneway_embedded::{FileOptions, FileStore};
use parking_lot::Mutex;

use super::actor::Actor;
use super::lives::{open, small};
use super::oracle::{Last, Oracle};
use super::print;
use super::world::World;

const SEED: u64 = 31;
/// Steps before the checkpoint, and while it is held up.
const STEPS: (u64, u64) = (30, 8);

/// Checkpoints only when asked for, and those wait for room.
fn options(background: Background) -> FileOptions {
    let hour = Duration::from_secs(3600);
    let (checkpoint_bytes, backlog_bytes) = (64 << 20, 64 << 20);
    FileOptions { background, checkpoint_every: hour, checkpoint_bytes, backlog_bytes, ..small() }
}

/// What happens to a checkpoint.
enum Told {
    NoRoom,
    Ended(Result<()>),
}

/// The room on a disk.
#[derive(Default)]
struct Room {
    /// Calls that need room until there is none.
    left: Option<u64>,
    full: bool,
}

/// Whether a call takes new blocks: frames go into segments that have theirs already.
fn needs_room(call: Call, path: &Path) -> bool {
    let in_log = path.parent().is_some_and(|parent| parent.ends_with("log"));
    let prepared = in_log && path.extension().is_none_or(|extension| extension != "tmp");
    matches!(call, Call::Create | Call::Write | Call::SetLen | Call::Rename) && !prepared
}

fn watch(disk: &WatchedDisk, room: &Arc<Mutex<Room>>, tell: Sender<Told>) {
    let room = Arc::clone(room);
    disk.watch(move |call, path| {
        let mut room = room.lock();
        let of_checkpoint = !path.to_string_lossy().contains("/log/");
        if !needs_room(call, path) {
            return Ok(());
        }
        if let Some(left) = room.left.as_mut().filter(|_| of_checkpoint) {
            *left -= 1;
            if *left == 0 {
                (room.left, room.full) = (None, true);
                tell.send(Told::NoRoom).expect("the test listens");
            }
        }
        if room.full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    });
}

/// What is done once a checkpoint has met a full disk.
#[derive(Clone, Copy, Debug)]
enum Then {
    RoomThenClose,
    CloseThenRoom,
    RoomThenWork,
}

struct Run {
    store: FileStore,
    oracle: Oracle,
}

impl Run {
    fn new(disk: &WatchedDisk, incarnation: Incarnation) -> Self {
        let clock = ManualClock::default();
        let store = open(Arc::new(disk.clone()), options(Background::Threads), &clock).expect("opens");
        Self { store, oracle: block_on(Oracle::found(incarnation, &clock, 1, SEED)) }
    }

    fn work(&mut self, steps: u64) {
        for _ in 0..steps {
            let territory = &self.oracle.world.territories[0];
            let actor = Actor { store: &self.store, territory, seed: SEED };
            let answer = block_on(actor.step(self.oracle.done[0])).answer.expect("there is prepared room");
            block_on(self.oracle.answered(0, &answer)).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }

    /// Goes on after the disk became full. The end of the checkpoint must be good if it could wait for room.
    fn go_on(mut self, then: Then, room: &Mutex<Room>, told: &Receiver<Told>) -> Oracle {
        self.work(STEPS.1);
        let make_room = || room.lock().full = false;
        let ended = || match told.recv().expect("the checkpoint ends") {
            Told::Ended(ended) => ended,
            Told::NoRoom => panic!("told once"),
        };
        match then {
            Then::RoomThenClose => {
                make_room();
                self.store.close().expect("there is room");
                drop(ended());
            }
            Then::CloseThenRoom => {
                drop(self.store.close());
                drop(ended());
                make_room();
            }
            Then::RoomThenWork => {
                make_room();
                ended().expect("it waited for room");
                self.work(STEPS.1);
                self.store.close().expect("there is room");
            }
        }
        self.oracle
    }
}

/// A founded store, closed in order, with segments prepared for the next life.
fn founded() -> (SimulatedDisk, Incarnation) {
    let disk = SimulatedDisk::new();
    let store = open(Arc::new(disk.clone()), options(Background::Manual), &ManualClock::default());
    let store = store.expect("an empty disk opens");
    block_on(World::found(&store, 1)).expect("a healthy store takes definitions");
    store.checkpoint().expect("a healthy disk");
    let incarnation = store.about().incarnation;
    store.close().expect("closes in order");
    (disk, incarnation)
}

fn judge(disk: &SimulatedDisk, mut oracle: Oracle, what: &str) {
    let store = open(Arc::new(disk.clone()), options(Background::Manual), &ManualClock::default());
    let store = store.unwrap_or_else(|error| panic!("{what}: {error}"));
    let judged = block_on(oracle.judge(&store, 0, &Last::Nothing));
    judged.unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
}

/// Makes room in the end, so that a test that fails does not wait for a checkpoint without any.
struct Relief<'a>(&'a Mutex<Room>);

impl Drop for Relief<'_> {
    fn drop(&mut self) {
        *self.0.lock() = Room::default();
    }
}

/// Lets the disk become full at the `n`-th place of a checkpoint; false if there are fewer.
fn full_at(n: u64, then: Then, base: &(SimulatedDisk, Incarnation)) -> bool {
    let (inner, room) = (base.0.fork(), Arc::new(Mutex::new(Room::default())));
    let disk = WatchedDisk::new(inner.clone());
    let (tell, told) = channel();
    watch(&disk, &room, tell.clone());
    let mut run = Run::new(&disk, base.1);
    run.work(STEPS.0);
    room.lock().left = Some(n);
    let store = run.store.clone();
    let oracle = std::thread::scope(|scope| {
        let _relief = Relief(&room);
        scope.spawn(move || {
            let ended = store.checkpoint();
            drop(store);
            tell.send(Told::Ended(ended)).expect("the test listens");
        });
        match told.recv().expect("the checkpoint ends") {
            Told::NoRoom => Some(run.go_on(then, &room, &told)),
            Told::Ended(ended) => {
                ended.expect("there was room");
                None
            }
        }
    });
    let met = oracle.is_some();
    if let Some(oracle) = oracle {
        judge(&inner, oracle, &format!("{then:?}, no room at call {n}"));
    }
    met
}

#[test]
fn checkpoint_that_meets_a_full_disk_anywhere_loses_nothing() {
    let base = founded();
    let mut places = 0;
    while full_at(places + 1, Then::RoomThenClose, &base) {
        places += 1;
    }
    print(&format!("full disk inside a checkpoint: {places} places, room before the close; 0 lost"));
    assert!(places > 8, "{places} places");
    assert!(full_at(1, Then::RoomThenWork, &base));
}

#[test]
fn close_on_a_disk_full_anywhere_in_a_checkpoint_ends_and_loses_nothing() {
    let base = founded();
    let mut places = 0;
    while full_at(places + 1, Then::CloseThenRoom, &base) {
        places += 1;
    }
    print(&format!("full disk inside a checkpoint: {places} places, closed without room; 0 lost"));
    assert!(places > 8, "{places} places");
}
