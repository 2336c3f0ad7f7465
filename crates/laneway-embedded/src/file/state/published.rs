//! What readers of fresh events need to know, apart from the state: calls hold the state's lock while
//! they are applied, and dispatch must not wait for that.

use hashbrown::HashMap;
use laneway_core::store::Read;
use laneway_core::store::ReadFrom;
use laneway_core::{EventId, Seat, Shard};
use parking_lot::RwLock;

/// A shard as far as it is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishedShard {
    pub(crate) head: EventId,
    /// Events up to here are trimmed or kept aside: a look at the state tells which.
    pub(crate) trimmed: EventId,
    /// A page of it is its events and nothing else: a queue in which no draft waits for its time.
    pub(crate) plain: bool,
}

/// All shards, and the request numbers of their seats.
#[derive(Debug, Default)]
pub(crate) struct Published {
    shards: RwLock<HashMap<Shard, PublishedShard>>,
    requests: RwLock<HashMap<Seat, u64>>,
}

/// What a page says beside its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainPage {
    pub(crate) head: EventId,
    pub(crate) request_no: u64,
}

impl Published {
    pub(crate) fn set_shards(&self, changed: impl Iterator<Item = (Shard, Option<PublishedShard>)>) {
        let mut shards = self.shards.write();
        for (shard, published) in changed {
            match published {
                Some(published) => drop(shards.insert(shard, published)),
                None => drop(shards.remove(&shard)),
            }
        }
    }

    pub(crate) fn set_requests(&self, changed: impl Iterator<Item = (Seat, Option<u64>)>) {
        let mut changed = changed.peekable();
        if changed.peek().is_none() {
            return;
        }
        let mut requests = self.requests.write();
        for (seat, number) in changed {
            match number {
                Some(number) => drop(requests.insert(seat, number)),
                None => drop(requests.remove(&seat)),
            }
        }
    }

    /// Last durable id of a shard; `None` if there is no such shard.
    pub(crate) fn head(&self, shard: Shard) -> Option<EventId> {
        self.shards.read().get(&shard).map(|published| published.head)
    }

    /// The answer to a read of fresh events as far as it needs no look at the state; `None` when it does.
    pub(crate) fn plain_page(&self, read: &Read) -> Option<PlainPage> {
        let shard = self.shards.read().get(&read.shard).copied().filter(|shard| shard.plain)?;
        let fresh = matches!(read.from, ReadFrom::After(after) if after >= shard.trimmed);
        if !fresh || read.states {
            return None;
        }
        let request_no = match read.processor {
            None => 0,
            Some(processor) => *self.requests.read().get(&Seat { shard: read.shard, processor })?,
        };
        Some(PlainPage { head: shard.head, request_no })
    }
}
