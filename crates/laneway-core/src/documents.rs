//! Small versioned values changed by compare-and-set: node list, leases, tasks, settings.

use async_trait::async_trait;
use bytes::Bytes;

use crate::clock::Timestamp;
use crate::error::{Refusal, Result};
use crate::limits::DOCUMENT_NAME_BYTES_MAX;

/// A stored document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Grows with every change, from 1, and goes on growing after a removal.
    pub version: u64,
    /// Its content.
    pub bytes: Bytes,
}

impl Document {
    /// Refuses what can be no name of a document.
    pub fn check_name(name: &str) -> Result<(), Refusal> {
        if name.is_empty() {
            return Err(Refusal::new("name of a document", "\"\"", "not empty"));
        }
        Refusal::check_max("bytes of a document's name", name.len(), DOCUMENT_NAME_BYTES_MAX)
    }
}

/// The second seam: compare-and-set on single documents.
#[async_trait]
pub trait Documents: Send + Sync {
    /// Reads one document; `None` if it does not exist.
    async fn get(&self, name: &str) -> Result<Option<Document>>;

    /// Writes a document.
    ///
    /// Atomic: the whole document.
    /// Repeat: a repeated put is a conflict; read to learn whether the first one happened.
    /// Refuses: `Conflict` when the version is not `expect` (`None`: it must not exist).
    async fn put(&self, name: &str, expect: Option<u64>, bytes: Bytes) -> Result<u64>;

    /// Removes a document.
    ///
    /// Atomic: the whole document.
    /// Repeat: a repeated delete is a conflict.
    /// Refuses: `Conflict` when the version is not `expect`.
    async fn delete(&self, name: &str, expect: u64) -> Result<()>;

    /// All documents whose name begins with this, by name.
    async fn list(&self, prefix: &str) -> Result<Vec<Document>>;

    /// The store's clock; `None` where a store has none.
    async fn clock(&self) -> Result<Option<Timestamp>>;
}
