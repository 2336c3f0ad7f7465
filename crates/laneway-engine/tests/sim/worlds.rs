//! Many worlds, the planted bugs, and the same world twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Clock, Incarnation};
use laneway_embedded::MemoryStore;
use laneway_engine::Stores;
use laneway_testkit::sim::{Outcome, Plant, Replicated, Setup, run};
use parking_lot::Mutex;

use crate::seam;

/// Worlds in one run of the tests.
const SEEDS: u64 = 300;
/// Worlds in which a planted bug must be found. All of them are clean without it.
const SEEDS_PER_PLANT: u64 = 200;
/// What the worlds of one run must have simulated together.
const SIMULATED_MIN: Duration = Duration::from_secs(50 * 3_600);
/// How much must have gone wrong in them.
const FAULTS_MIN: u64 = 50_000;

/// What must have happened in the worlds of one run, at least so often: a run in which nobody was ever fenced shows
/// nothing about fences.
const SOMETIMES: [(&str, u64); 60] = [
    ("commit", 50_000),
    ("run", 50_000),
    ("event", 30_000),
    ("fault", 2_000),
    ("crash", 500),
    ("crash between effect and answer", 20),
    ("killed by a handler", 50),
    ("drained", 200),
    ("store stalled", 50),
    ("could not start", 1),
    ("wake-up lost", 1_000),
    ("commit fenced", 200),
    ("commit repeated", 100),
    ("commit of a dead process refused", 20),
    ("commit of a dead process arrived in time", 5),
    ("late commit refused", 20),
    ("late seizure refused", 1),
    ("append of a dead process arrived", 5),
    ("seat taken from a dead owner", 1_000),
    ("run under a lost grant", 10),
    ("duplicate append caught", 100),
    ("emit forwarded again and caught", 10),
    ("emit forwarded after a crash", 20),
    ("another attempt", 1_000),
    ("job done after a retry", 50),
    ("large result", 10),
    ("lane parked", 200),
    ("lane paused", 100),
    ("lane diverts", 50),
    ("lane held", 100),
    ("dead letter revived", 50),
    ("start of a suspect committed", 500),
    ("crash counted", 100),
    ("superseded", 500),
    ("expired", 100),
    ("cancelled", 50),
    ("reset", 10),
    ("claim extended", 50),
    ("node joined", 1_000),
    ("node buried", 1_000),
    ("node departed", 200),
    ("node cut off", 300),
    ("node frozen", 200),
    ("joined again with a new token", 500),
    ("lease renewed", 20_000),
    ("lease broken", 50),
    ("drain wished", 50),
    ("drain lifted", 50),
    ("another leader", 500),
    ("seat moved by plan", 1_000),
    ("seat taken after a departure", 100),
    ("seat taken from a buried node", 2_000),
    ("world with skewed clocks", 50),
    ("wall clock set", 200),
    ("store lost its end", 200),
    ("acknowledged event lost with the store", 50),
    ("commit of before a failover refused", 10),
    ("seat taken after a failover", 1_000),
    ("failover behind a failover", 50),
    ("claim settled again", 200),
];

struct Memory(Arc<MemoryStore>);

impl Replicated for Memory {
    fn stores(&self) -> Stores {
        let store = Arc::clone(&self.0);
        Stores { store: store.clone(), documents: store.clone(), wakeups: store }
    }

    fn copy(&self, incarnation: Incarnation) -> Box<dyn Replicated> {
        Box::new(Self(Arc::new(self.0.restored(incarnation))))
    }
}

fn open(clock: Arc<dyn Clock>) -> Box<dyn Replicated> {
    Box::new(Memory(Arc::new(MemoryStore::with_incarnation(clock, Incarnation(1)))))
}

fn world(seed: u64, plant: Option<Plant>) -> Outcome {
    run(Setup { seed, plant, keep_text: false }, &open)
}

/// What a reader of a failure needs: what was broken, what the seed drew, and how to see it again.
fn told(outcome: &Outcome) -> String {
    let broken: Vec<String> =
        outcome.violations.iter().map(|found| format!("  {}: {}", found.invariant, found.detail)).collect();
    let seed = outcome.setup.seed;
    format!(
        "seed {seed}: {}\n{}\n  replay: LANEWAY_SIM_SEED={seed} cargo test -p laneway-engine --test sim -- replay --nocapture",
        outcome.options,
        broken.join("\n")
    )
}

/// What came of many worlds.
#[derive(Default)]
struct Sum {
    seeds: u64,
    simulated: Duration,
    happened: BTreeMap<&'static str, u64>,
    broken: Vec<String>,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.simulated += outcome.simulated;
        for (what, count) in &outcome.happened {
            *self.happened.entry(what).or_default() += count;
        }
        if !outcome.violations.is_empty() {
            self.broken.push(told(outcome));
        }
    }

    fn count(&self, what: &str) -> u64 {
        self.happened.get(what).copied().unwrap_or(0)
    }

    /// Everything that went wrong, other than by a call that was answered as it should be.
    fn faults(&self) -> u64 {
        [
            "fault",
            "crash",
            "crash between effect and answer",
            "killed by a handler",
            "store stalled",
            "wake-up lost",
            "node cut off",
            "node frozen",
            "lease broken",
            "wall clock set",
            "store lost its end",
        ]
        .map(|what| self.count(what))
        .iter()
        .sum()
    }
}

