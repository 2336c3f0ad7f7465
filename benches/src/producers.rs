//! The 16 tasks that append until they are told to stop, the same for the store and for the raw log.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::measured::{Phase, Stopwatch};
use crate::workload::{Keys, PAYLOAD_BYTES, PRODUCERS, Sender};
use crate::{Failure, seam};

/// Where producers append to.
pub(crate) trait Target: Clone + Send + Sync + 'static {
    /// Appends so many events to one shard of the sender's choice and waits for the answer.
    fn append(&self, sender: &mut Sender, count: usize) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// What the producers of a round share.
#[derive(Clone)]
pub(crate) struct Round {
    pub(crate) phase: Arc<Phase>,
    /// Events appended and answered.
    pub(crate) appended: Arc<AtomicU64>,
    /// Room for events that are not settled; closed when nobody settles any more.
    pub(crate) room: Option<Arc<Semaphore>>,
    pub(crate) per_call: usize,
}

impl Round {
    pub(crate) fn new(per_call: usize, room: Option<Arc<Semaphore>>) -> Self {
        Self { phase: Arc::default(), appended: Arc::default(), room, per_call }
    }
}

/// Running producers.
pub(crate) struct Producers(Vec<JoinHandle<Result<Vec<u32>, Failure>>>);

impl Producers {
    pub(crate) fn start(target: &impl Target, keys: &Arc<Keys>, round: &Round) -> Self {
        let tasks = (0..PRODUCERS).map(|number| {
            let sender = Sender::new(number, keys, PAYLOAD_BYTES);
            seam::spawn(produce(target.clone(), sender, round.clone()))
        });
        Self(tasks.collect())
    }

    /// Waits for their end; answers the length of every measured call in microseconds.
    pub(crate) async fn join(self) -> Result<Vec<u32>, Failure> {
        let mut calls = Vec::new();
        for task in self.0 {
            calls.extend(task.await??);
        }
        Ok(calls)
    }
}

async fn produce(target: impl Target, mut sender: Sender, round: Round) -> Result<Vec<u32>, Failure> {
    let mut stopwatch = Stopwatch::default();
    while !round.phase.is_over() {
        if let Some(room) = &round.room {
            // A closed room means that a consumer failed; it tells why.
            let Ok(permit) = room.acquire_many(u32::try_from(round.per_call)?).await else { break };
            permit.forget();
        }
        let begun = seam::now();
        target.append(&mut sender, round.per_call).await?;
        stopwatch.note(&round.phase, begun, &round.appended, round.per_call);
    }
    Ok(stopwatch.into_calls())
}
