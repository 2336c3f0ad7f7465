//! A call to the disk fails, the process starts again on the same boot, works on, and then the power goes.
//!
//! After a failed sync the page cache still answers what never reached the disk. A store that starts again reads it, and
//! must not build on it: whatever it shows or acknowledges from then on must survive the power cut. `failing_calls` has
//! each fault followed by a restart or by a power cut; here both follow, with work and checkpoints between them.

use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::{Incarnation, ManualClock, Store, StoreError};
use laneway_embedded::FileStore;
use laneway_embedded::file::disk::simulated::{Fault, SimulatedDisk};

use super::actor::Actor;
use super::lives::{Wrap, founded, manual, open};
use super::oracle::{Last, Oracle};
use super::planted::{Bug, buggy};
use super::print;

const SEED: u64 = 11;
/// Steps before the first fault, then until the fault stops the store, then after the restart.
const PREPARED: u64 = 30;
const FAULTY: u64 = 28;
const AFTERWARDS: u64 = 18;
const CHECKPOINT_EVERY: u64 = 6;
/// Power cuts after each restart, each on a disk of its own.
const CUTS: u64 = 3;

#[derive(Debug, Default)]
struct Tally {
    points: u64,
    /// Faults that stopped the store, or kept it from opening.
    stopped: u64,
    survived: u64,
    violations: Vec<String>,
}

/// A disk with a store that was worked on and closed in order.
struct Base {
    disk: SimulatedDisk,
    incarnation: Incarnation,
}

impl Base {
    fn new() -> Self {
        let disk = SimulatedDisk::new();
        let store = founded(&disk);
        let incarnation = store.about().incarnation;
        let base = Self { disk, incarnation };
        let mut oracle = block_on(base.oracle(0));
        block_on(work(&store, &mut oracle, PREPARED)).expect("a healthy store works");
        store.close().expect("closes in order");
        base
    }

    /// The oracle after so many steps.
    async fn oracle(&self, done: u64) -> Oracle {
        Oracle::after(self.incarnation, SEED, done).await
    }

    /// One fault, one restart, several power cuts. `None` if the fault met no call.
    fn run(&self, n: u64, fault: Fault, wrap: Wrap, tally: &mut Tally) -> Option<Result<(), String>> {
        let disk = self.disk.fork();
        let start = |disk: &SimulatedDisk| open(wrap(disk.clone()), manual(), &ManualClock::default());
        let mut oracle = block_on(self.oracle(PREPARED));
        disk.fail_nth(n, fault);
        let last = match start(&disk) {
            Ok(store) => block_on(work(&store, &mut oracle, FAULTY)),
            Err(StoreError::Corrupt { what }) => Err(Stopped::Wrong(format!("taken for damage: {what}"))),
            Err(_) => Err(Stopped::By(Last::Nothing)),
        };
        if disk.clear_faults() > 0 {
            return None;
        }
        let last = match last {
            Ok(()) => Last::Nothing,
            Err(Stopped::Wrong(wrong)) => return Some(Err(wrong)),
            Err(Stopped::By(last)) => {
                tally.stopped += 1;
                last
            }
        };
        Some(self.restart(&disk, start, &mut oracle, last, tally))
    }

    /// Starts again on the same boot, works on, and cuts the power.
    fn restart(
        &self,
        disk: &SimulatedDisk,
        start: impl Fn(&SimulatedDisk) -> laneway_core::Result<FileStore>,
        oracle: &mut Oracle,
        last: Last,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let store = start(disk).map_err(|error| format!("does not open again: {error}"))?;
        // From here on it is decided whether the step that was not answered has happened.
        block_on(oracle.judge(&store, 0, &last)).map_err(|wrong| format!("after the restart: {wrong}"))?;
        match block_on(work(&store, oracle, AFTERWARDS)) {
            Ok(()) => {}
            Err(Stopped::Wrong(wrong)) => return Err(format!("after the restart: {wrong}")),
            Err(Stopped::By(last)) => return Err(format!("stopped after the restart: {last:?}")),
        }
        for seed in 0..CUTS {
            let cut = disk.fork();
            cut.power_cut(&mut fastrand::Rng::with_seed(seed));
            let store = start(&cut).map_err(|error| format!("power cut {seed}: does not open: {error}"))?;
            let judged = block_on(oracle.judge(&store, 0, &Last::Nothing));
            judged.map_err(|wrong| format!("power cut {seed}: {wrong}"))?;
            tally.survived += 1;
        }
        Ok(())
    }
}

/// Why a script did not reach its end.
#[derive(Debug)]
enum Stopped {
    /// The store is in trouble, as it may be.
    By(Last),
    /// It answered what it must not.
    Wrong(String),
}

/// So many steps beside the oracle, with checkpoints, or until the store is in trouble.
async fn work(store: &FileStore, oracle: &mut Oracle, steps: u64) -> Result<(), Stopped> {
    for step in 1..=steps {
        let number = oracle.done[0];
        let territory = &oracle.world.territories[0];
        match (Actor { store, territory, seed: SEED }).step(number).await.answer {
            Ok(answer) => oracle.answered(0, &answer).await.map_err(Stopped::Wrong)?,
            Err(StoreError::Corrupt { what }) => {
                return Err(Stopped::Wrong(format!("taken for damage: {what}")));
            }
            Err(error) => return Err(Stopped::By(Last::of(&error))),
        }
        if step % CHECKPOINT_EVERY == 0 && store.checkpoint().is_err() {
            return Err(Stopped::By(Last::Nothing));
        }
    }
    Ok(())
}

/// Lets every call fail in turn, or every so many.
fn check(fault: Fault, every: usize, wrap: Wrap) -> Tally {
    let (base, mut tally) = (Base::new(), Tally::default());
    for n in (1..).step_by(every) {
        let Some(ran) = base.run(n, fault, wrap, &mut tally) else { break };
        tally.points += 1;
        if let Err(wrong) = ran {
            tally.violations.push(format!("{fault:?} at call {n}: {wrong}"));
        }
    }
    print(&format!(
        "{fault:?}, restart, work, power cut: {} calls failed in turn, {} stopped the store, {} cuts survived, {} violations",
        tally.points,
        tally.stopped,
        tally.survived,
        tally.violations.len()
    ));
    tally
}

#[test]
fn work_after_a_failed_sync_and_a_restart_survives_a_power_cut() {
    let tally = check(Fault::SyncError, 1, |disk| Arc::new(disk));
    assert!(tally.violations.is_empty(), "{:#?}", tally.violations);
    assert!(tally.points > 30 && tally.stopped > 20, "{tally:?}");
}

#[test]
fn work_after_a_torn_write_and_a_restart_survives_a_power_cut() {
    let tally = check(Fault::TornWrite, 5, |disk| Arc::new(disk));
    assert!(tally.violations.is_empty(), "{:#?}", tally.violations);
    assert!(tally.points > 15 && tally.stopped > 10, "{tally:?}");
}

/// The control: a sync that failed is made again, and its answer counts.
#[test]
fn sync_repeated_after_a_failure_is_caught_by_a_power_cut_after_a_restart() {
    let tally = check(Fault::SyncError, 2, |disk| buggy(Bug::RetryAfterSyncError, disk));
    assert!(!tally.violations.is_empty(), "a repeated sync is not seen: {tally:?}");
}
