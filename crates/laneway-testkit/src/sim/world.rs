//! How one run goes: lives of each node one after the other while faults last, then calm, then the reckoning.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures::future::{join, join_all, select_all};
use laneway_core::store::{Query, Rows};
use laneway_core::{Clock, EventId, Incarnation, Partition, Seat, Shard, Steady, StreamInfo, Topic};
use laneway_engine::Stores;
use parking_lot::Mutex;

use super::bell::Bell;
use super::judge::Judge;
use super::life::{SimClock, Skew};
use super::node::Node;
use super::options::{Options, pick};
use super::plant::{Plant, Planted};
use super::plant_documents::PlantedDocuments;
use super::primary::{Primary, Replicated};
use super::record::{Log, Record};
use crate::check::Violation;
use crate::seam;

/// Opens an empty store on a clock, always as its first incarnation.
pub type OpenStore<'a> = dyn Fn(Arc<dyn Clock>) -> Box<dyn Replicated> + Sync + 'a;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Everything that is left to chance follows from this.
    pub seed: u64,
    /// The bug to plant.
    pub plant: Option<Plant>,
    /// Whether to keep the history as text.
    pub keep_text: bool,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What was run.
    pub setup: Setup,
    /// What the seed drew.
    pub options: Options,
    /// Broken promises.
    pub violations: Vec<Violation>,
    /// How often each interesting thing happened.
    pub happened: Vec<(&'static str, u64)>,
    /// How much time passed in the world.
    pub simulated: Duration,
    /// How many records the history has.
    pub records: u64,
    /// The history, if it was kept.
    pub text: Vec<String>,
}

/// Up to which event each shard is written down.
pub(super) type Joined = BTreeMap<Shard, EventId>;

/// What every part of a run shares.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) options: Options,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) log: Arc<Log>,
    pub(crate) below: Stores,
    pub(super) primary: Arc<Primary>,
    pub(crate) bell: Bell,
    plant: Option<Arc<Planted>>,
    calm: AtomicBool,
    faulty_until: Steady,
    stalled_until: Mutex<Steady>,
    names: AtomicU64,
    lives: AtomicU64,
    /// How the clocks of the machine at each place go wrong.
    skews: Mutex<[Skew; 3]>,
    /// Up to which event each shard is written down.
    joined: Mutex<Joined>,
}

/// Longest time that everything may take to come to its end once faults have stopped. A lane whose batches contain one
/// that hangs fails every event of them after all its attempts: half a minute each, and dozens wait.
const CALM_MAX: Duration = Duration::from_secs(60 * 60);
/// Longest time that a call can be on its way.
const TRAVEL_MAX: Duration = Duration::from_secs(25);
/// Longest time that a call takes whose sender waits for its answer.
const DELAY_MAX: Duration = Duration::from_secs(3);
/// A seat has an owner again so long after the lease of the one before has ended.
const RECOVERY_MAX: Duration = Duration::from_secs(2);

/// Runs one world to its end.
pub fn run(setup: Setup, open: &OpenStore<'_>) -> Outcome {
    let runtime = seam::paused_runtime();
    let outcome = runtime.block_on(async {
        let world = World::new(setup, open);
        let began = world.clock.true_now().steady;
        world.clone().go().await;
        let violations = world.log.judge(|judge| judge.violations().to_vec());
        let happened = world.log.judge(|judge| judge.happened());
        Outcome {
            setup,
            options: world.options.clone(),
            violations,
            happened,
            simulated: world.clock.true_now().steady.since(began),
            records: world.log.records(),
            text: world.log.take_text(),
        }
    });
    drop(runtime);
    outcome
}

impl World {
    fn new(setup: Setup, open: &OpenStore<'_>) -> Arc<Self> {
        let options = Options::draw(setup.seed);
        let clock = Arc::new(SimClock::start());
        let primary = Primary::new(open(clock.clone()));
        let mut below = Stores {
            store: primary.clone(),
            documents: primary.clone(),
            // Wake-ups go by the world's bell.
            wakeups: primary.wakeups(),
        };
        let plant = setup.plant.map(|plant| Arc::new(Planted::new(below.store.clone(), plant, setup.seed)));
        if let Some(planted) = &plant {
            below.store = planted.clone();
            below.documents =
                Arc::new(PlantedDocuments::new(below.documents, planted.clone(), options.lease));
        }
        let log = Arc::new(Log::new(clock.clone(), Judge::new(options.clone()), setup.keep_text));
        Arc::new(Self {
            seed: setup.seed,
            faulty_until: clock.true_now().steady.after(options.faulty_for),
            clock,
            log,
            below,
            primary,
            bell: Bell::default(),
            plant,
            calm: AtomicBool::new(false),
            stalled_until: Mutex::new(Steady(0)),
            names: AtomicU64::new(1),
            lives: AtomicU64::new(0),
            skews: Mutex::new(options.skews()),
            joined: Mutex::default(),
            options,
        })
    }

