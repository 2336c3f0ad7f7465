//! Lanes that stand in the way: lanes that are parked at their first event, a hot lane with a long siding, and one lane
//! that runs for the whole time. How fast the others of a backlog are beside them, beside a backlog without those.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::{Key, StartAt};
use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, LaneRun, Retry, Run};
use tokio::sync::watch;

use super::load::load;
use crate::context::{Context, progress};
use crate::measured::{Counts, Measured, median};
use crate::node::Node;
use crate::report::Row;
use crate::store::BenchStore;
use crate::workload::{SHARDS, key};
use crate::{Failure, cpu, memory, seam};

pub(super) const NAME: &str = "interference";
/// Keys of the other lanes; above them come the blocked lanes, then the hot one, then the one that runs and runs.
const KEYS: u32 = 50_000;
const ROUNDS: usize = 3;

/// How much of what is in the backlog.
#[derive(Clone, Copy)]
struct Plan {
    others: u32,
    blocked_lanes: u32,
    /// Events of each blocked lane.
    behind: u32,
    hot: u32,
}

impl Plan {
    fn with_nothing_in_the_way(self) -> Self {
        Self { blocked_lanes: 0, hot: 0, ..self }
    }

    /// How many of the other lanes' events are waited for. Of the last tenth most lie in the partition that happens to be
    /// the last: one partition alone is no measure of the lanes' rate.
    fn measured(self) -> u64 {
        u64::from(self.others) * 9 / 10
    }

    fn hot_key(self) -> u32 {
        KEYS + self.blocked_lanes
    }

    fn endless_key(self) -> u32 {
        self.hot_key() + 1
    }

    /// The keys of the events that stand in the way, well mixed behind the one that never ends.
    fn in_the_way(self) -> Vec<u32> {
        let blocked = self.blocked_lanes * self.behind;
        let mut numbers: Vec<u32> = (0..blocked).map(|event| KEYS + event % self.blocked_lanes).collect();
        numbers.extend((0..self.hot).map(|_| self.hot_key()));
        fastrand::Rng::with_seed(9).shuffle(&mut numbers);
        if self.hot > 0 {
            numbers.insert(0, self.endless_key());
        }
        numbers
    }

    /// The keys of the other lanes' events.
    fn the_others(self) -> impl Iterator<Item = u32> {
        (0..self.others).map(|event| event % KEYS)
    }
}

pub(super) fn run(context: &Context) -> Result<Row, Failure> {
    let plan = context.choose(
        Plan { others: 176_000, blocked_lanes: 2_000, behind: 2, hot: 20_000 },
        Plan { others: 880_000, blocked_lanes: 10_000, behind: 2, hot: 100_000 },
    );
    let total = plan.others + plan.blocked_lanes * plan.behind + plan.hot;
    progress(&format!("{NAME}: {total} events, {} blocked lanes, one hot, one endless", plan.blocked_lanes));
    let (mut calm, mut disturbed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        calm.push(measure(context, plan.with_nothing_in_the_way())?);
        disturbed.push(measure(context, plan)?);
    }
    let of =
        |rounds: &[(Measured, f64)], figure: fn(&Measured) -> f64| median(rounds, |(round, _)| figure(round));
    let grown = |rounds: &[(Measured, f64)]| median(rounds, |(_, grown)| *grown);
    Ok(Row {
        name: NAME.to_owned(),
        rate: of(&disturbed, Measured::rate),
        unit: "events/s",
        baseline: Some("nothing in the way"),
        baseline_rate: Some(of(&calm, Measured::rate)),
        cpu_s_per_million: Some(of(&disturbed, Measured::cpu_per_million)),
        baseline_cpu_s_per_million: Some(of(&calm, Measured::cpu_per_million)),
        durability: "synced",
        syncs_per_second: Some(of(&disturbed, Measured::syncs_per_second)),
        baseline_syncs_per_second: Some(of(&calm, Measured::syncs_per_second)),
        rss_mb: Some(memory::resident_mib()?),
        note: format!(
            "rate of the first {} events of other lanes in a backlog of {total}, beside {} lanes parked at the first of {} events, \
             one hot lane of {} events and one lane that runs all the time; median of {ROUNDS} rounds; resident memory grew by {:.0} MiB while they ran, by {:.0} MiB \
             without them",
            plan.measured(),
            plan.blocked_lanes,
            plan.behind,
            plan.hot,
            grown(&disturbed),
            grown(&calm),
        ),
        ..Row::default()
    })
}

