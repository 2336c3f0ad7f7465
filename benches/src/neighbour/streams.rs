//! The streams of the neighbour, their processors, and those who append to them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::{Delay, DelayMode, Draft, OnFailure, StartAfter, StreamSettings};
use laneway_engine::handler::{Policy, Retry};
use laneway_engine::{Engine, ProcessorSettings};

use super::plan::{
    BUSY_MIB_PER_SECOND, BUSY_PARTITIONS, DEAD_LETTER_BYTES, DEDUP_MAX, DELAY_MAX, DELAYED_EVERY,
    OTHER_EVERY, Plan, QUIET_PARTITIONS,
};
use crate::Failure;
use crate::load::{
    DAY, Folder, Recorder, RunWaits, Sender, Stream, Traffic, all_done, draft, failing, keeping, stateless,
};
use crate::workload::PAYLOAD_BYTES;

/// Keys of the others.
const KEYS: u64 = 1_000;

/// The streams that are appended to all the time; all have a processor.
pub(super) struct Streams {
    busy: Stream,
    pub(super) quiet: Stream,
    other: Stream,
    delayed: Stream,
}

impl Streams {
    /// Creates all streams, and has a lane parked and a dead letter buried.
    pub(super) async fn set_up(
        folder: &Folder,
        engine: &Engine,
        plan: &Plan,
        waits: &RunWaits,
    ) -> Result<Self, Failure> {
        let keep = plan.keep;
        let other = StreamSettings { dedup_max: DEDUP_MAX, ..keeping(1, keep) };
        let streams = Self {
            busy: folder.stream("busy", keeping(BUSY_PARTITIONS, keep)).await?,
            quiet: folder.stream("quiet", keeping(QUIET_PARTITIONS, keep)).await?,
            other: folder.stream("other", other).await?,
            delayed: folder.stream("delayed", keeping(1, keep)).await?,
        };
        for name in ["busy", "other", "delayed"] {
            engine.process(name, name, stateless(), all_done()).await?;
        }
        engine.process("quiet", "quiet", stateless(), waits.handler()).await?;
        fail_one(folder, engine, keep, OnFailure::Park, PAYLOAD_BYTES).await?;
        fail_one(folder, engine, keep, OnFailure::DeadLetter, DEAD_LETTER_BYTES).await?;
        Ok(streams)
    }

    pub(super) fn start_traffic(&self) -> Traffic {
        Traffic::start(&self.busy, BUSY_MIB_PER_SECOND)
    }

    /// Appends with dedup ids and appends of delayed events, both recorded.
    pub(super) fn start_others(&self, recorder: &Recorder) -> [Sender; 2] {
        let other = Sender::start(vec![self.other.clone()], OTHER_EVERY, recorder, named);
        let mut rng = fastrand::Rng::with_seed(5);
        let delayed = move |number| delayed(number, DELAY_MAX.mul_f64(rng.f64()));
        [other, Sender::start(vec![self.delayed.clone()], DELAYED_EVERY, recorder, delayed)]
    }
}

/// A stream of its own with one event that fails for good.
async fn fail_one(
    folder: &Folder,
    engine: &Engine,
    keep: Duration,
    on_failure: OnFailure,
    bytes: usize,
) -> Result<(), Failure> {
    let name = if on_failure == OnFailure::Park { "parked" } else { "dead" };
    let stream = folder.stream(name, keeping(1, keep)).await?;
    let policy = Policy { max_attempts: 1, on_failure, ..Policy::default() };
    let settings = ProcessorSettings { policy, ..stateless() };
    engine.process(name, name, settings, failing(Retry::Never, &Arc::<AtomicU64>::default())).await?;
    stream.append_one(draft("failed", bytes)?).await?;
    Ok(())
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