    /// Whether faults have stopped.
    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// A number that nobody else has.
    pub(crate) fn number(&self) -> u64 {
        self.names.fetch_add(1, Ordering::Relaxed)
    }

    /// Chance of its own for one part of the world.
    pub(crate) fn chance(&self, part: u64) -> Rng {
        Rng::with_seed(
            self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part.wrapping_mul(0xd1b5_4a32_d192_ed03),
        )
    }

    /// The moment so much later, or the one in which faults stop.
    pub(super) fn faulty_for(&self, length: Duration) -> Steady {
        self.clock.true_now().steady.after(length).min(self.faulty_until)
    }

    /// The store answers nobody until then.
    pub(super) fn stall(&self, until: Steady) {
        *self.stalled_until.lock() = until;
    }

    /// Waits while the store answers nobody.
    pub(crate) async fn stalled(&self) {
        let until = *self.stalled_until.lock();
        seam::pass(until.since(self.clock.true_now().steady)).await;
    }

    /// How the clocks of the machine at a place go wrong.
    pub(crate) fn skew(&self, place: u32) -> Skew {
        self.skews.lock()[place as usize]
    }

    /// The wall clock of the machine at a place was set.
    pub(super) fn set_skew(&self, place: u32, by_micros: i64) {
        let skew = &mut self.skews.lock()[place as usize];
        *skew = skew.set_by(by_micros);
    }

    /// Whether one of the bugs is planted.
    pub(crate) fn is_planted(&self) -> bool {
        self.plant.is_some()
    }

    /// Whether steady clocks stand still while their machine does.
    pub(crate) fn clock_sleeps(&self) -> bool {
        self.plant.as_ref().is_some_and(|planted| planted.is(Plant::ClockThatSleeps))
    }

    /// Writes down what has joined a shard since it was last looked at.
    pub(crate) async fn record_joined(&self, shard: Shard) {
        let after = self.joined.lock().get(&shard).copied().unwrap_or_default();
        let rows = self.below.store.query(Query::Events(shard, after, 1_000)).await;
        let Ok(Rows::Events(events)) = rows else { return };
        let Some(last) = events.last() else { return };
        self.joined.lock().insert(shard, last.id);
        self.log.push(Record::Joined { shard, events });
        self.bell.ring(Topic::Shard(shard));
    }

    /// Up to which event each shard is written down.
    pub(super) fn joined(&self) -> Joined {
        self.joined.lock().clone()
    }

    pub(super) fn set_joined(&self, joined: Joined) {
        *self.joined.lock() = joined;
    }

    /// Which life of the store a failover begins.
    pub(super) fn life_after_failover(&self, next: Incarnation) -> Incarnation {
        let unnoticed = self.plant.as_ref().is_some_and(|planted| planted.is(Plant::FailoverUnnoticed));
        if unnoticed { self.below.store.about().incarnation } else { next }
    }

    async fn go(self: Arc<Self>) {
        let places = (0..self.options.nodes).map(|place| self.lives_at(place));
        let (nodes, ()) = join(join_all(places), self.lose_ends()).await;
        self.calm.store(true, Ordering::Relaxed);
        if self.options.is_cluster() {
            // What is on its way to somebody who waits for it.
            seam::pass(DELAY_MAX).await;
        }
        self.log.push(Record::Calm);
        self.lift_drains().await;
        let mut nodes = self.settle_down(nodes).await;
        if self.is_broken() {
            return;
        }
        // Whatever is still on its way has arrived after this; then nothing may change any more.
        if self.options.is_cluster() {
            // What arrived last may have ended a lease, or brought something that ends a process.
            let mut rng = self.chance(3);
            self.keep_alive(&mut nodes, TRAVEL_MAX + self.options.lease + RECOVERY_MAX, &mut rng).await;
            self.look_for_orphans();
        } else {
            seam::pass(TRAVEL_MAX).await;
        }
        nodes.iter().for_each(|node| node.life.die("the end of the run"));
        self.reckon().await;
    }

