//! A history of many clients whose only way to the store leads through a proxy that breaks it again and again.
//!
//! For stores on a server. Everything is recorded, and every invariant is checked afterwards, as in `histories`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use super::histories::{judge, play};
use crate::bench::Bench;
use crate::fault::{Patient, Proxy, Road};
use crate::fixture::Fixture;
use crate::seam;
use crate::workload::World;

/// What a slow road takes: less than any store waits for an answer.
const SLOW_BY: Duration = Duration::from_millis(20);
/// How many chunks pass, or come late, before the road changes.
const CHUNKS: std::ops::Range<u64> = 20..200;

/// Runs one history while the road changes; panics when an invariant is broken. Answers how often each kind of road was met
/// by somebody. The fixture opens its stores through this proxy, and they give up on an answer within a second or so.
pub fn on_bad_roads(fixture: Arc<dyn Fixture>, proxy: &Proxy, seed: u64) -> BTreeMap<Road, u64> {
    let whole = async {
        let bench = Bench::open(fixture).await;
        bench.wrap_store(|store| Arc::new(Patient(store)));
        let world = World::new(&bench).await;
        let mut met = BTreeMap::new();
        tokio::select! {
            () = play(&bench, &world, seed) => {}
            never = drive(proxy, seed, &mut met) => match never {},
        }
        proxy.set(Road::Open);
        judge(&world, seed);
        met
    };
    let met = seam::runtime().block_on(seam::guarded(Box::pin(whole)));
    met.unwrap_or_else(|| panic!("seed {seed}: no end within {:?}", seam::CASE_GUARD))
}

/// Changes the road for ever. A fault lasts until somebody has met it and, where nobody is told, until somebody gave up on
/// his connection.
async fn drive(proxy: &Proxy, seed: u64, met: &mut BTreeMap<Road, u64>) -> Infallible {
    let mut random = fastrand::Rng::with_seed(seed);
    let [_, faults @ ..] = Road::all(SLOW_BY);
    let mut line = Vec::new();
    loop {
        let (before, chunks) = (proxy.carried(), random.u64(CHUNKS));
        proxy.until(|carried| carried.passed >= before.passed + chunks).await;
        if line.is_empty() {
            line = faults.to_vec();
            random.shuffle(&mut line);
        }
        let road = line.pop().expect("it was just filled");
        let (before, wanted) = (proxy.carried(), if matches!(road, Road::Slow(_)) { chunks } else { 1 });
        proxy.set(road);
        proxy.until(|carried| carried.met(road) >= before.met(road) + wanted).await;
        if matches!(road, Road::BlackHole | Road::RepliesLost) {
            proxy.until(|carried| carried.connections > before.connections).await;
        }
        proxy.set(Road::Open);
        *met.entry(road).or_default() += 1;
    }
}
