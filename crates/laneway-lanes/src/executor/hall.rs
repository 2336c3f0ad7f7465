//! The hall: the lane table behind the gate, what is owed after an operation on it, and when help is due.
//!
//! Everything here happens under the hall's lock, but for [`Aftermath::carry_out`], which comes after it. Takes no lock.

use std::hash::Hash;
use std::sync::Arc;
use std::task::Waker;
use std::vec::Drain;

use super::entry::Entry;
use super::fence::{discard, fenced};
use super::gate::{Admitted, Gate};
use super::hub::EntryTurn;
use super::outcome::{Cause, End, Failure};
use super::settings::Totals;
use super::visit::Settled;
use crate::table::{Ending, Outbox, Pushed, Table, Tick};

/// What is behind the gate.
#[derive(Debug)]
pub(super) struct Hall<K, V, R, E> {
    pub(super) table: Table<K, Arc<Entry<V, R, E>>>,
    /// The inbox being moved; empty between operations.
    pub(super) arrivals: Vec<Admitted<K, V, R, E>>,
    /// Pushers whose push was let in. A brisk worker wakes many at a time.
    pub(super) let_in: Vec<Waker>,
    /// Ends the gate has not been told of.
    pub(super) ended: usize,
    pub(super) workers: usize,
    pub(super) timekeeper: Option<Waker>,
    /// When the timekeeper wakes by itself.
    pub(super) armed: Option<Tick>,
    /// When a brisk worker that left work for others behind, and called nobody, gets help all the same.
    pub(super) help_due: Option<Tick>,
    pub(super) totals: Totals,
}

/// A push that is told its end without having been in the table.
type Farewell<V, R, E> = (Arc<Entry<V, R, E>>, End<R, E>);

/// What is left to do after the locks are let go.
#[derive(Debug)]
pub(super) struct Aftermath<V, R, E> {
    outbox: Outbox<Arc<Entry<V, R, E>>>,
    farewells: Vec<Farewell<V, R, E>>,
    stops: Vec<Arc<Entry<V, R, E>>>,
    pub(super) wakers: Vec<Waker>,
    /// Whether a worker or the timekeeper is among those to be woken.
    pub(super) calls_helper: bool,
}

impl<V, R, E> Aftermath<V, R, E> {
    pub(super) fn new() -> Self {
        Self {
            outbox: Outbox::default(),
            farewells: Vec::new(),
            stops: Vec::new(),
            wakers: Vec::new(),
            calls_helper: false,
        }
    }

    pub(super) fn stop(&mut self, running: Vec<Arc<Entry<V, R, E>>>) {
        self.stops.extend(running);
    }

    /// Ends, stops and wakes. Never under a lock.
    pub(super) fn carry_out(self) {
        for (entry, end) in self.farewells {
            tell(entry, end);
        }
        for ended in self.outbox.ended {
            if let Some(end) = forced_end(ended.ending) {
                tell(ended.payload, end);
            }
        }
        self.outbox.forgotten.into_iter().for_each(discard);
        for entry in self.stops {
            entry.stop();
            discard(entry);
        }
        self.wakers.into_iter().for_each(Waker::wake);
    }
}

/// Tells a ticket its end. What nobody waits for is dropped, and a destructor that panics keeps nobody else waiting.
fn tell<V, R, E>(entry: Arc<Entry<V, R, E>>, end: End<R, E>) {
    let told = fenced(|| entry.resolve(end));
    drop(told);
}

/// The end of a push that the table decides alone.
pub(super) fn forced_end<R, E>(ending: Ending) -> Option<End<R, E>> {
    match ending {
        Ending::Superseded { by } => Some(End::Superseded { by }),
        Ending::Cancelled => Some(End::Cancelled),
        Ending::Expired => Some(End::Expired),
        Ending::Done | Ending::Failed => None,
    }
}

impl<K: Hash + Eq + Clone, V, R, E> Hall<K, V, R, E> {
    pub(super) fn absorb(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        let mut emptied = std::mem::take(&mut self.arrivals);
        let mut arrivals = emptied.drain(..);
        // Keys are compared while their parcel is still in the line: whose key panics is the next in it.
        while let Err(message) = fenced(|| self.absorb_all(&mut arrivals, aftermath)) {
            let Some((_, _, parcel)) = arrivals.next() else { break };
            self.totals.failed += 1;
            self.ended += 1;
            aftermath.farewells.push((parcel.payload, panicked(message, 0)));
        }
        drop(arrivals);
        self.arrivals = emptied;
        // At once, so that whoever looks now finds every push in one count or another.
        self.take_outbox(aftermath);
    }

