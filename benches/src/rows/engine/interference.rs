//! Lanes that stand in the way: of a backlog, a tenth belongs to lanes that are parked at their first event, a tenth to
//! one hot lane, and one lane runs for the whole time. How fast the other lanes are, beside a backlog without those.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::StartAt;
use laneway_embedded::FileOptions;
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{LaneAnswer, LaneRun, Retry, Run};
use tokio::sync::watch;

use super::load::load;
use crate::context::{Context, progress};
use crate::measured::{Counts, Measured};
use crate::node::Node;
use crate::report::Row;
use crate::store::BenchStore;
use crate::workload::key;
use crate::{Failure, cpu, memory, seam};

pub(super) const NAME: &str = "interference";
/// Keys of the other lanes; above them come the blocked lanes, then the hot one, then the one that runs and runs.
const KEYS: u32 = 50_000;

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

    /// How many of the other lanes' events are waited for. The last tenth lies in the partition of the hot lane, which is
    /// read to its end when all others have nothing left: one partition alone is no measure of the lanes' rate.
    fn measured(self) -> u64 {
        u64::from(self.others) * 9 / 10
    }

    fn hot_key(self) -> u32 {
        KEYS + self.blocked_lanes
    }

    fn endless_key(self) -> u32 {
        self.hot_key() + 1
    }

    /// The keys of all events, in order: everything is spread evenly.
    fn numbers(self) -> impl Iterator<Item = u32> {
        let (others, blocked) = (self.others, self.blocked_lanes * self.behind);
        let total = u64::from(others + blocked + self.hot);
        let mut rng = fastrand::Rng::with_seed(9);
        let (mut left_others, mut left_blocked, mut left_hot) = (others, blocked, self.hot);
        let first = (self.hot > 0).then(|| self.endless_key());
        first.into_iter().chain((0..total).map(move |_| {
            let left = left_others + left_blocked + left_hot;
            let at = rng.u32(..left);
            if at < left_others {
                left_others -= 1;
                left_others % KEYS
            } else if at < left_others + left_blocked {
                left_blocked -= 1;
                KEYS + left_blocked % self.blocked_lanes
            } else {
                left_hot -= 1;
                self.hot_key()
            }
        }))
    }
}

pub(super) fn run(context: &Context) -> Result<Row, Failure> {
    let plan = context.choose(
        Plan { others: 176_000, blocked_lanes: 2_000, behind: 2, hot: 20_000 },
        Plan { others: 880_000, blocked_lanes: 10_000, behind: 2, hot: 100_000 },
    );
    let total = plan.others + plan.blocked_lanes * plan.behind + plan.hot;
    progress(&format!("{NAME}: {total} events, {} blocked lanes, one hot, one endless", plan.blocked_lanes));
    let (calm, calm_rss) = measure(context, plan.with_nothing_in_the_way())?;
    let (disturbed, rss) = measure(context, plan)?;
    Ok(Row {
        name: NAME.to_owned(),
        rate: disturbed.rate(),
        unit: "events/s",
        baseline: Some("nothing in the way"),
        baseline_rate: Some(calm.rate()),
        cpu_s_per_million: Some(disturbed.cpu_per_million()),
        baseline_cpu_s_per_million: Some(calm.cpu_per_million()),
        durability: "synced",
        syncs_per_second: Some(disturbed.syncs_per_second()),
        baseline_syncs_per_second: Some(calm.syncs_per_second()),
        rss_mb: Some(rss),
        note: format!(
            "rate of the first {} events of other lanes in a backlog of {total}, with {} lanes parked at the first of {} events, \
             one lane of {} events and one lane that runs all the time; resident {rss:.0} MiB, {calm_rss:.0} MiB without them",
            plan.measured(),
            plan.blocked_lanes,
            plan.behind,
            plan.hot,
        ),
        ..Row::default()
    })
}

/// The other lanes' events until nine tenths of them have run, and the resident memory then.
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
    load(&store, plan.numbers(), None).await?;
    store.settle()?;
    Ok(Node::new(store))
}

async fn drain(node: &Node, plan: Plan) -> Result<(Measured, f64), Failure> {
    let ran = Arc::<AtomicU64>::default();
    let (others_done, mut done) = watch::channel(false);
    let counter = Arc::clone(&ran);
    let (others, endless) = (plan.measured(), key(plan.endless_key())?);
    let (hot, first_blocked) = (key(plan.hot_key())?, key(KEYS)?);
    let handler = move |run: Run| {
        let (counter, others_done) = (Arc::clone(&counter), others_done.clone());
        let (endless, hot, first_blocked) = (endless.clone(), hot.clone(), first_blocked.clone());
        async move {
            let answer = |lane: &LaneRun| {
                let key = lane.events[0].key.as_ref();
                if key.is_some_and(|key| *key >= first_blocked && *key < hot) {
                    return LaneAnswer::failed("it stands in the way", Retry::Never);
                }
                if key.is_some_and(|key| *key < first_blocked)
                    && counter.fetch_add(1, Ordering::Relaxed) + 1 == others
                {
                    others_done.send_replace(true);
                }
                LaneAnswer::all_done(lane)
            };
            if run.lanes[0].events[0].key.as_ref() == Some(&endless) {
                // The sender lives in the handler, so this ends with the flag.
                let mut done = others_done.subscribe();
                let _ended = done.wait_for(|done| *done).await;
            }
            run.lanes.iter().map(answer).collect()
        }
    };
    let (start, cpu_before, before) = (seam::now(), cpu::seconds(), node.counts_with(0));
    let settings = ProcessorSettings { uses_state: false, ..ProcessorSettings::default() };
    node.process(settings, handler).await?;
    done.wait_for(|done| *done).await?;
    let (seconds, cpu_seconds, after) =
        (seam::seconds_since(start), cpu::seconds() - cpu_before, node.counts_with(0));
    let rss = memory::resident_mib()?;
    node.stop().await;
    let counts = Counts {
        events: others,
        syncs: after.syncs - before.syncs,
        bytes: after.bytes - before.bytes,
        index_syncs: after.index_syncs - before.index_syncs,
    };
    Ok((Measured { seconds, cpu_seconds, counts, calls: Vec::new() }, rss))
}
