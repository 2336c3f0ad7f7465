//! Retention: what the streams' settings allow to go, goes.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use hashbrown::HashMap;
use laneway_core::store::Trim;
use laneway_core::{Partition, Shard, Store, StreamId, StreamInfo, StreamSettings, Topic, Wakeups};

use super::held::HeldWatch;
use crate::engine::Stores;
use crate::log::Catalogue;
use crate::observe::show_clock;
use crate::service::Env;

/// How often every shard is looked at.
const EVERY: Duration = Duration::from_secs(10);
/// Rows that went with one call of trim and let another one follow at once: a call removes a few hundred at most.
const WORTH_REPEATING: u64 = 100;
/// Calls of trim for one shard before it is the next one's turn.
const CALLS_PER_TURN: u32 = 100;
/// First calls of trim under way at the same time.
const AT_ONCE: usize = 8;
/// Most rounds for which a shard rests after a call of trim that found nothing to do; an event that comes ends the rest.
const REST: u32 = 5;
/// What becomes old during a rest goes so much later: at most this part of the time for which it is kept.
const LATE: u32 = 16;

/// Trims every shard of every stream again and again. Never ends.
pub(crate) async fn retain(env: Env, stores: Stores, catalogue: Arc<Catalogue>) {
    let (mut rests, mut held) = (Rests::new(&stores), HeldWatch::default());
    loop {
        // Nothing is trimmed by age while the clock is in doubt, so it is shown beside.
        stores.store.clock_report().iter().for_each(show_clock);
        env.sleep(EVERY).await;
        let streams = match catalogue.streams().await {
            Ok(streams) => streams,
            Err(error) => {
                tracing::warn!(%error, "the streams could not be listed; nothing is trimmed");
                continue;
            }
        };
        let mut again = Vec::new();
        for shards in rests.due(&streams).chunks(AT_ONCE) {
            let calls = shards.iter().map(|shard| trim(&*stores.store, *shard));
            for (shard, found) in shards.iter().zip(join_all(calls).await) {
                match found {
                    Found::Much => again.push(*shard),
                    Found::Little => {}
                    Found::Nothing => rests.rest(*shard),
                }
            }
            env.let_others_run(1).await;
        }
        for shard in again {
            trim_on(&*stores.store, shard).await;
        }
        held.look(&*stores.store, &catalogue).await;
    }
}

/// Shards that need not be trimmed for a while: most of thousands are idle, and looking at them is what they cost.
struct Rests {
    wakeups: Arc<dyn Wakeups>,
    /// Other processes change the store: wake-ups may be lost, and no shard rests.
    is_shared: bool,
    streams: HashMap<StreamId, StreamRests>,
}

#[derive(Debug, Default)]
struct StreamRests {
    /// How many rounds its shards rest.
    rounds: u32,
    /// By partition.
    shards: Vec<Rest>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    /// Rounds that are left of it.
    rounds: u32,
    /// Point of the last announcement seen.
    seen: u64,
}

impl Rests {
    fn new(stores: &Stores) -> Self {
        let is_shared = stores.store.about().capabilities.shared;
        Self { wakeups: Arc::clone(&stores.wakeups), is_shared, streams: HashMap::new() }
    }

    /// The shards to be trimmed in this round.
    fn due(&mut self, streams: &[Arc<StreamInfo>]) -> Vec<Shard> {
        let mut before = std::mem::take(&mut self.streams);
        let mut due = Vec::new();
        for stream in streams {
            let mut rests = before.remove(&stream.id).unwrap_or_default();
            rests.rounds = rounds(&stream.settings);
            rests.shards.resize(stream.settings.partitions as usize, Rest::default());
            for (partition, rest) in (0..).zip(&mut rests.shards) {
                let shard = stream.shard(Partition(partition));
                if self.is_shared || rest.is_over(&*self.wakeups, shard) {
                    due.push(shard);
                }
            }
            self.streams.insert(stream.id, rests);
        }
        due
    }

    fn rest(&mut self, shard: Shard) {
        if let Some(StreamRests { rounds, shards }) = self.streams.get_mut(&shard.stream)
            && let Some(rest) = shards.get_mut(shard.partition.0 as usize)
        {
            rest.rounds = *rounds;
        }
    }
}

/// For how many rounds the shards of a stream rest.
fn rounds(settings: &StreamSettings) -> u32 {
    let kept = [Some(settings.keep), Some(settings.keep_done), Some(settings.dead_keep)];
    let kept = kept.into_iter().chain([settings.forget_lanes_after]).flatten();
    // What goes at once does not go by age.
    let shortest = kept.filter(|kept| !kept.is_zero()).min();
    let rounds = shortest.map_or(u64::MAX, |kept| (kept / LATE).as_secs() / EVERY.as_secs());
    u32::try_from(rounds).unwrap_or(REST).min(REST)
}

impl Rest {
    /// Whether the shard is due: its rest is over, or something was announced since the last round.
    fn is_over(&mut self, wakeups: &dyn Wakeups, shard: Shard) -> bool {
        let is_over = self.rounds == 0;
        self.rounds = self.rounds.saturating_sub(1);
        match wakeups.wait(Topic::Shard(shard), self.seen).now_or_never() {
            Some(Ok(seen)) => {
                self.seen = seen;
                true
            }
            // Without wake-ups every shard is looked at.
            Some(Err(_)) => true,
            None => is_over,
        }
    }
}

/// What a call of trim found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Little,
    /// So much that another call is worth it.
    Much,
}

/// Trims a shard of which much went as long as much goes, and no longer than its turn.
async fn trim_on(store: &dyn Store, shard: Shard) {
    for _ in 1..CALLS_PER_TURN {
        if trim(store, shard).await != Found::Much {
            return;
        }
    }
}

async fn trim(store: &dyn Store, shard: Shard) -> Found {
    let trimmed = match store.trim(Trim { shard }).await {
        Ok(trimmed) => trimmed,
        Err(error) => {
            tracing::warn!(%shard, %error, "a shard could not be trimmed");
            return Found::Little;
        }
    };
    if trimmed.expired > 0 {
        tracing::warn!(%shard, events = trimmed.expired, "events went by age; no processor is registered");
    }
    if trimmed.rows >= WORTH_REPEATING || trimmed.more {
        Found::Much
    } else if trimmed.rows + trimmed.events > 0 {
        Found::Little
    } else {
        Found::Nothing
    }
}
