//! Documents of the memory store.

use async_trait::async_trait;
use laneway_core::{Bytes, Document, Documents, Result, Timestamp};

use super::MemoryStore;
use crate::machine::documents;

#[async_trait]
impl Documents for MemoryStore {
    async fn get(&self, name: &str) -> Result<Option<Document>> {
        documents::get(&*self.state.lock(), name)
    }

    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64> {
        documents::put(&mut *self.state.lock(), name, expect, bytes)
    }

    async fn delete(&self, name: &str, expect: u64) -> Result<()> {
        documents::delete(&mut *self.state.lock(), name, expect)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Document>> {
        documents::list(&*self.state.lock(), prefix)
    }

    async fn clock(&self) -> Result<Option<Timestamp>> {
        Ok(Some(self.now().wall))
    }
}
