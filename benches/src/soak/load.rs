//! The mixed load: streams, their processors, and those who append to them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::{Delay, DelayMode, Draft, Kind, OnFailure, StartAfter, StreamSettings};
use laneway_engine::ProcessorSettings;
use laneway_engine::handler::{Handler, Policy, Retry};

use super::plan::{
    BUSY_STREAMS, DEDUP_MAX, FAILING_BYTES, FAILING_EVERY, KEEP, LANES, NAMED_EVERY, PARTITIONS, Plan,
    QUIET_PER_SECOND, QUIET_STREAMS, TIMER_EVERY, TIMER_MAX,
};
use super::site::Site;
use crate::Failure;
use crate::load::{
    DAY, Recorder, RunWaits, Sender, Stream, all_done, draft, failing, keeping, numbered_key, stateless,
};
use crate::workload::PAYLOAD_BYTES;

/// Keys of the streams that are not busy.
const KEYS: u64 = 1_000;

/// What is measured of the load.
#[derive(Clone, Default)]
pub(super) struct Meters {
    pub(super) appends: Recorder,
    pub(super) waits: RunWaits,
}

/// All streams, each as every node sees it.
pub(super) struct Streams {
    busy: Vec<Vec<Stream>>,
    quiet: Vec<Stream>,
    timers: Vec<Stream>,
    named: Vec<Stream>,
    failing: Vec<Stream>,
}

impl Streams {
    /// Creates the streams and starts their processors on every node.
    pub(super) async fn set_up(site: &Site, meters: &Meters) -> Result<Self, Failure> {
        let settings = StreamSettings { dead_keep: KEEP, keep_done: KEEP, ..keeping(PARTITIONS, KEEP) };
        let plain = || Processing { settings: stateless(), handler: all_done() };
        let mut busy = Vec::new();
        for number in 0..BUSY_STREAMS {
            busy.push(process(site, &format!("busy-{number}"), settings.clone(), plain()).await?);
        }
        let mut quiet = Vec::new();
        for number in 0..QUIET_STREAMS {
            let measured = Processing { settings: stateless(), handler: meters.waits.handler() };
            quiet.extend(process(site, &format!("quiet-{number}"), settings.clone(), measured).await?);
        }
        let timers = process(site, "timers", settings.clone(), plain()).await?;
        let remember = StreamSettings { dedup_max: DEDUP_MAX, ..settings.clone() };
        let named = process(site, "named", remember, plain()).await?;
        let failing = process(site, "failing", settings, dead_letters()).await?;
        for node in &site.nodes {
            node.engine.start_upkeep();
        }
        Ok(Self { busy, quiet, timers, named, failing })
    }

    /// Gives every lane of the busy streams one event, so that all are there from the beginning.
    pub(super) async fn fill_lanes(&self) -> Result<(), Failure> {
        let payload = Bytes::from(vec![7; PAYLOAD_BYTES]);
        for (number, streams) in (0..).zip(&self.busy) {
            let mut by_partition = vec![Vec::new(); PARTITIONS as usize];
            for lane in (number..LANES).step_by(BUSY_STREAMS) {
                let key = numbered_key("lane", lane)?;
                by_partition[key.partition(PARTITIONS).0 as usize].push(key);
            }
            for (partition, keys) in (0..).zip(by_partition) {
                for keys in keys.chunks(1_000) {
                    let draft = |key: &laneway_core::Key| {
                        Draft::new(Some(key.clone()), Kind::default(), payload.clone())
                    };
                    streams[0].append(partition, keys.iter().map(draft).collect()).await?;
                }
            }
        }
        Ok(())
    }

    /// Starts everything that appends.
    pub(super) fn start(&self, plan: &Plan, meters: &Meters) -> Vec<Sender> {
        let recorder = &meters.appends;
        let mut senders = Vec::new();
        for (number, streams) in (0..).zip(&self.busy) {
            let payload = Bytes::from(vec![7; plan.busy_bytes]);
            let mut rng = fastrand::Rng::with_seed(number);
            let one = move |_| {
                let lane = rng.u64(..LANES / BUSY_STREAMS as u64) * BUSY_STREAMS as u64 + number;
                Ok(Draft::new(Some(numbered_key("lane", lane)?), Kind::default(), payload.clone()))
            };
            senders.push(Sender::start(streams.clone(), plan.busy_every, recorder, one));
        }
        let (waits, every) = (meters.waits.clone(), Duration::from_secs(1) / QUIET_PER_SECOND);
        let quiet = move |number| waits.draft(number % KEYS);
        senders.push(Sender::start(self.quiet.clone(), every, recorder, quiet));
        let mut rng = fastrand::Rng::with_seed(17);
        let timer = move |number| delayed(number, TIMER_MAX.mul_f64(rng.f64()));
        senders.push(Sender::start(self.timers.clone(), TIMER_EVERY, recorder, timer));
        senders.push(Sender::start(self.named.clone(), NAMED_EVERY, recorder, named));
        let failing = |number| draft(&format!("key-{}", number % KEYS), FAILING_BYTES);
        senders.push(Sender::start(self.failing.clone(), FAILING_EVERY, recorder, failing));
        senders
    }
}

/// How the events of a stream are run.
struct Processing {
    settings: ProcessorSettings,
    handler: Arc<dyn Handler>,
}

/// Every event becomes a dead letter.
fn dead_letters() -> Processing {
    let policy = Policy { max_attempts: 1, on_failure: OnFailure::DeadLetter, ..Policy::default() };
    let handler = failing(Retry::Never, &Arc::<AtomicU64>::default());
    Processing { settings: ProcessorSettings { policy, ..stateless() }, handler }
}

/// Creates a stream and runs a processor of its name on every node.
async fn process(
    site: &Site,
    name: &str,
    stream: StreamSettings,
    processing: Processing,
) -> Result<Vec<Stream>, Failure> {
    let streams = site.stream(name, stream).await?;
    for node in &site.nodes {
        let handler = Arc::clone(&processing.handler);
        node.engine.process(name, name, processing.settings.clone(), handler).await?;
    }
    Ok(streams)
}

fn named(number: u64) -> Result<Draft, Failure> {
    let id = Bytes::from(format!("order-{number:012}"));
    let dedup = Some(Dedup { id, body: u128::from(number), window: DAY });
    Ok(Draft { dedup, ..draft(&format!("key-{}", number % KEYS), PAYLOAD_BYTES)? })
}

fn delayed(number: u64, by: Duration) -> Result<Draft, Failure> {
    let delay = Some(Delay { until: StartAfter::Delay(by), mode: DelayMode::Join });
    Ok(Draft { delay, ..draft(&format!("key-{}", number % KEYS), PAYLOAD_BYTES)? })
}
