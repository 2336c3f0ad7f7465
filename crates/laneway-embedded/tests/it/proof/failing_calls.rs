//! Every n-th call to the disk fails, for every n of a fixed script: answers stay honest, what was acknowledged
//! stays readable, and the next start finds exactly that, and maybe the one call whose end nobody knows.

use std::sync::Arc;

use futures::executor::block_on;
use laneway_core::{FullReason, ManualClock, Store, StoreError};
use laneway_embedded::FileStore;
use laneway_embedded::file::disk::simulated::{Fault, SimulatedDisk};

use super::actor::Actor;
use super::lives::{founded, manual, open};
use super::oracle::{Last, Oracle};
use super::picture::Land;
use super::print;

const SEED: u64 = 4;
const STEPS: u64 = 56;
/// A checkpoint after every so many steps.
const CHECKPOINT_EVERY: u64 = 18;
/// Troubles after which the script gives up: a store that stopped stays stopped.
const TROUBLES_MAX: u64 = 3;

#[derive(Debug, Default)]
struct Tally {
    points: u64,
    stopped: u64,
    full: u64,
    refused_to_open: u64,
    unknown: u64,
    violations: Vec<String>,
}

/// A founded store, closed in order.
struct Base {
    disk: SimulatedDisk,
    incarnation: laneway_core::Incarnation,
}

/// What a run of the script left.
#[derive(Default)]
struct Ran {
    done: u64,
    last: Option<Last>,
    /// What could be read after the store had stopped.
    live: Option<Land>,
}

impl Base {
    fn new() -> Self {
        let disk = SimulatedDisk::new();
        let store = founded(&disk);
        let incarnation = store.about().incarnation;
        store.close().expect("closes in order");
        Self { disk, incarnation }
    }

    /// The oracle after so many steps.
    async fn oracle(&self, done: u64) -> Oracle {
        Oracle::after(self.incarnation, SEED, done).await
    }

    /// Runs the script on a disk with a planned fault. An error is a violation.
    fn script(&self, disk: &SimulatedDisk, tally: &mut Tally) -> Result<Ran, String> {
        let store = match open(Arc::new(disk.clone()), manual(), &ManualClock::default()) {
            Ok(store) => store,
            Err(StoreError::Corrupt { what }) => {
                return Err(format!("a failing call was taken for damage: {what}"));
            }
            Err(_) => {
                tally.refused_to_open += 1;
                return Ok(Ran::default());
            }
        };
        let ran = block_on(self.steps(&store, tally));
        // Closing in order may fail too; the next start tells whether that was honest.
        drop(store);
        ran
    }

    async fn steps(&self, store: &FileStore, tally: &mut Tally) -> Result<Ran, String> {
        let mut oracle = self.oracle(0).await;
        let (mut troubles, mut last) = (0, Last::Nothing);
        while oracle.done[0] < STEPS && troubles < TROUBLES_MAX {
            let number = oracle.done[0];
            let territory = &oracle.world.territories[0];
            let step = Actor { store, territory, seed: SEED }.step(number).await;
            match step.answer {
                Ok(_) if last == Last::Unknown => {
                    return Err(format!("step {number} was answered after an unknown one"));
                }
                Ok(answer) => oracle.answered(0, &answer).await?,
                Err(StoreError::Corrupt { what }) => return Err(format!("taken for damage: {what}")),
                Err(error) => {
                    troubles += 1;
                    tally.full += u64::from(matches!(error, StoreError::Full(FullReason::Store { .. })));
                    tally.unknown += u64::from(matches!(error, StoreError::Unknown { .. }));
                    last = if last == Last::Unknown { last } else { Last::of(&error) };
                }
            }
            if number % CHECKPOINT_EVERY == CHECKPOINT_EVERY - 1 {
                // An error shows in the next step, or is made good by the next checkpoint.
                let _failed = store.checkpoint();
            }
        }
        let stopped = troubles == TROUBLES_MAX;
        tally.stopped += u64::from(stopped);
        let territory = &oracle.world.territories[0];
        let live = match Land::take(store, territory).await {
            // The fault may meet just this look, or the look saw a group that then failed; nothing fails twice.
            Err(_) => Land::take(store, territory).await,
            live => live,
        };
        let live = live.map_err(|error| format!("not readable any more: {error}"))?;
        Ok(Ran { done: oracle.done[0], last: Some(last), live: Some(live) })
    }

    /// Opens again without the fault, and after power cuts, and compares.
    async fn aftermath(&self, disk: &SimulatedDisk, ran: &Ran) -> Result<(), String> {
        let last = ran.last.unwrap_or(Last::Nothing);
        for cut in [None, Some(1)] {
            let disk = disk.fork();
            if let Some(seed) = cut {
                disk.power_cut(&mut fastrand::Rng::with_seed(seed));
            }
            let mut oracle = self.oracle(ran.done).await;
            let before = oracle.land(0).await;
            let store = open(Arc::new(disk), manual(), &ManualClock::default());
            let store = store.map_err(|error| format!("cut {cut:?}: opening again: {error}"))?;
            oracle.judge(&store, 0, &last).await.map_err(|wrong| format!("cut {cut:?}: {wrong}"))?;
            if let Some(live) = &ran.live
                && let Some(wrong) = live.difference(&before)
            {
                let after = self.oracle(ran.done + 1).await.land(0).await;
                if last == Last::Nothing || live.difference(&after).is_some() {
                    return Err(format!("read while the store had stopped: {wrong}"));
                }
            }
        }
        Ok(())
    }
}

fn check(fault: Fault) -> Tally {
    let (base, mut tally) = (Base::new(), Tally::default());
    for n in 1.. {
        let disk = base.disk.fork();
        disk.fail_nth(n, fault);
        let outcome = base.script(&disk, &mut tally);
        let happened = disk.clear_faults() == 0;
        let wrong = outcome.and_then(|ran| block_on(base.aftermath(&disk, &ran)));
        if let Err(wrong) = wrong {
            tally.violations.push(format!("{fault:?} at call {n}: {wrong}"));
        }
        if !happened {
            break;
        }
        tally.points += 1;
    }
    print(&format!(
        "{fault:?}: {} calls failed in turn: {} times the store stopped, {} unknown answers, {} refused as full, {} \
         refused to open, {} violations",
        tally.points,
        tally.stopped,
        tally.unknown,
        tally.full,
        tally.refused_to_open,
        tally.violations.len()
    ));
    assert!(tally.violations.is_empty(), "replay: check with this fault: {:#?}", tally.violations);
    tally
}

#[test]
fn every_write_that_fails_is_told_and_loses_nothing() {
    let tally = check(Fault::WriteError);
    assert!(tally.points > 120 && tally.stopped > 40, "{tally:?}");
}

#[test]
fn every_torn_write_is_told_and_loses_nothing() {
    let tally = check(Fault::TornWrite);
    assert!(tally.points > 120 && tally.stopped > 40, "{tally:?}");
}

#[test]
fn every_sync_that_fails_is_told_and_never_repeated() {
    let tally = check(Fault::SyncError);
    assert!(tally.points > 60 && tally.stopped > 40, "{tally:?}");
}

#[test]
fn every_call_that_meets_a_full_disk_is_told_and_loses_nothing() {
    let tally = check(Fault::NoSpace);
    assert!(tally.points > 120, "{tally:?}");
}

#[test]
fn every_read_that_fails_is_told_and_changes_nothing() {
    let tally = check(Fault::ReadError);
    assert!(tally.points > 20, "{tally:?}");
}
