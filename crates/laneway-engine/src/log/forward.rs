//! Forwarding: emits wait in the outbox of their seat and are appended to their partitions, once and in order
//! (contract 1.1).

use std::collections::BTreeMap;

use laneway_core::store::{Append, Origin, OutboxRow, Query, Rows, Source};
use laneway_core::{Draft, Fence, Partition, Result, Seat, Shard, Store, StoreError, StreamInfo};

use super::catalogue::{Catalogue, CatalogueError};
use crate::service::Env;

/// Emits forwarded at a time.
const ROWS_MAX: usize = 1_000;

/// Forwards what waits in an outbox after a number; answers up to which number everything has arrived.
///
/// Safe to repeat at any point: every partition knows the highest number it has from this outbox.
pub(crate) async fn forward_outbox(
    _env: &Env,
    store: &dyn Store,
    catalogue: &Catalogue,
    seat: Seat,
    fence: Fence,
    after: u64,
) -> Result<u64> {
    let Rows::Outbox(rows) = store.query(Query::Outbox(seat, after, ROWS_MAX)).await? else {
        return Err(StoreError::Corrupt {
            what: "the store answered another list than the outbox".to_owned(),
        });
    };
    let Some(last) = rows.last().map(|row| row.number) else { return Ok(after) };
    // Per target in order; a reset processor numbers under another name.
    let mut parts: BTreeMap<(Shard, u32), Vec<(u64, Draft)>> = BTreeMap::new();
    for OutboxRow { number, incarnation, emit } in rows {
        let info = match catalogue.stream_of(emit.stream).await {
            Ok(info) => info,
            // The stream was removed after the event was emitted: there is nowhere to go.
            Err(CatalogueError::NoStream(_) | CatalogueError::NoProcessor(_)) => {
                tracing::error!(%seat, number, stream = %emit.stream, "an emit's stream was removed; it is dropped");
                continue;
            }
            Err(CatalogueError::Store(error)) => return Err(error),
        };
        let shard = info.shard(route(&info, &emit.draft, number));
        parts.entry((shard, incarnation)).or_default().push((number, emit.draft));
    }
    for ((shard, incarnation), drafts) in parts {
        let source = Source::Outbox {
            shard: seat.shard,
            processor: seat.processor,
            incarnation,
            adoptions: fence.adoptions,
        };
        let origin = Some(Origin { source, term: fence.term });
        let drafts =
            drafts.into_iter().map(|(number, draft)| Draft { origin_seq: Some(number), ..draft }).collect();
        let info = catalogue.stream_of(shard.stream).await.map_err(|error| match error {
            CatalogueError::Store(error) => error,
            other => StoreError::NotFound { what: other.to_string() },
        })?;
        let append = Append {
            shard,
            incarnation: store.about().incarnation,
            layout: info.layout,
            origin,
            drafts,
            object: None,
        };
        arrive(store, catalogue, append).await?;
    }
    Ok(last)
}

async fn arrive(store: &dyn Store, catalogue: &Catalogue, append: Append) -> Result<()> {
    loop {
        match store.append(append.clone()).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Adopt { shard, stored, .. }) => catalogue.adopt(shard, stored).await?,
            Err(error) => return Err(error),
        }
    }
}

fn route(info: &StreamInfo, draft: &Draft, number: u64) -> Partition {
    let partitions = info.settings.partitions;
    match &draft.key {
        Some(key) => key.partition(partitions),
        None => Partition(u32::try_from(number % u64::from(partitions.max(1))).unwrap_or(0)),
    }
}
