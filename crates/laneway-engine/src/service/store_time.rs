//! Steady time as a shared store counts it.
//!
//! Back-offs, holds and leases of claims are written as moments of steady time, and whoever owns the seat by then reads them. On a store that
//! only this process opens, both clocks are the machine's. Nodes of a cluster have booted at different moments, so they all
//! count from where the store does; what passes between two readings still comes from the own clock, which never goes back.

use std::sync::Arc;

use laneway_core::store::{Query, Rows};
use laneway_core::{Clock, Result, Steady, Store, StoreError, Timestamp};

/// The own clock, moved to where the store counts from.
#[derive(Debug)]
pub(super) struct StoreTime {
    own: Arc<dyn Clock>,
    /// What the store's clock showed when the own one showed `at`.
    shown: Steady,
    at: Steady,
}

impl StoreTime {
    /// Asks the store what time it is.
    pub(super) async fn of(store: &dyn Store, own: Arc<dyn Clock>) -> Result<Self> {
        let at = own.steady();
        let Rows::Store(view) = store.query(Query::Store).await? else {
            return Err(StoreError::Corrupt {
                what: "the store answered another list than itself".to_owned(),
            });
        };
        Ok(Self { own, shown: view.steady, at })
    }
}

impl Clock for StoreTime {
    fn calendar(&self) -> Timestamp {
        self.own.calendar()
    }

    fn steady(&self) -> Steady {
        self.shown.after(self.own.steady().since(self.at))
    }

    fn epoch(&self) -> u128 {
        self.own.epoch()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use laneway_core::ManualClock;
    use laneway_embedded::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn nodes_that_booted_at_different_moments_count_as_their_store_does() {
        let store = MemoryStore::new(Arc::new(ManualClock::default()));
        for earlier in [0, 900] {
            let own = Arc::new(ManualClock::default());
            own.advance(Duration::from_secs(earlier));
            let time = StoreTime::of(&store, own.clone()).await.unwrap();
            let now = time.steady();
            own.advance(Duration::from_secs(2));
            let Rows::Store(view) = store.query(Query::Store).await.unwrap() else { panic!("another list") };
            assert_eq!((now, time.steady()), (view.steady, view.steady.after(Duration::from_secs(2))));
        }
    }
}