    /// Takes over what left the table, and counts it.
    fn take_outbox(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        if !self.table.has_outbox() {
            return;
        }
        let mut left = Outbox::default();
        self.table.swap_outbox(&mut left);
        self.ended += left.ended.len();
        left.ended.iter().for_each(|ended| self.totals.count(ended.ending));
        if aftermath.outbox.is_empty() {
            aftermath.outbox = left;
        } else {
            aftermath.outbox.ended.append(&mut left.ended);
            aftermath.outbox.forgotten.append(&mut left.forgotten);
        }
    }

    fn absorb_all(
        &mut self,
        arrivals: &mut Drain<'_, Admitted<K, V, R, E>>,
        aftermath: &mut Aftermath<V, R, E>,
    ) {
        while let Some((_, hash, parcel)) = arrivals.as_slice().first() {
            let known = self.table.find_hashed(*hash, &parcel.key);
            let Some((id, hash, parcel)) = arrivals.next() else { return };
            match self.table.push_found(id, hash, known, parcel) {
                Pushed::Accepted { stop: None, .. } => {}
                Pushed::Accepted { stop, .. } => aftermath.stops.extend(stop),
                Pushed::Stale { newest, payload, .. } => {
                    self.totals.stale += 1;
                    self.ended += 1;
                    aftermath.farewells.push((payload, End::Stale { newest }));
                }
            }
        }
    }

    pub(super) fn settle(&mut self, settled: &mut [Settled<K, V, R, E>]) {
        for run in settled {
            self.totals.runs += 1;
            run.ending = self.table.finish(&run.turn, run.verdict);
            if let Some(ending) = run.ending {
                self.totals.count(ending);
                self.ended += 1;
            }
        }
    }

    /// Takes turns until the batch is full or nothing more may start.
    pub(super) fn take(
        &mut self,
        now: Tick,
        batch: &mut Vec<EntryTurn<K, V, R, E>>,
        batch_max: usize,
        aftermath: &mut Aftermath<V, R, E>,
    ) {
        let fill = |table: &mut Table<K, Arc<Entry<V, R, E>>>, batch: &mut Vec<_>| {
            while batch.len() < batch_max
                && let Some(turn) = table.start(now)
            {
                batch.push(turn);
            }
        };
        while let Err(message) = fenced(|| fill(&mut self.table, batch)) {
            let Some((payload, attempts)) = self.table.refuse_next() else { return };
            self.totals.failed += 1;
            self.ended += 1;
            aftermath.farewells.push((payload, panicked(message, attempts)));
        }
    }

    /// Whether there is anything to tell the gate: ends, or work for another worker unless this one goes on `alone`.
    pub(super) fn owes_the_gate(&self, alone: bool) -> bool {
        self.ended > 0 || self.table.has_outbox() || (!alone && self.table.can_start())
    }

    pub(super) fn next_due(&self) -> Option<Tick> {
        [self.table.next_due(), self.help_due].into_iter().flatten().min()
    }

    /// Wakes the timekeeper if something is due before it would wake by itself.
    pub(super) fn set_alarm(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        if let Some(due) = self.next_due()
            && self.armed.is_none_or(|armed| due < armed)
        {
            self.armed = Some(due);
            aftermath.calls_helper |= self.timekeeper.is_some();
            aftermath.wakers.extend(self.timekeeper.take());
        }
    }

    /// What every operation owes to others: room to waiting pushes, work to parked workers, a word to the timekeeper
    /// and to whoever waits for quiet.
    pub(super) fn leave(&mut self, gate: &mut Gate<K, V, R, E>, aftermath: &mut Aftermath<V, R, E>) {
        self.take_outbox(aftermath);
        aftermath.wakers.append(&mut self.let_in);
        gate.release(std::mem::take(&mut self.ended), &mut aftermath.wakers);
        if (self.table.can_start() || gate.has_inbox())
            && let Some(worker) = gate.parked_worker()
        {
            aftermath.calls_helper = true;
            aftermath.wakers.push(worker);
        }
        self.set_alarm(aftermath);
        if gate.is_finished() {
            aftermath.wakers.extend(std::iter::from_fn(|| gate.any_parked_worker()));
            aftermath.wakers.extend(self.timekeeper.take());
        }
    }
}

/// The end of a push whose key or handler panicked.
fn panicked<R, E>(message: String, attempts: u32) -> End<R, E> {
    End::Failed(Failure { cause: Cause::Panicked(message), attempts })
}

impl Totals {
    fn count(&mut self, ending: Ending) {
        *match ending {
            Ending::Done => &mut self.done,
            Ending::Failed => &mut self.failed,
            Ending::Superseded { .. } => &mut self.superseded,
            Ending::Cancelled => &mut self.cancelled,
            Ending::Expired => &mut self.expired,
        } += 1;
    }
}
