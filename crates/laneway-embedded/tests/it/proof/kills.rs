//! kill -9 at random moments: after so many reported answers, or while the worker opens the folder.

use laneway_embedded::SyncMode;

use super::actor::Sort;
use super::child::Working;
use super::killed::{Folder, copy};
use super::print;

const FOLDERS: u64 = 8;
const KILLS_PER_FOLDER: u64 = 25;
const SIDE_BY_SIDE: usize = 4;

#[derive(Debug, Default)]
struct Tally {
    kills: u64,
    in_opening: u64,
    appends: u64,
    commits: u64,
    steps: u64,
    unknown_kept: u64,
    segments: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.in_opening += other.in_opening;
        self.appends += other.appends;
        self.commits += other.commits;
        self.steps += other.steps;
        self.unknown_kept += other.unknown_kept;
        self.segments += other.segments;
    }
}

/// Lets a worker run until a random moment, kills it and gives what it reported.
fn run_and_kill(folder: &Folder, rng: &mut fastrand::Rng, tally: &mut Tally) -> Vec<String> {
    let mut working = Working::start(&folder.orders);
    let wanted = if rng.u8(0..8) == 0 { 0 } else { rng.usize(1..160) };
    let (mut lines, mut answers) = (Vec::new(), 0);
    while let Some(line) = working.line() {
        let opening = line == "opening";
        answers += usize::from(line.starts_with("step") || line.starts_with("sent"));
        lines.push(line);
        if (opening && wanted == 0) || (wanted > 0 && answers >= wanted) {
            break;
        }
    }
    tally.in_opening += u64::from(wanted == 0);
    lines.extend(working.kill());
    tally.kills += 1;
    lines
}

fn one_folder(seed: u64) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let dir = temporary.path().join("store");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut folder = Folder::found(&dir, seed, SyncMode::Always);
    for kill in 0..KILLS_PER_FOLDER {
        let lines = run_and_kill(&folder, &mut rng, &mut tally);
        folder.hear(&lines)?;
        // Every other time a copy is checked, so that the next worker finds the folder as the kill left it.
        if kill % 2 == 0 {
            folder.check(&dir)?;
        } else {
            let copied = copy(&dir, &temporary.path().join(format!("copy-{kill}")));
            folder.check(&copied)?;
            std::fs::remove_dir_all(copied).expect("a copy can go");
        }
        folder.next();
    }
    tally.appends += folder.appends();
    tally.commits += folder.oracle.count(Sort::Commit);
    tally.steps += folder.oracle.counts.values().sum::<u64>() + folder.sends;
    tally.unknown_kept += folder.oracle.unknown_kept;
    let segments = std::fs::read_dir(dir.join("log")).expect("readable").filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.strip_suffix(".seg")?.parse::<u64>().ok()
    });
    tally.segments += segments.max().unwrap_or(0);
    Ok(tally)
}

#[test]
fn nothing_acknowledged_is_lost_by_kills() {
    let mut tally = Tally::default();
    for seeds in (1..=FOLDERS).collect::<Vec<_>>().chunks(SIDE_BY_SIDE) {
        // Most of the time is spent waiting for the disk.
        let outcomes = std::thread::scope(|scope| {
            let running: Vec<_> = seeds.iter().map(|seed| scope.spawn(|| one_folder(*seed))).collect();
            running.into_iter().map(|folder| folder.join().expect("a check ends")).collect::<Vec<_>>()
        });
        for (seed, outcome) in seeds.iter().zip(outcomes) {
            let found = outcome.unwrap_or_else(|wrong| panic!("replay: one_folder({seed}): {wrong}"));
            tally.add(&found);
        }
    }
    print(&format!(
        "{} kills ({} while opening): {} appends, {} commits, {} calls in all acknowledged; {} unanswered ones were \
         there whole; {} segments used; 0 lost",
        tally.kills,
        tally.in_opening,
        tally.appends,
        tally.commits,
        tally.steps,
        tally.unknown_kept,
        tally.segments
    ));
    assert!(tally.kills >= 200 && tally.appends > 4_000 && tally.commits > 1_000, "{tally:?}");
    assert!(tally.unknown_kept > 5 && tally.in_opening > 5 && tally.segments > 40, "{tally:?}");
}
