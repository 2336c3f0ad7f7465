//! A store that loses its end: a replica stops following, and some time later it takes the primary's place.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::store::{Query, Rows};
use laneway_core::{Incarnation, Store, StreamInfo};

use super::judge::Judge;
use super::options::pick;
use super::primary::Replicated;
use super::record::Record;
use super::world::{Joined, World};
use crate::seam;

/// What a failover must not go back behind: streams and processors that the world counts on.
async fn grounds(store: &dyn Store) -> Option<Vec<StreamInfo>> {
    match store.query(Query::Streams).await {
        Ok(Rows::Streams(streams)) => Some(streams),
        _ => None,
    }
}

/// A replica that follows no longer, and what was known when it stopped.
struct Replica {
    store: Box<dyn Replicated>,
    streams: Vec<StreamInfo>,
    judge: Judge,
    joined: Joined,
}

impl World {
    /// Lets the store lose its end from time to time, while faults last.
    pub(super) async fn lose_ends(self: &Arc<Self>) {
        let Some(every) = self.options.failover_every else { return };
        let mut rng = self.chance(4);
        let mut lives = (2..).map(Incarnation);
        loop {
            let wait = every.mul_f64(0.2 + 1.6 * rng.f64());
            let behind = Duration::from_millis(pick(&mut rng, &[0, 50, 500, 2_000, 6_000]));
            // Now and then another replica stopped with it, takes over from it, and has never heard of it.
            let again =
                (rng.u8(0..4) == 0).then(|| Duration::from_millis(pick(&mut rng, &[500, 4_000, 9_000])));
            let length = wait + behind + again.unwrap_or_default();
            if self.faulty_for(length) < self.clock.true_now().steady.after(length) {
                return;
            }
            seam::pass(wait).await;
            let first = self.replica(lives.next()).await;
            let second = if again.is_some() { self.replica(lives.next()).await } else { None };
            seam::pass(behind).await;
            let went = self.fail_over(first, behind).await;
            if let Some(again) = again.filter(|_| went) {
                seam::pass(again).await;
                if self.fail_over(second, behind + again).await {
                    self.log.judge(|judge| judge.hit("failover behind a failover"));
                }
            }
        }
    }

    async fn replica(&self, life: Option<Incarnation>) -> Option<Replica> {
        let streams = grounds(&*self.below.store).await?;
        let store = self.primary.replica(self.life_after_failover(life?));
        Some(Replica { store, streams, judge: self.log.judge(|judge| judge.clone()), joined: self.joined() })
    }

    /// Answers whether there is another life of the store now.
    async fn fail_over(&self, replica: Option<Replica>, behind: Duration) -> bool {
        let Some(Replica { store, streams, judge: kept, joined }) = replica else { return false };
        if grounds(&*self.below.store).await.is_none_or(|now| now != streams) {
            return false;
        }
        self.primary.fail_over(store);
        self.set_joined(joined);
        let now = self.clock.true_now();
        self.log.push(Record::FailedOver { behind });
        self.log.judge(|judge| judge.fail_over(now, kept));
        true
    }
}
