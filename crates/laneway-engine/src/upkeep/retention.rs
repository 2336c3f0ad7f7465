//! Retention: what the streams' settings allow to go, goes.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::Trim;
use laneway_core::{Partition, Store};

use crate::log::Catalogue;
use crate::service::Env;

/// How often every shard is looked at.
const EVERY: Duration = Duration::from_secs(10);

/// Trims every shard of every stream again and again. Never ends.
pub(crate) async fn retain(env: Env, store: Arc<dyn Store>, catalogue: Arc<Catalogue>) {
    loop {
        env.sleep(EVERY).await;
        let streams = match catalogue.streams().await {
            Ok(streams) => streams,
            Err(error) => {
                tracing::warn!(%error, "the streams could not be listed; nothing is trimmed");
                continue;
            }
        };
        for stream in streams {
            for partition in 0..stream.settings.partitions {
                let shard = stream.shard(Partition(partition));
                match store.trim(Trim { shard }).await {
                    Ok(trimmed) if trimmed.expired > 0 => {
                        tracing::warn!(%shard, events = trimmed.expired, "events went by age; no processor is registered");
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%shard, %error, "a shard could not be trimmed"),
                }
            }
        }
    }
}
