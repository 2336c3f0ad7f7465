//! The kills themselves, and the control.

use super::folder::{Tally, one_folder};
use crate::print::print;
use crate::seam;

const FOLDERS: u64 = 4;
const KILLS_PER_FOLDER: u64 = 50;
const SIDE_BY_SIDE: usize = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_state_emits_and_jobs_survive_kills() {
    let mut tally = Tally::default();
    let mut repeated = Vec::new();
    for seeds in (1..=FOLDERS).collect::<Vec<_>>().chunks(SIDE_BY_SIDE) {
        let folders: Vec<_> =
            seeds.iter().map(|seed| (*seed, seam::spawn(one_folder(*seed, KILLS_PER_FOLDER)))).collect();
        for (seed, folder) in folders {
            let outcome = folder.await.expect("a folder's proof ends");
            let (found, ledger) = outcome
                .unwrap_or_else(|wrong| panic!("replay: one_folder({seed}, {KILLS_PER_FOLDER}): {wrong}"));
            tally.add(&found);
            repeated.push(ledger.check_effects());
        }
    }
    let Tally { kills, in_opening, events, emits, lanes, jobs, runs, repeats } = &tally;
    print(&format!(
        "{kills} kills ({in_opening} while opening): {events} events and {emits} emits in {lanes} lanes settled once and \
         in order, {jobs} jobs ended once; {runs} runs, {repeats} of them again after a kill; 0 violations"
    ));
    assert!(*kills >= 200 && *events > 4_000 && *emits > 2_000 && *jobs > 1_000 && *lanes > 400, "{tally:?}");
    // The control: effects without the state that is settled with them do happen twice, and this harness sees it.
    assert!(
        repeated.iter().all(Result::is_err),
        "no effect was repeated by {kills} kills: nothing was proven"
    );
}
