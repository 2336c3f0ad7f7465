//! Cases about concurrent histories: many clients at once, everything recorded, every invariant checked afterwards.
//!
//! The seeds are fixed; `LANEWAY_SEED` runs another one. Failures name the seed.

use std::sync::Arc;

use crate::bench::Bench;
use crate::check::{self, Violation};
use crate::fault::LostAnswers;
use crate::seam;
use crate::workload::{Owner, World, operate, produce};

const SEEDS: [u64; 3] = [1, 20_261, 77_003];
const PRODUCERS: usize = 3;
const OWNERS_PER_SEAT: usize = 2;
const STEPS: usize = 60;
/// Runs to add at most when something has not happened yet.
const RUNS_MAX: u64 = 50;

/// What must have happened in some run, or they show nothing.
const EXPECTED: [&str; 15] = [
    "a duplicate was caught by its dedup id",
    "a duplicate was caught by its origin",
    "a wrong expectation was refused",
    "another body was refused",
    "a commit was fenced",
    "an old fence was refused",
    "a repeated commit was answered the same",
    "a late repeat was fenced",
    "a lane was parked",
    "a siding was emptied",
    "emits were forwarded",
    "a request was filed twice",
    "a delayed draft joined its lane",
    "events were trimmed",
    "an ended job was seen",
];

fn seeds() -> Vec<u64> {
    let given = std::env::var("LANEWAY_SEED").ok().and_then(|text| text.parse().ok());
    given.map_or_else(|| SEEDS.to_vec(), |seed| vec![seed])
}

/// Runs one workload to its end and settles the rest.
pub(super) async fn play(bench: &Bench, world: &Arc<World>, seed: u64) {
    let mut tasks = Vec::new();
    for name in 0..PRODUCERS {
        tasks.push(seam::spawn(Box::pin(produce(world.clone(), name, seed ^ (name as u64 + 1) << 8, STEPS))));
    }
    for (index, seat) in world.seats.clone().into_iter().enumerate() {
        for rival in 0..OWNERS_PER_SEAT {
            let owner = Owner::new(world.clone(), seat, seed ^ (index * 16 + rival + 1) as u64);
            tasks.push(seam::spawn(Box::pin(owner.compete(4 * STEPS))));
        }
    }
    tasks.push(seam::spawn(Box::pin(operate(world.clone(), seed ^ 0xFFFF, 2 * STEPS))));
    for task in tasks {
        if let Err(error) = task.await {
            panic!("seed {seed}: a client failed: {error}");
        }
    }
    let promote = laneway_core::store::Promote { shard: world.work.shard, limit: 10_000 };
    world.insist(|| world.store.promote(promote)).await.0.expect("a shard that exists");
    for (index, seat) in world.seats.clone().into_iter().enumerate() {
        Box::pin(Owner::new(world.clone(), seat, seed ^ (0xD7A1 + index as u64)).drain()).await;
    }
    for shard in [world.work.shard, world.target.shard] {
        world.look_at_all(shard).await.expect("the shard is readable");
        let snapshot = bench.snapshot(shard).await;
        world.history.lock().finals.insert(shard, snapshot);
    }
}

fn violations(world: &World) -> Vec<Violation> {
    check::check(&world.history.lock())
}

pub(super) fn judge(world: &World, seed: u64) {
    let found = violations(world);
    assert!(
        found.is_empty(),
        "seed {seed}: {} violations, first {:#?}",
        found.len(),
        &found[..found.len().min(5)]
    );
}

/// Invariants O1, O2, S3, S4, D1 to D4, A1 to A3 and the chain, with rivals on every seat.
pub async fn rivals_keep_every_invariant(bench: &Bench) {
    let given = seeds();
    // How tasks interleave is not in the seed's hands, so more runs follow until everything has happened.
    let more = (1..=RUNS_MAX).map(|run| given[0].wrapping_add(run << 20));
    let mut missing = EXPECTED.to_vec();
    for (run, seed) in given.iter().copied().chain(more).enumerate() {
        if run >= given.len() && missing.is_empty() {
            return;
        }
        let world = World::new(bench).await;
        play(bench, &world, seed).await;
        judge(&world, seed);
        missing.retain(|what| world.sometimes.count(what) == 0);
    }
    panic!("seed {}: no run shows anything about: {missing:?}", given[0]);
}

/// The same when requests and answers are lost: invariant D3, and repeats change nothing.
pub async fn lost_answers_keep_every_invariant(bench: &Bench) {
    let seeds = seeds();
    let lost = Arc::new(LostAnswers::new(bench.store(), seeds[0], 10));
    bench.wrap_store(|_| lost.clone());
    for seed in seeds {
        let world = World::new(bench).await;
        play(bench, &world, seed).await;
        judge(&world, seed);
    }
    let (requests, answers) = lost.lost();
    assert!(requests > 0 && answers > 0, "nothing was lost: {requests} requests, {answers} answers");
}
