//! A store that loses its end: a replica stops following, and some time later it takes the primary's place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{Incarnation, Partition, Shard, Store, StreamInfo};

use super::options::pick;
use super::record::Record;
use super::world::World;
use crate::seam;

/// What a failover must not go back behind: ids and adoptions are counted up from what survived, and so come again when
/// an adoption itself is lost (`docs/design/protocol.md`).
#[derive(PartialEq)]
struct Grounds {
    streams: Vec<StreamInfo>,
    adoptions: BTreeMap<Shard, u32>,
}

impl Grounds {
    async fn of(store: &dyn Store) -> Option<Self> {
        let Ok(Rows::Streams(streams)) = store.query(Query::Streams).await else { return None };
        let mut adoptions = BTreeMap::new();
        for stream in &streams {
            for partition in 0..stream.settings.partitions {
                let shard = stream.shard(Partition(partition));
                let Ok(Rows::Seats(info, _)) = store.query(Query::Seats(shard)).await else { return None };
                adoptions.insert(shard, info.adoptions);
            }
        }
        Some(Self { streams, adoptions })
    }
}

impl World {
    /// Lets the store lose its end from time to time, while faults last.
    pub(super) async fn lose_ends(self: &Arc<Self>) {
        let Some(every) = self.options.failover_every else { return };
        let mut rng = self.chance(4);
        let mut life = 1;
        loop {
            let wait = every.mul_f64(0.2 + 1.6 * rng.f64());
            let behind = Duration::from_millis(pick(&mut rng, &[0, 50, 500, 2_000, 6_000]));
            if self.faulty_for(wait + behind) < self.clock.true_now().steady.after(wait + behind) {
                return;
            }
            seam::pass(wait).await;
            if self.lose_end(Incarnation(life + 1), behind).await {
                life += 1;
            }
        }
    }

    /// Answers whether there is another life of the store now.
    async fn lose_end(&self, incarnation: Incarnation, behind: Duration) -> bool {
        let before = Grounds::of(&*self.below.store).await;
        let replica = self.primary.replica(self.life_after_failover(incarnation));
        let kept = self.log.judge(|judge| judge.clone());
        let joined = self.joined();
        seam::pass(behind).await;
        let after = Grounds::of(&*self.below.store).await;
        if before.is_none() || before != after {
            return false;
        }
        self.primary.fail_over(replica);
        self.set_joined(joined);
        let now = self.clock.true_now();
        self.log.push(Record::FailedOver { behind });
        self.log.judge(|judge| judge.fail_over(now, kept));
        true
    }
}
