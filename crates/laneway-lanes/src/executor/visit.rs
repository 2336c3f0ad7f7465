//! A worker's visit to the hub: it hands finished runs back, takes turns, and parks when there is nothing for it.
//!
//! Brisk runs, those that take next to no time, are left to one worker: two that take turns in the hall move every lane
//! from one processor's cache to the other's and are slower together than one alone. So a brisk worker calls nobody
//! while it goes on itself, and another that gets in its way withdraws. Should a run take long after all, the
//! timekeeper calls for help.

use std::hash::Hash;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::entry::Entry;
use super::fence::fenced;
use super::gate::Patience;
use super::hall::{Aftermath, Hall, forced_end};
use super::hub::{EntryTurn, Hub};
use super::outcome::End;
use super::sync::{MutexGuard, lock, try_lock};
use crate::table::{Ending, Tick, Verdict};

/// How long a brisk worker keeps to itself what it leaves behind: after this, another helps.
const HELP_AFTER: Duration = Duration::from_millis(1);

/// A run that is over, on its way back into the table.
#[derive(Debug)]
pub(super) struct Settled<K, V, R, E> {
    pub(super) turn: EntryTurn<K, V, R, E>,
    pub(super) verdict: Verdict,
    /// How the push ends if the table agrees with the verdict.
    pub(super) end: Option<End<R, E>>,
    /// What the table said.
    pub(super) ending: Option<Ending>,
}

/// What a worker brings to the hub and takes from it.
#[derive(Debug)]
pub(super) struct Basket<K, V, R, E> {
    pub(super) settled: Vec<Settled<K, V, R, E>>,
    pub(super) batch: Vec<EntryTurn<K, V, R, E>>,
    /// Entries that nobody holds any more.
    pub(super) spent: Vec<Arc<Entry<V, R, E>>>,
}

/// How a worker comes to the hub.
#[derive(Debug)]
pub(super) struct Visit<'a> {
    pub(super) worker: usize,
    /// Turns it wants.
    pub(super) batch_max: usize,
    /// Its last runs took next to no time: it needs nobody's help at once.
    pub(super) brisk: bool,
    pub(super) patience: Patience,
    pub(super) waker: &'a Waker,
    /// Whether it parks when there is nothing for it.
    pub(super) parks: bool,
    /// Whether it only hands back what it has, and then parks, if another is at work.
    pub(super) withdraws: bool,
    /// Whether it will be back without letting other tasks run in between.
    pub(super) returns: bool,
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It has turns to run, or should look again.
    Work,
    /// The same, after the helpers it called had their chance: the runtime may have put them on this very thread, where
    /// a run that blocks it would hold them up too.
    WorkAfterOthers,
    /// Another is in the hall; it has not been there.
    Busy,
    /// There is nothing for it, and it is not registered.
    Nothing,
    /// It is registered and will be woken.
    Parked,
    /// Closed and empty: it may end.
    Finished,
}

#[cfg(test)]
impl<'a> Visit<'a> {
    /// A worker that wants one turn and waits for the hall.
    pub(super) fn patient(worker: usize, waker: &'a Waker) -> Self {
        let (patience, parks) = (Patience::Wait, true);
        Self { worker, batch_max: 1, brisk: false, patience, waker, parks, withdraws: false, returns: false }
    }
}

