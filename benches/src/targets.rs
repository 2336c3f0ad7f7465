//! The two sides of the durable rows as producers see them: a store and a raw log that take events.

use std::sync::Arc;

use crate::Failure;
use crate::producers::Target;
use crate::raw_log::{RawLog, RawRecords};
use crate::store::BenchStore;
use crate::workload::Sender;

impl Target for BenchStore {
    async fn append(&self, sender: &mut Sender, count: usize) -> Result<(), Failure> {
        let shard = sender.shard();
        let drafts = sender.drafts(shard, count, None)?;
        self.append_to(shard, drafts).await.map(drop)
    }
}

/// The raw log, given as many bytes per event as the store writes.
#[derive(Clone)]
pub(crate) struct RawTarget {
    pub(crate) log: Arc<RawLog>,
    pub(crate) record_bytes: usize,
}

impl Target for RawTarget {
    async fn append(&self, sender: &mut Sender, count: usize) -> Result<(), Failure> {
        let shard = sender.shard();
        let bytes = sender.records(shard, count, self.record_bytes);
        self.log.append(RawRecords::Events { shard, bytes }).await.map(drop)
    }
}