/// The other lanes' events until nine tenths of them have run, and by how many MiB the resident memory grew meanwhile.
fn measure(context: &Context, plan: Plan) -> Result<(Measured, f64), Failure> {
    let runtime = seam::runtime()?;
    let folder = context.place.join(NAME);
    let node = runtime.block_on(loaded(&folder, plan))?;
    let measured = runtime.block_on(drain(&node, plan))?;
    node.store.store.close()?;
    context.place.clear(NAME)?;
    Ok(measured)
}

async fn loaded(folder: &Path, plan: Plan) -> Result<Node, Failure> {
    let mut store = BenchStore::create(folder, FileOptions::default()).await?;
    store.register_as(Node::PROCESSOR, StartAt::Beginning).await?;
    load(&store, plan.in_the_way().into_iter(), None).await?;
    store.settle()?;
    Ok(Node::new(store))
}

async fn drain(node: &Node, plan: Plan) -> Result<(Measured, f64), Failure> {
    let meter = Arc::new(Meter::new(plan)?);
    let mut over = meter.over.subscribe();
    let of_handler = Arc::clone(&meter);
    let handler = move |run: Run| Arc::clone(&of_handler).answer(run);
    let settings = ProcessorSettings { uses_state: false, ..ProcessorSettings::default() };
    node.process(settings, handler).await?;
    // Everything that stands in the way does: lanes are parked, the hot one waits in its siding.
    let endless = key(plan.endless_key())?.partition(SHARDS);
    node.until_settled_but(Some(endless)).await?;
    node.pause(true).await?;
    load(&node.store, plan.the_others(), None).await?;
    node.store.settle()?;
    let resident_before = memory::resident_mib()?;
    let (start, cpu_before, before) = (seam::now(), cpu::seconds(), node.counts_with(0));
    node.pause(false).await?;
    over.wait_for(|over| *over).await?;
    let (seconds, cpu_seconds, after) =
        (seam::seconds_since(start), cpu::seconds() - cpu_before, node.counts_with(0));
    let grown = memory::resident_mib()? - resident_before;
    node.stop().await;
    let counts = Counts {
        events: plan.measured(),
        syncs: after.syncs - before.syncs,
        bytes: after.bytes - before.bytes,
        index_syncs: after.index_syncs - before.index_syncs,
    };
    Ok((Measured { seconds, cpu_seconds, counts, ..Measured::default() }, grown))
}

/// The handler: does what the lane of an event asks for, and counts the others.
struct Meter {
    first_blocked: Key,
    hot: Key,
    endless: Key,
    measured: u64,
    ran: AtomicU64,
    /// As many have run as are measured.
    over: watch::Sender<bool>,
}

impl Meter {
    fn new(plan: Plan) -> Result<Self, Failure> {
        Ok(Self {
            first_blocked: key(KEYS)?,
            hot: key(plan.hot_key())?,
            endless: key(plan.endless_key())?,
            measured: plan.measured(),
            ran: AtomicU64::new(0),
            over: watch::Sender::new(false),
        })
    }

    async fn answer(self: Arc<Self>, run: Run) -> Vec<LaneAnswer> {
        let mut answers = Vec::with_capacity(run.lanes.len());
        for lane in &run.lanes {
            answers.push(match &lane.events[0].key {
                Some(key) if *key == self.endless => {
                    let mut over = self.over.subscribe();
                    // The sender lives as long as this handler.
                    let _over = over.wait_for(|over| *over).await;
                    LaneAnswer::all_done(lane)
                }
                Some(key) if *key >= self.first_blocked && *key < self.hot => {
                    LaneAnswer::failed("it stands in the way", Retry::Never)
                }
                Some(key) if *key < self.first_blocked => self.count(lane),
                _ => LaneAnswer::all_done(lane),
            });
        }
        answers
    }

    fn count(&self, lane: &LaneRun) -> LaneAnswer {
        if self.ran.fetch_add(1, Ordering::Relaxed) + 1 == self.measured {
            self.over.send_replace(true);
        }
        LaneAnswer::all_done(lane)
    }
}
