//! Events read back by their ids, as they were appended.

use laneway_core::store::{Entry, Query, Read, ReadFrom, Rows};
use laneway_core::{Event, EventId, Result, Shard, Store, StoreError};

/// Those of these events that are still there, by id: also the ones that are not their lane's newest.
pub(crate) async fn events_of(store: &dyn Store, shard: Shard, mut ids: Vec<EventId>) -> Result<Vec<Event>> {
    ids.sort_unstable();
    ids.dedup();
    let mut events = Vec::with_capacity(ids.len());
    while !ids.is_empty() {
        let from = ReadFrom::Ids(ids.clone());
        let read = Read { shard, from, limit: ids.len(), bytes: usize::MAX, processor: None, states: false };
        let page = match store.read(read).await {
            Err(StoreError::Trimmed { first, .. }) => {
                let before = ids.len();
                ids.retain(|id| *id >= first);
                if ids.len() == before {
                    return Err(StoreError::Trimmed { shard, first });
                }
                continue;
            }
            page => page?,
        };
        let Some(last) = page.entries.last().map(Entry::id) else { break };
        for entry in page.entries {
            match entry {
                Entry::Event(event) => events.push(event),
                Entry::Superseded { id, .. } => events.extend(raw(store, shard, id).await?),
            }
        }
        ids.retain(|id| *id > last);
    }
    Ok(events)
}

/// One event as it is stored; the store may have dropped it.
async fn raw(store: &dyn Store, shard: Shard, id: EventId) -> Result<Option<Event>> {
    match store.query(Query::Events(shard, EventId(id.0.saturating_sub(1)), 1)).await? {
        Rows::Events(events) => Ok(events.into_iter().find(|event| event.id == id)),
        _ => Err(StoreError::Corrupt { what: "the store answered another list than events".to_owned() }),
    }
}
