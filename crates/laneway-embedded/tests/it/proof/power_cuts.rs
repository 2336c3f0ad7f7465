//! Power cuts at random calls of a simulated disk, again and again on one store, also during recovery.

use std::sync::Arc;

use laneway_embedded::SyncMode;

use super::lives::{Lives, Tally, Way, Wrap};
use super::print;

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

#[test]
fn control_without_syncs_the_same_power_cuts_lose_something() {
    let tally = lives(0..6, 12, SyncMode::Os, false);
    print(&format!(
        "control, sync = os: {} of 6 stores lost something in power cuts",
        tally.violations.len()
    ));
    assert!(tally.violations.len() >= 3, "the test cannot see losses: {tally:?}");
}

#[test]
fn control_on_a_lying_disk_the_same_power_cuts_lose_something() {
    let tally = lives(0..6, 12, SyncMode::Always, true);
    print(&format!(
        "control, lying disk: {} of 6 stores lost something in power cuts",
        tally.violations.len()
    ));
    assert!(tally.violations.len() >= 3, "the test cannot see losses: {tally:?}");
}
