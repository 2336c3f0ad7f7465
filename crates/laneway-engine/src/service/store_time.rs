//! Time as the store counts it.
//!
//! Back-offs, holds and leases of claims are stored as steady times, and a later owner of the seat reads them. Nodes of a cluster
//! have booted at different moments, and so has one machine before and after a reboot, so all count from where the store does.
//! Dates are compared with the store's time of day, so a wrong wall clock on one node expires nothing and fires nothing there.
//! What passes between two readings comes from the own steady clock, which never goes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::store::{Query, Rows};
use laneway_core::{Clock, ClockReport, Result, Steady, Store, StoreError, Timestamp};

/// How long a reading of the store's clock is used, in microseconds.
const REFRESH_MICROS: u64 = 1_000_000;

/// The own steady clock, moved to where the store counts from, once: for a store that does not watch its clock.
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

/// The clocks of a store that watches its own, read again every second.
pub(super) struct WatchedTime {
    own: Arc<dyn Clock>,
    store: Arc<dyn Store>,
    /// The store's steady time minus the own, wrapping. Only grows.
    steady_shift: AtomicU64,
    /// The store's time of day minus the own steady time, wrapping.
    dates_shift: AtomicU64,
    /// By the own steady time.
    refresh_at: AtomicU64,
}

impl WatchedTime {
    /// `None` for a store that does not watch its clock.
    pub(super) fn of(store: &Arc<dyn Store>, own: &Arc<dyn Clock>) -> Option<Self> {
        let report = store.clock_report()?;
        let at = own.steady().0;
        let time = Self {
            own: Arc::clone(own),
            store: Arc::clone(store),
            steady_shift: AtomicU64::new(report.steady.0.wrapping_sub(at)),
            dates_shift: AtomicU64::new(0),
            refresh_at: AtomicU64::new(at.saturating_add(REFRESH_MICROS)),
        };
        time.learn(&report, at);
        Some(time)
    }

    fn learn(&self, report: &ClockReport, at: u64) {
        let shift = report.steady.0.wrapping_sub(at);
        let known = self.steady_shift.load(Ordering::Relaxed);
        if shift.wrapping_sub(known).cast_signed() > 0 {
            self.steady_shift.store(shift, Ordering::Relaxed);
        }
        self.dates_shift.store(report.dates.0.wrapping_sub(at), Ordering::Relaxed);
    }

    /// The own steady time, after the store's was read again if that is due.
    fn read(&self) -> u64 {
        let own = self.own.steady().0;
        let due = self.refresh_at.load(Ordering::Relaxed);
        let next = own.saturating_add(REFRESH_MICROS);
        let (set, seen) = (Ordering::Relaxed, Ordering::Relaxed);
        if own < due || self.refresh_at.compare_exchange(due, next, set, seen).is_err() {
            return own;
        }
        if let Some(report) = self.store.clock_report() {
            // Read after the store's: a pause in between must not make the store look ahead.
            self.learn(&report, self.own.steady().0);
        }
        own
    }
}

impl std::fmt::Debug for WatchedTime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WatchedTime").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Clock for WatchedTime {
    /// Dates up to this are due.
    fn calendar(&self) -> Timestamp {
        let own = self.read();
        Timestamp(own.wrapping_add(self.dates_shift.load(Ordering::Relaxed)))
    }

    fn steady(&self) -> Steady {
        let own = self.read();
        Steady(own.wrapping_add(self.steady_shift.load(Ordering::Relaxed)))
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

    /// A wall clock that is wrong on one node of three expires nothing there and makes nothing due.
    #[tokio::test]
    async fn wrong_wall_clock_of_a_node_is_not_used() {
        let clock = ManualClock::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let nodes = [0, 365, 400].map(|days| {
            let own = ManualClock::default();
            own.jump_to(own.calendar().after(Duration::from_secs(days * 86_400)));
            let time = WatchedTime::of(&store, &(Arc::new(own.clone()) as Arc<dyn Clock>)).unwrap();
            (own, time)
        });
        for _ in 0..3 {
            clock.advance(Duration::from_secs(2));
            for (own, time) in &nodes {
                own.advance(Duration::from_secs(2));
                assert_eq!((time.calendar(), time.steady()), (clock.calendar(), clock.steady()));
            }
        }
    }

    /// A jump of the store's own clock moves no date on any node until it is believed.
    #[tokio::test]
    async fn dates_of_nodes_follow_the_store() {
        let clock = ManualClock::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let time = WatchedTime::of(&store, &(Arc::new(clock.clone()) as Arc<dyn Clock>)).unwrap();
        let hour = Duration::from_secs(3_600);
        clock.advance(hour);
        assert_eq!(time.calendar(), clock.calendar());
        let right = clock.calendar();
        clock.jump_to(right.after(24 * hour));
        clock.advance(Duration::from_secs(2));
        assert_eq!(time.calendar(), right.after(Duration::from_secs(2)));
        clock.advance(hour);
        store.clock_report().unwrap();
        clock.advance(Duration::from_secs(2));
        assert_eq!(time.calendar(), clock.calendar());
    }
}
