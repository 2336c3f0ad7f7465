//! Starts runs, and takes the places they need. All seats of a processor on this node share its places.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use laneway_core::Steady;
use tokio::sync::OwnedSemaphorePermit;

use super::Loop;
use crate::dispatch::carry::{Ground, Place, carrying};
use crate::dispatch::workers::{Carrying, Workers};
use crate::service::Now;

/// How long a seat waits for several places before it waits for one.
const SEVERAL_PLACES_WITHIN: Duration = Duration::from_millis(5);

impl Loop<'_> {
    /// Starts what may start, or a few of it. Answers whether more may start: some is left, or some is over already.
    pub(super) fn start_runs(&mut self, now: Now) -> bool {
        let mut runs = Vec::new();
        let until = Workers::until(now.steady);
        let some_left = self.take_runs(now, until, &mut runs);
        if runs.is_empty() {
            return false;
        }
        let free = self.ground.workers.carry_out(runs, until);
        self.places += free.len();
        free.into_iter().for_each(Place::keep);
        let Some(first) = self.finished.try_recv() else { return some_left };
        self.on_finished(first);
        true
    }

    /// Takes runs that may start now. Answers whether it took only a few of them.
    fn take_runs(&mut self, now: Now, until: Steady, runs: &mut Vec<Carrying>) -> bool {
        if let Some(demand) = &self.ground.demand {
            self.seat.offer_events(demand.events());
        }
        // Runs that are over at once are started a few at a time, over and over with the same places. If a seat had a
        // place for each, those of a few seats would be all, and the others would wait for them in line.
        let few = self.ground.workers.are_brisk() && self.ground.env.steady() < until;
        while self.seat.can_start(now) {
            self.starting = None;
            if few && runs.len() >= self.ground.places_at_once {
                return true;
            }
            if !self.has_place(few) {
                self.ask_place();
                return false;
            }
            let Some(run) = self.seat.start_run(now) else { break };
            self.places -= 1;
            let place = Place::taken(&self.ground);
            runs.push(carrying(place, self.seat.id(), run, self.finisher.clone(), now));
        }
        self.asking_place = None;
        false
    }

    /// Whether there is a place for a run. Takes as many at once as heads may start: all seats count in one number.
    fn has_place(&mut self, few: bool) -> bool {
        if self.places == 0 {
            let free = &self.ground.places;
            // What workers ask for is one lane each.
            let wanted = if self.ground.demand.is_some() { 1 } else { self.seat.ready().max(1) };
            let most = if few { self.ground.places_at_once } else { usize::MAX };
            let wanted = wanted.min(most).min(free.available_permits());
            // Another seat may have taken some meanwhile.
            for count in [wanted, 1] {
                if let Ok(count) = u32::try_from(count)
                    && let Ok(taken) = free.try_acquire_many(count)
                {
                    taken.forget();
                    self.places = count as usize;
                    break;
                }
            }
        }
        self.places > 0
    }

    pub(super) fn give_places_back(&mut self) {
        self.ground.places.add_permits(std::mem::take(&mut self.places));
    }

    /// Waits in line for places. While runs are brief, a seat waits for several at once: many seats with one place each
    /// would spend more time on turns and commits of single events than on runs. Places stay empty until they suffice,
    /// so it waits for one if runs are longer, or turn out to be.
    fn ask_place(&mut self) {
        if self.asking_place.is_none() {
            let most = if self.ground.workers.runs_are_brief() { self.ground.places_at_once } else { 1 };
            let count = u32::try_from(self.seat.ready().clamp(1, most)).unwrap_or(1);
            self.asking_place = Some(places(Arc::clone(&self.ground), count).boxed());
        }
    }

    /// Gives the place for accused lanes back, or asks for it.
    pub(super) fn ask_alone(&mut self) {
        if !self.seat.keeps_alone() {
            self.alone = None;
        }
        if !self.seat.wants_alone() {
            self.asking_alone = None;
        } else if self.asking_alone.is_none() {
            self.starting = None;
            let alone = Arc::clone(&self.ground.alone);
            let asking = async move { alone.acquire_owned().await.expect("the place is never closed") };
            self.asking_alone = Some(asking.boxed());
        }
    }
}

/// Waits for so many places for a moment, and then for one.
async fn places(ground: Arc<Ground>, count: u32) -> OwnedSemaphorePermit {
    let wait_for = |count| Arc::clone(&ground.places).acquire_many_owned(count);
    let taken = if count == 1 {
        wait_for(1).await
    } else {
        tokio::select! {
            biased;
            taken = wait_for(count) => taken,
            () = ground.env.sleep(SEVERAL_PLACES_WITHIN) => wait_for(1).await,
        }
    };
    taken.expect("places are never closed")
}
