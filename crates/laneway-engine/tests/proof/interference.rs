//! Lanes that stand in the way cost the others nothing: 10,000 parked lanes, one hot lane with a long siding and one lane
//! that runs all the time. What the store is asked for per event of the other lanes stays what it is without them, and
//! so does what the engine holds in memory.
//!
//! Counts work, not time: the benchmark row `interference` measures the rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::{Draft, Key, Kind, StreamSettings};
use laneway_embedded::MemoryStore;
use laneway_engine::handler::{LaneAnswer, LaneRun, Retry, Run};
use laneway_engine::log::Appending;
use laneway_engine::service::TokioClock;
use laneway_engine::{Engine, Env, ProcessorSettings, Stores};
use tokio::sync::watch;

use crate::counting::{Counted, Counting};
use crate::print::print;
use crate::seam;

const PARTITIONS: u32 = 4;
const BLOCKED_LANES: u32 = 10_000;
const HOT_EVENTS: u32 = 20_000;
const OTHERS: u32 = 60_000;
const OTHER_LANES: u32 = 5_000;
/// How long an event of the hot lane takes, on paused time.
const HOT_RUN: Duration = Duration::from_millis(10);
/// Longer than anything takes, on paused time.
const LONG: Duration = Duration::from_secs(3_600);

struct World {
    engine: Engine,
    store: Arc<Counting>,
    ran: watch::Receiver<u64>,
}

impl World {
    async fn new() -> Self {
        let env = Env::seeded(Arc::new(TokioClock::start()), 11);
        let memory = Arc::new(MemoryStore::new(env.clock()));
        let store = Counting::new(Arc::clone(&memory));
        let stores = Stores { store: store.clone(), documents: memory.clone(), wakeups: memory };
        let engine = Engine::new(stores, env);
        let settings = StreamSettings { partitions: PARTITIONS, ..StreamSettings::default() };
        engine.define_stream("orders", settings).await.expect("a new stream");
        let (tell, ran) = watch::channel(0);
        let others = Arc::<AtomicU64>::default();
        let handler = move |run: Run| {
            let (tell, others) = (tell.clone(), Arc::clone(&others));
            async move {
                let answer = answer(&run.lanes[0], &others).await;
                tell.send_replace(others.load(Ordering::Relaxed));
                vec![answer]
            }
        };
        let settings = ProcessorSettings { uses_state: false, ..ProcessorSettings::default() };
        engine.process("charge", "orders", settings, Arc::new(handler)).await.expect("a new processor");
        Self { engine, store, ran }
    }

    async fn send(&self, keys: impl Iterator<Item = String>) {
        let drafts: Vec<Draft> =
            keys.map(|key| Draft::new(Some(Key::new(key).expect("short")), Kind::default(), "x")).collect();
        for drafts in drafts.chunks(1_000) {
            let appending = Appending { drafts: drafts.to_vec(), object: None };
            for sent in self.engine.producer().append("orders", appending).await.expect("it exists") {
                sent.receipt.expect("the store takes it");
            }
        }
    }

    /// Sends what stands in the way, and waits until it does.
    async fn obstruct(&self) {
        self.send(["endless".to_owned()].into_iter()).await;
        let blocked = (0..2 * BLOCKED_LANES).map(|event| format!("blocked {}", event % BLOCKED_LANES));
        let hot = (0..HOT_EVENTS).map(|_| "hot".to_owned());
        self.send(blocked.chain(hot)).await;
        while self.parked().await < BLOCKED_LANES as usize {
            seam::wait(HOT_RUN).await;
        }
    }

    async fn parked(&self) -> usize {
        let kind = Some(laneway_core::BlockKind::Parked);
        self.engine.looker().held_lanes("charge", kind, usize::MAX).await.expect("it exists").len()
    }

    /// What the store was asked for while the other lanes ran their events.
    async fn run_others(&mut self) -> Counted {
        let before = self.store.counted();
        self.send((0..OTHERS).map(|event| format!("other {}", event % OTHER_LANES))).await;
        let all = self.ran.wait_for(|ran| *ran == u64::from(OTHERS));
        drop(seam::within(LONG, all).await.expect("they all run").expect("the handler lives"));
        self.store.counted().since(before)
    }
}

async fn answer(lane: &LaneRun, others: &AtomicU64) -> LaneAnswer {
    let key = lane.events[0].key.clone().expect("all have one");
    match key.as_ref() {
        b"endless" => std::future::pending().await,
        b"hot" => seam::wait(HOT_RUN).await,
        key if key.starts_with(b"blocked") => {
            return LaneAnswer::failed("it stands in the way", Retry::Never);
        }
        _ => drop(others.fetch_add(1, Ordering::Relaxed)),
    }
    LaneAnswer::all_done(lane)
}

#[tokio::test(start_paused = true)]
async fn lanes_in_the_way_cost_the_others_nothing() {
    let calm = World::new().await.run_others().await;
    let mut world = World::new().await;
    world.obstruct().await;
    let disturbed = world.run_others().await;
    assert_eq!(world.parked().await, BLOCKED_LANES as usize, "they stand where they stood");
    print(&format!(
        "{OTHERS} events beside {BLOCKED_LANES} parked lanes, one hot and one endless: {disturbed}; without them: {calm}"
    ));
    let most = |calm: u64| calm + calm / 5;
    assert!(disturbed.events <= most(calm.events), "events were read more than once");
    // The hot lane goes on meanwhile, with a load of its siding now and then.
    assert!(disturbed.lanes <= calm.lanes + 100, "lanes that wait were looked at");
}

/// The control: the counts do see lanes that are looked at.
#[tokio::test(start_paused = true)]
async fn lanes_that_are_looked_at_are_counted() {
    let world = World::new().await;
    world.obstruct().await;
    let before = world.store.counted();
    world.parked().await;
    assert!(world.store.counted().since(before).lanes >= u64::from(BLOCKED_LANES));
}