    /// One life after the other at one place, until faults stop.
    async fn lives_at(self: &Arc<Self>, place: u32) -> Node {
        let until = self.faulty_until;
        let mut rng = self.chance(1 + 10 * u64::from(place));
        let mut node = self.begin(place).await;
        while self.clock.true_now().steady < until && !self.is_broken() {
            let left = until.since(self.clock.true_now().steady);
            let wait = self.options.incident_every.mul_f64(0.2 + 1.6 * rng.f64()).min(left);
            let died = tokio::select! {
                biased;
                () = node.life.death() => true,
                () = seam::pass(wait) => false,
            };
            node = if died {
                self.crashed_and_restarted(place, &mut rng).await
            } else {
                self.incident(node, place, &mut rng).await
            };
        }
        node
    }

    fn is_broken(&self) -> bool {
        if self.clock.stood_still() {
            self.log
                .judge(|judge| judge.strand(&["time stood still: something turns in a circle".to_owned()]));
        }
        self.log.judge(|judge| !judge.violations().is_empty())
    }

    pub(super) async fn begin(self: &Arc<Self>, place: u32) -> Node {
        let number = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(planted) = &self.plant {
            planted.begins(number, &self.clock);
        }
        Node::begin(Arc::clone(self), place, u32::try_from(number).unwrap_or(u32::MAX)).await
    }

    pub(super) async fn crashed_and_restarted(self: &Arc<Self>, place: u32, rng: &mut Rng) -> Node {
        if let Some(planted) = &self.plant {
            planted.crashed();
        }
        self.restart(place, rng).await
    }

    pub(super) async fn restart(self: &Arc<Self>, place: u32, rng: &mut Rng) -> Node {
        let downtime = pick(rng, &[5, 50, 500, 3_000]);
        seam::pass(Duration::from_millis(rng.u64(0..=downtime))).await;
        self.begin(place).await
    }

    /// Starts whoever dies again, until nobody has died for so long.
    async fn keep_alive(self: &Arc<Self>, nodes: &mut [Node], length: Duration, rng: &mut Rng) {
        loop {
            let deaths = select_all(nodes.iter().map(|node| Box::pin(node.life.death())));
            let died = tokio::select! {
                biased;
                (_, place, _) = deaths => place,
                () = seam::pass(length) => return,
            };
            let place = u32::try_from(died).unwrap_or(u32::MAX);
            nodes[died] = self.crashed_and_restarted(place, rng).await;
        }
    }

    /// Lets everything come to its end.
    async fn settle_down(self: &Arc<Self>, mut nodes: Vec<Node>) -> Vec<Node> {
        let until = self.clock.true_now().steady.after(CALM_MAX);
        let mut rng = self.chance(2);
        loop {
            self.keep_alive(&mut nodes, Duration::from_secs(5), &mut rng).await;
            if self.options.is_cluster() {
                self.lift_drains().await;
                self.look_for_orphans();
            }
            let now = self.clock.true_now();
            let stranded = self.log.judge(|judge| judge.stranded());
            if stranded.is_empty() || self.is_broken() {
                return nodes;
            }
            if now.steady >= until {
                self.log.judge(|judge| judge.strand(&stranded));
                return nodes;
            }
        }
    }

    /// Every node may own something again. A wish of before may still be on its way.
    async fn lift_drains(&self) {
        let documents = &self.below.documents;
        for wish in documents.list("cluster/drain/").await.unwrap_or_default() {
            // Nobody else changes it now; if somebody does, it is lifted the next time.
            drop(documents.delete(&wish.name, wish.version).await);
            self.log.push(Record::Lifted { wish: wish.name });
        }
    }

    /// Once there is calm, a seat is without an owner for a lease and the time to recover at most.
    fn look_for_orphans(&self) {
        let now = self.clock.true_now();
        self.log.judge(|judge| judge.look_for_orphans(now, self.options.lease + RECOVERY_MAX));
    }

    /// Compares the store with what must be in it.
    async fn reckon(&self) {
        let Ok(Rows::Streams(streams)) = self.below.store.query(Query::Streams).await else { return };
        for stream in &streams {
            for partition in 0..stream.settings.partitions {
                self.reckon_shard(stream, stream.shard(Partition(partition))).await;
            }
        }
        self.log.judge(|judge| judge.reckon_emits());
    }

    async fn reckon_shard(&self, stream: &StreamInfo, shard: Shard) {
        self.record_joined(shard).await;
        let store = &*self.below.store;
        let found = super::judge::ShardFound::read(store, shard).await;
        self.log.judge(|judge| judge.reckon_shard(shard, &found));
        for processor in &stream.processors {
            let seat = Seat { shard, processor: processor.id };
            let found = super::judge::SeatFound::read(store, seat).await;
            self.log.judge(|judge| judge.reckon_seat(seat, &found));
        }
    }
}