fn sum_of(seeds: std::ops::Range<u64>) -> Sum {
    let sum = Mutex::new(Sum::default());
    seam::on_every_core(seeds, |seed| {
        let outcome = world(seed, None);
        sum.lock().add(&outcome);
    });
    sum.into_inner()
}

/// The bugs that were found, with the seed and the promise that told.
fn planted_bugs_found() -> Vec<(Plant, Option<(u64, String)>)> {
    let found = Mutex::new(Vec::new());
    seam::on_every_core(0..Plant::ALL.len() as u64, |at| {
        let plant = Plant::ALL[usize::try_from(at).expect("a few")];
        let caught = (1..=SEEDS_PER_PLANT).find_map(|seed| {
            let outcome = world(seed, Some(plant));
            let first = outcome.violations.iter().find(|found| plant.breaks().contains(&found.invariant))?;
            Some((seed, format!("{}: {}", first.invariant, first.detail)))
        });
        found.lock().push((plant, caught));
    });
    found.into_inner()
}

#[test]
fn worlds_keep_every_promise_and_every_planted_bug_is_caught() {
    let sum = sum_of(1..SEEDS + 1);
    let planted = planted_bugs_found();
    let caught = planted.iter().filter(|(_, caught)| caught.is_some()).count();
    for (plant, caught) in &planted {
        println!("planted {plant:?}: {caught:?}");
    }
    println!("{:?}", sum.happened);
    println!(
        "simulation: {} seeds, {:.1} simulated hours, {} faults, {} commits, {} fenced, {} violations, \
         planted bugs caught {caught} of {}",
        sum.seeds,
        sum.simulated.as_secs_f64() / 3_600.0,
        sum.faults(),
        sum.count("commit"),
        sum.count("commit fenced"),
        sum.broken.len(),
        planted.len()
    );
    assert!(sum.broken.is_empty(), "{} worlds broke a promise:\n{}", sum.broken.len(), sum.broken.join("\n"));
    assert_eq!(caught, Plant::ALL.len(), "a simulation that misses a planted bug proves nothing");
    let seldom: Vec<_> = SOMETIMES.iter().filter(|(what, least)| sum.count(what) < *least).collect();
    assert!(seldom.is_empty(), "these happened less often than they must: {seldom:?}");
    assert!(sum.simulated >= SIMULATED_MIN, "only {:?} were simulated", sum.simulated);
    assert!(sum.faults() >= FAULTS_MIN, "only {} faults", sum.faults());
}

#[test]
fn same_seed_gives_the_same_history() {
    seam::on_every_core(1..9, |seed| {
        let setup = Setup { seed, plant: None, keep_text: true };
        // The second time everything is told to somebody: that must change nothing.
        let told = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(std::io::sink);
        let (first, second) =
            (run(setup, &open), tracing::subscriber::with_default(told.finish(), || run(setup, &open)));
        let differ = first.text.iter().zip(&second.text).position(|(one, other)| one != other);
        if let Some(at) = differ {
            panic!("seed {seed} differs at {at}:\n{}\n{}", first.text[at], second.text[at]);
        }
        assert_eq!(first.text.len(), second.text.len(), "seed {seed}: one history is longer");
        assert!(first.records > 500, "seed {seed}: a world in which next to nothing happens shows nothing");
    });
}

/// Runs the world of `LANEWAY_SIM_SEED` and prints its history; with `LANEWAY_SIM_COUNT` so many from there on, without
/// their histories, until one breaks a promise. `LANEWAY_SIM_PLANT` plants the bug of that number.
#[test]
fn replay() {
    let from = seam::number_from("LANEWAY_SIM_SEED").unwrap_or(1);
    let count = seam::number_from("LANEWAY_SIM_COUNT");
    let plant = seam::number_from("LANEWAY_SIM_PLANT")
        .map(|at| Plant::ALL[usize::try_from(at).expect("a small number")]);
    if let Some(count) = count {
        seam::on_every_core(from..from.saturating_add(count), |seed| {
            let outcome = world(seed, plant);
            assert!(outcome.violations.is_empty(), "{}", told(&outcome));
        });
        return;
    }
    let keep_text = seam::number_from("LANEWAY_SIM_SEED").is_some();
    let outcome = run(Setup { seed: from, plant, keep_text }, &open);
    outcome.text.iter().for_each(|line| println!("{line}"));
    println!("{:?} in {} records: {:?}", outcome.simulated, outcome.records, outcome.happened);
    assert!(outcome.violations.is_empty(), "{}", told(&outcome));
}
