//! Power cuts at random calls of a simulated disk, again and again on one store, also during recovery.

use std::sync::Arc;

use laneway_embedded::SyncMode;

use super::lives::{Lives, Tally, Way, Wrap};
use super::print;

/// Stores in the negative control. At least one must lose something.
const CONTROL_STORES: u64 = 40;
const HONEST: Wrap = |disk| Arc::new(disk);

fn lives(seeds: std::ops::Range<u64>, cuts: u64, sync: SyncMode, lying: bool) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let together = seed % 2 == 1;
        let mut lives = Lives::begin(Way { seed, actors: 3, together, sync, wrap: HONEST });
        lives.disk.set_lying(lying);
        let outcome = lives.run(cuts, &mut tally);
        tally.add(&lives.oracle);
        if let Err(violation) = outcome {
            tally.violations.push(format!("seed {seed}: {violation}"));
        }
    }
    tally
}

#[test]
fn nothing_acknowledged_is_lost_in_simulated_power_cuts() {
    let tally = lives(0..20, 25, SyncMode::Always, false);
    print(&format!(
        "{} simulated power cuts ({} of them ended a recovery): {} appends, {} commits, {} calls in all acknowledged; \
         {} unanswered ones were there whole, {} lives with new segments, {} violations",
        tally.cuts,
        tally.cuts_in_recovery,
        tally.appends,
        tally.commits,
        tally.steps,
        tally.unknown_kept,
        tally.segments_recycled,
        tally.violations.len()
    ));
    assert!(tally.violations.is_empty(), "replay: Lives::begin with the seed named; {:#?}", tally.violations);
    assert!(tally.cuts >= 500 && tally.appends > 1_000 && tally.commits > 1_000, "{tally:?}");
    let rare = [tally.cuts_in_recovery, tally.unknown_kept, tally.segments_recycled];
    assert!(rare.iter().all(|count| *count > 10), "everything must have happened: {tally:?}");
}

/// Runs stores until power cuts lose something that was acknowledged, and returns how many it took. Thread timing decides
/// when data reaches the disk, so a single store may survive.
fn stores_until_a_loss(sync: SyncMode, lying: bool) -> u64 {
    let lost =
        (0..CONTROL_STORES).find(|seed| !lives(*seed..seed + 1, 12, sync, lying).violations.is_empty());
    let Some(seed) = lost else { panic!("the negative control lost nothing in {CONTROL_STORES} stores") };
    seed + 1
}

#[test]
fn control_without_syncs_the_same_power_cuts_lose_something() {
    let stores = stores_until_a_loss(SyncMode::Os, false);
    print(&format!("control, sync = os: store {stores} lost something in power cuts"));
}

#[test]
fn control_on_a_lying_disk_the_same_power_cuts_lose_something() {
    let stores = stores_until_a_loss(SyncMode::Always, true);
    print(&format!("control, lying disk: store {stores} lost something in power cuts"));
}
