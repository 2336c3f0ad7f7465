//! Log: drafts become events in their partitions, and emits reach theirs.
//!
//! `catalogue` knows the streams, `producer` routes and appends, `forward` empties outboxes, `events` reads back.

mod catalogue;
mod events;
mod forward;
mod producer;

pub use catalogue::{Catalogue, CatalogueError};
pub(crate) use events::events_of;
pub(crate) use forward::{Emitter, Forwarded, Lost, forward_outbox};
pub(crate) use producer::check_priority;
pub use producer::{AppendError, Appending, Producer, Sent};
