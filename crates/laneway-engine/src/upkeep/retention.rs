//! Retention: what the streams' settings allow to go, goes.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::Trim;
use laneway_core::{Partition, Shard, Store};

use super::held::HeldWatch;
use crate::log::Catalogue;
use crate::observe::show_clock;
use crate::service::Env;

/// How often every shard is looked at.
const EVERY: Duration = Duration::from_secs(10);
/// Rows that went with one call of trim and let another one follow at once: a call removes a few hundred at most.
const WORTH_REPEATING: u64 = 100;
/// Calls of trim for one shard before it is the next one's turn.
const CALLS_PER_TURN: u32 = 100;

/// Trims every shard of every stream again and again. Never ends.
pub(crate) async fn retain(env: Env, store: Arc<dyn Store>, catalogue: Arc<Catalogue>) {
    let mut held = HeldWatch::default();
    loop {
        // Nothing is trimmed by age while the clock is in doubt, so it is shown beside.
        store.clock_report().iter().for_each(show_clock);
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
                trim(&*store, stream.shard(Partition(partition))).await;
            }
        }
        held.look(&store, &catalogue).await;
    }
}

/// Trims one shard as long as much goes, and no longer than its turn.
async fn trim(store: &dyn Store, shard: Shard) {
    for _ in 0..CALLS_PER_TURN {
        let trimmed = match store.trim(Trim { shard }).await {
            Ok(trimmed) => trimmed,
            Err(error) => return tracing::warn!(%shard, %error, "a shard could not be trimmed"),
        };
        if trimmed.expired > 0 {
            tracing::warn!(%shard, events = trimmed.expired, "events went by age; no processor is registered");
        }
        if trimmed.rows < WORTH_REPEATING && !trimmed.more {
            return;
        }
    }
}
