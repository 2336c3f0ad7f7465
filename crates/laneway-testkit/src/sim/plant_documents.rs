//! The planted bugs that a store of documents could have.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use laneway_core::{Document, Documents, Result, StoreError, Timestamp};

use super::plant::{Plant, Planted};

const NODE: &str = "cluster/node/";

/// Documents with one of the bugs.
pub(crate) struct PlantedDocuments {
    inner: Arc<dyn Documents>,
    planted: Arc<Planted>,
    lease: Duration,
}

impl PlantedDocuments {
    pub(crate) fn new(inner: Arc<dyn Documents>, planted: Arc<Planted>, lease: Duration) -> Self {
        Self { inner, planted, lease }
    }
}

#[async_trait]
impl Documents for PlantedDocuments {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        // Whoever wants to know whether a node lives asks for its document.
        if self.planted.is(Plant::TakeFromTheLiving) && name.starts_with(NODE) {
            return Ok(None);
        }
        self.inner.get(name).await
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        let written = self.inner.put(name, expect, bytes.clone()).await;
        let buried = matches!(written, Err(StoreError::Conflict(_))) && self.inner.get(name).await?.is_none();
        if self.planted.is(Plant::RenewTheBuried) && buried && name.starts_with(NODE) {
            return self.inner.put(name, None, bytes).await;
        }
        written
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        self.inner.delete(name, expect).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        self.inner.list(prefix).await
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        let clock = self.inner.clock().await?;
        if !self.planted.is(Plant::LocalClockInLeases) || self.lease.is_zero() {
            return Ok(clock);
        }
        let ahead = self.planted.below(u64::try_from(self.lease.as_micros()).unwrap_or(u64::MAX));
        Ok(clock.map(|clock| clock.after(Duration::from_micros(ahead))))
    }
}
