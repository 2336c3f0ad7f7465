//! How much workers ask for at this moment: there are as many places for runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::front::Inner;

/// How much workers ask for at this moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand(Arc<AtomicUsize>);

impl Demand {
    /// Events of a lane that the greediest of them asks for.
    pub(crate) fn events(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one claim asks for, as long as it waits.
pub(super) struct Asked<'a> {
    inner: &'a Inner,
    lanes: usize,
}

impl<'a> Asked<'a> {
    pub(super) fn new(inner: &'a Inner, lanes: usize, events: usize) -> Self {
        inner.demand.0.fetch_max(events, Ordering::Relaxed);
        inner.asks(|asked| asked + lanes);
        Self { inner, lanes }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.inner.asks(|asked| asked - self.lanes);
        *self.inner.asked_until.lock() = Some(self.inner.env.steady());
    }
}

impl Inner {
    /// Changes how many lanes are asked for; there are as many places as are asked for, as workers may still have, and
    /// are not offered yet. An offer that was put back is none.
    pub(super) fn asks(&self, change: impl FnOnce(usize) -> usize) {
        let mut asked = self.asked.lock();
        *asked = change(*asked);
        if *asked == 0 {
            self.demand.0.store(0, Ordering::Relaxed);
        }
        let offered = {
            let mut offers = self.offers.lock();
            offers.retain(|offer| !offer.is_put_back());
            offers.len()
        };
        let wanted = (*asked).min(self.room()).saturating_sub(offered);
        let there = self.places.available_permits();
        if wanted > there {
            self.places.add_permits(wanted - there);
        } else {
            self.places.forget_permits(there - wanted);
        }
    }
}
