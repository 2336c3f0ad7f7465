//! What operators ask of lanes and processors. Everything is a request that the owner applies in a commit; asking twice
//! with one token is asking once (contract 1.7).

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::store::{RedriveTo, Request, RequestOp, Reset};
use laneway_core::{
    EventId, Key, LaneName, Partition, ProcessorId, Seat, Shard, Store, StoreError, TokenId, Topic, Wakeups,
};

use crate::log::{Catalogue, CatalogueError};
use crate::service::Env;

/// Steers lanes and processors. Cheap to clone.
#[derive(Clone)]
pub struct Operator {
    env: Env,
    store: Arc<dyn Store>,
    wakeups: Arc<dyn Wakeups>,
    catalogue: Arc<Catalogue>,
}

/// Why nothing was asked.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// No such stream or processor.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Operator {
    pub(crate) fn new(
        env: Env,
        store: Arc<dyn Store>,
        wakeups: Arc<dyn Wakeups>,
        catalogue: Arc<Catalogue>,
    ) -> Self {
        Self { env, store, wakeups, catalogue }
    }

    /// Stops a lane for a processor; what runs goes on.
    pub async fn pause_lane(&self, processor: &str, key: &Key, by: &str) -> Result<(), OperateError> {
        let by = Bytes::copy_from_slice(by.as_bytes());
        self.ask_lane(processor, key, |lane| RequestOp::Pause { lane: Some(lane), by }).await
    }

    /// Lets a paused, parked or diverting lane go on.
    pub async fn resume_lane(&self, processor: &str, key: &Key) -> Result<(), OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Resume { lane: Some(lane) }).await
    }

    /// Runs the head of a lane now, if it is this event.
    pub async fn retry(&self, processor: &str, key: &Key, head: EventId) -> Result<(), OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Retry { lane, id: head }).await
    }

    /// Passes the head of a lane over, if it is this event.
    pub async fn skip(&self, processor: &str, key: &Key, head: EventId) -> Result<(), OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Skip { lane, id: head }).await
    }

    /// Brings dead letters of a lane back: one, or all in order.
    pub async fn redrive(
        &self,
        processor: &str,
        key: &Key,
        id: Option<EventId>,
        to: RedriveTo,
    ) -> Result<(), OperateError> {
        self.ask_lane(processor, key, |lane| RequestOp::Redrive { id, lane, to }).await
    }

    /// Stops a processor everywhere; what runs goes on.
    pub async fn pause(&self, processor: &str, by: &str) -> Result<(), OperateError> {
        let by = Bytes::copy_from_slice(by.as_bytes());
        self.ask_all(processor, RequestOp::Pause { lane: None, by }).await
    }

    /// Lets a paused or halted processor go on everywhere.
    pub async fn resume(&self, processor: &str) -> Result<(), OperateError> {
        self.ask_all(processor, RequestOp::Resume { lane: None }).await
    }

    /// Begins a processor anew everywhere (contract 1.18).
    pub async fn reset(&self, processor: &str, reset: Reset) -> Result<(), OperateError> {
        self.ask_all(processor, RequestOp::Reset(reset)).await
    }

    async fn ask_lane(
        &self,
        processor: &str,
        key: &Key,
        op: impl FnOnce(LaneName) -> RequestOp,
    ) -> Result<(), OperateError> {
        let (info, id) = self.catalogue.processor(processor).await?;
        let shard = info.shard(key.partition(info.settings.partitions));
        self.ask(shard, id, op(LaneName::Key(key.clone()))).await
    }

    async fn ask_all(&self, processor: &str, op: RequestOp) -> Result<(), OperateError> {
        let (info, id) = self.catalogue.processor(processor).await?;
        for partition in 0..info.settings.partitions {
            self.ask(info.shard(Partition(partition)), id, op.clone()).await?;
        }
        Ok(())
    }

    async fn ask(&self, shard: Shard, processor: ProcessorId, op: RequestOp) -> Result<(), OperateError> {
        self.file(Seat { shard, processor }, self.env.token(), op).await
    }

    /// Files a request under a token of the caller's.
    pub async fn file(&self, seat: Seat, token: TokenId, op: RequestOp) -> Result<(), OperateError> {
        self.store.request(Request { seat, token, op }).await?;
        self.wakeups.announce(Topic::Seat(seat)).await?;
        Ok(())
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Operator").finish_non_exhaustive()
    }
}
