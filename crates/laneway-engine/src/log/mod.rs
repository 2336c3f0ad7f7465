//! Log: drafts become events in their partitions, and emits reach theirs.
//!
//! `catalogue` knows the streams, `producer` routes and appends, `forward` empties outboxes.

mod catalogue;
mod forward;
mod producer;

pub use catalogue::{Catalogue, CatalogueError};
pub(crate) use forward::forward_outbox;
pub use producer::{AppendError, Appending, Producer, Sent};