impl<K: Hash + Eq + Clone, V, R, E> Hub<K, V, R, E> {
    /// Hands finished runs back and takes new turns: a worker's one visit per batch.
    pub(super) fn exchange(&self, basket: &mut Basket<K, V, R, E>, visit: &Visit<'_>) -> (Next, Tick) {
        let now = self.clock.now();
        let mut hall = match self.enter_as_worker(basket.settled.is_empty(), visit) {
            Ok(hall) => hall,
            Err(next) => return (next, now),
        };
        let mut aftermath = Aftermath::new();
        hall.settle(&mut basket.settled);
        let mut gate = self.gate();
        gate.arrive(visit.worker);
        let withdraws = visit.withdraws && gate.others_are_up(visit.worker);
        let ended = std::mem::take(&mut hall.ended);
        gate.release(ended, &mut hall.let_in);
        gate.recycle(&mut basket.spent);
        gate.take_inbox(&mut hall.arrivals);
        drop(gate);
        hall.absorb(&mut aftermath);
        let wanted = if withdraws { 0 } else { visit.batch_max };
        hall.take(now, &mut basket.batch, wanted, &mut aftermath);
        let busy = !basket.batch.is_empty() || !basket.settled.is_empty();
        let alone = visit.brisk && busy;
        // The other may be in the middle of a long run.
        if alone || withdraws {
            hall.help_due.get_or_insert(now.after(HELP_AFTER));
        }
        if !(alone && visit.returns) {
            aftermath.wakers.append(&mut hall.let_in);
        }
        let next = if busy && !withdraws && !hall.owes_the_gate(alone) {
            hall.set_alarm(&mut aftermath);
            drop(hall);
            Next::Work
        } else {
            let mut gate = self.gate();
            hall.leave(&mut gate, &mut aftermath);
            // Under the gate's lock: see `step_aside`.
            drop(hall);
            if gate.is_finished() {
                Next::Finished
            } else if withdraws {
                gate.park(visit.worker, visit.waker);
                Next::Parked
            } else if busy || gate.has_inbox() {
                Next::Work
            } else if visit.parks || !aftermath.wakers.is_empty() {
                // Whoever is woken now pushes next and calls this worker: in turns on one thread, with everything
                // still in its cache, they are faster than side by side on two.
                gate.park(visit.worker, visit.waker);
                Next::Parked
            } else {
                Next::Nothing
            }
        };
        let next = if next == Next::Work && aftermath.calls_helper { Next::WorkAfterOthers } else { next };
        aftermath.carry_out();
        basket.announce();
        (next, now)
    }

    fn enter_as_worker(
        &self,
        empty_handed: bool,
        visit: &Visit<'_>,
    ) -> Result<MutexGuard<'_, Hall<K, V, R, E>>, Next> {
        if visit.patience == Patience::Wait {
            return Ok(lock(&self.hall));
        }
        match try_lock(&self.hall) {
            Some(hall) => Ok(hall),
            None if empty_handed => self.step_aside(visit),
            None => Err(Next::Busy),
        }
    }

    /// Parks a worker that has nothing to hand back and finds another in the hall: two that take turns there cost
    /// more than one that stays.
    ///
    /// Whoever has found work for others under the gate's lock has left the hall when it lets go of the gate. So
    /// either the hall is free once this worker is registered, or somebody in there will still look for it.
    fn step_aside(&self, visit: &Visit<'_>) -> Result<MutexGuard<'_, Hall<K, V, R, E>>, Next> {
        let mut gate = self.gate();
        if gate.has_inbox() {
            return Err(Next::Busy);
        }
        gate.arrive(visit.worker);
        gate.park(visit.worker, visit.waker);
        drop(gate);
        try_lock(&self.hall).ok_or(Next::Parked)
    }
}

impl<K, V, R, E> Settled<K, V, R, E> {
    /// Tells the ticket, or answers the emptied entry of a push that has no ticket any more.
    fn announce(self) -> Option<Arc<Entry<V, R, E>>> {
        let ending = self.ending?;
        let mut entry = self.turn.payload;
        if let Some(unshared) = Arc::get_mut(&mut entry) {
            unshared.clear();
            return Some(entry);
        }
        if let Some(end) = forced_end(ending).or(self.end) {
            entry.resolve(end);
        }
        None
    }
}

impl<K, V, R, E> Basket<K, V, R, E> {
    pub(super) fn new(room: usize) -> Self {
        Self {
            settled: Vec::with_capacity(room),
            batch: Vec::with_capacity(room),
            spent: Vec::with_capacity(room),
        }
    }

    /// Tells the tickets, once the table has spoken; keeps the entries that have no ticket any more.
    pub(super) fn announce(&mut self) {
        // What the gate had no room for.
        self.spent.clear();
        let Self { settled, spent, .. } = self;
        let mut settled = settled.drain(..);
        // A destructor that panics costs its entry the pool, nothing else.
        while fenced(|| spent.extend(settled.by_ref().filter_map(Settled::announce))).is_err() {}
    }
}
