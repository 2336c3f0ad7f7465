//! The engine on a store of its own, as the rows use it.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{Partition, Store};
use laneway_engine::handler::Handler;
use laneway_engine::{Engine, Env, ProcessorSettings, Stores};

use crate::measured::Counts;
use crate::store::{BenchStore, STREAM};
use crate::workload::SHARDS;
use crate::{Failure, seam};

/// How often it is looked whether everything is settled, and how long that may take.
const LOOK_EVERY: Duration = Duration::from_millis(2);
const SETTLE_WITHIN: Duration = Duration::from_secs(600);

/// One node with one processor.
pub(crate) struct Node {
    pub(crate) store: BenchStore,
    pub(crate) engine: Engine,
}

impl Node {
    /// Name of its processor.
    pub(crate) const PROCESSOR: &str = "engine";
    /// How long the last events of a round may take.
    pub(crate) const DRAIN: Duration = Duration::from_secs(30);

    pub(crate) fn new(store: BenchStore) -> Self {
        let shared = Arc::new(store.store.clone());
        let stores = Stores { store: shared.clone(), documents: shared.clone(), wakeups: shared };
        Self { store, engine: Engine::new(stores, Env::system()) }
    }

    /// Runs the processor from now on.
    pub(crate) async fn process(
        &self,
        settings: ProcessorSettings,
        handler: impl Handler,
    ) -> Result<(), Failure> {
        self.engine.process(Self::PROCESSOR, STREAM, settings, Arc::new(handler)).await?;
        self.engine.start_upkeep();
        Ok(())
    }

    /// Lets what runs finish.
    pub(crate) async fn stop(&self) {
        self.engine.drain(Self::DRAIN).await;
    }

    /// What was written so far, beside so many events.
    pub(crate) fn counts_with(&self, events: u64) -> Counts {
        self.store.counts_with(events)
    }

    /// Stops the processor, or lets it go on.
    pub(crate) async fn pause(&self, pause: bool) -> Result<(), Failure> {
        let operator = self.engine.operator();
        let filed = match pause {
            true => operator.pause(Self::PROCESSOR, "the benchmark").await?,
            false => operator.resume(Self::PROCESSOR).await?,
        };
        if operator.wait(&filed, Self::DRAIN).await? {
            Ok(())
        } else {
            Err("a request was not applied".into())
        }
    }

    /// Waits until everything that was appended is settled.
    pub(crate) async fn until_settled(&self) -> Result<(), Failure> {
        self.until_settled_but(None).await
    }

    /// The same, not counting one partition.
    pub(crate) async fn until_settled_but(&self, but: Option<Partition>) -> Result<(), Failure> {
        let start = seam::now();
        while let Some(open) = self.open(but).await? {
            if seam::now().duration_since(start) > SETTLE_WITHIN {
                return Err(format!("{open} after {SETTLE_WITHIN:?}").into());
            }
            seam::pause(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// A shard where something is not settled, in words.
    pub(crate) async fn open(&self, but: Option<Partition>) -> Result<Option<String>, Failure> {
        for partition in (0..SHARDS).map(Partition).filter(|partition| Some(*partition) != but) {
            let shard = self.store.stream.shard(partition);
            let Rows::Seats(about, seats) = self.store.store.query(Query::Seats(shard)).await? else {
                return Err("the store answered another list than seats".into());
            };
            let floor = seats.first().ok_or("the seat is gone")?.progress.window.floor();
            if floor != about.head {
                return Ok(Some(format!("shard {shard} is settled up to {floor} of {}", about.head)));
            }
        }
        Ok(None)
    }
}
