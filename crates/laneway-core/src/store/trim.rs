//! Trim: what retention allows to go.

use crate::ids::{EventId, Shard};

/// Trims one shard by its stream's settings and the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Where.
    pub shard: Shard,
}

/// What went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// First id still there.
    pub first: EventId,
    /// Events that went now.
    pub events: u64,
    /// Of these, how many no processor had ever been registered for.
    pub expired: u64,
    /// Ends other than `done`, marks of urgent events, dead letters, dedup ids, tokens, chunks, tickets and shortened
    /// lives that went. Many of them say that another call is worth it. Ends of jobs are not counted: nobody can read one
    /// past its time, and when its bytes go is each store's own matter.
    /// Lanes that were forgotten count too.
    pub rows: u64,
    /// Not all lanes were looked at yet: another call is worth it, whatever went.
    pub more: bool,
}
