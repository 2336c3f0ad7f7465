//! Retention: what the streams' settings allow to go, goes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use laneway_core::store::Trim;
use laneway_core::{Partition, Shard, Store, StreamInfo};

use crate::log::Catalogue;
use crate::observe::show_clock;
use crate::service::Env;

/// How often every shard is looked at.
const EVERY: Duration = Duration::from_secs(10);
/// Rows that went with one call of trim and let another one follow at once: a call removes a few hundred at most.
const WORTH_REPEATING: u64 = 100;
/// Calls of trim for one shard before it is the next one's turn.
const CALLS_PER_TURN: u32 = 100;
/// First calls of trim under way at the same time. Most find nothing to do, and calls at the same time share one hand-over
/// to the thread that writes: with thousands of idle shards that is most of what they cost.
const AT_ONCE: usize = 8;

/// Trims every shard of every stream again and again. Never ends.
pub(crate) async fn retain(env: Env, store: Arc<dyn Store>, catalogue: Arc<Catalogue>) {
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
        let mut again = Vec::new();
        for shards in shards_of(&streams).chunks(AT_ONCE) {
            let calls = shards.iter().map(|shard| trim(&*store, *shard));
            let answers = join_all(calls).await;
            let worth_it = shards.iter().zip(answers).filter(|(_, again)| *again == Again::Now);
            again.extend(worth_it.map(|(shard, _)| *shard));
        }
        for shard in again {
            trim_on(&*store, shard).await;
        }
    }
}

fn shards_of(streams: &[Arc<StreamInfo>]) -> Vec<Shard> {
    let mut shards = Vec::new();
    for stream in streams {
        shards.extend((0..stream.settings.partitions).map(|partition| stream.shard(Partition(partition))));
    }
    shards
}

/// Whether a shard is worth another call of trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Now,
    Later,
}

/// Trims a shard of which much went as long as much goes, and no longer than its turn.
async fn trim_on(store: &dyn Store, shard: Shard) {
    for _ in 1..CALLS_PER_TURN {
        if trim(store, shard).await == Again::Later {
            return;
        }
    }
}

async fn trim(store: &dyn Store, shard: Shard) -> Again {
    let trimmed = match store.trim(Trim { shard }).await {
        Ok(trimmed) => trimmed,
        Err(error) => {
            tracing::warn!(%shard, %error, "a shard could not be trimmed");
            return Again::Later;
        }
    };
    if trimmed.expired > 0 {
        tracing::warn!(%shard, events = trimmed.expired, "events went by age; no processor is registered");
    }
    if trimmed.rows >= WORTH_REPEATING || trimmed.more { Again::Now } else { Again::Later }
}
