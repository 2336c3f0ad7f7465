//! Stash: a large result arrives in chunks before the commit that names it.

use bytes::Bytes;

use crate::ids::{EventId, Nonce, Shard};

/// One chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stash {
    /// Where the job lives.
    pub shard: Shard,
    /// The job's event.
    pub id: EventId,
    /// Made anew for the run, so that two runs never mix their chunks.
    pub nonce: Nonce,
    /// Which chunk, from 0.
    pub index: u32,
    /// Its bytes.
    pub bytes: Bytes,
}
