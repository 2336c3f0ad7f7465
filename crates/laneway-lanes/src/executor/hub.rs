//! The hub: the gate, the lane table behind it, and who must be woken after their locks are let go.
//!
//! Two locks, always taken in the order hall, gate. A push takes only the gate's. Whoever takes the hall's first moves
//! the inbox into the table, so that every look and every order sees all pushes made before it. What follows from an
//! operation is collected in an [`Aftermath`] and done when both locks are let go: waking tasks, resolving
//! tickets and dropping values. No code of the user but `Hash`, `Eq`, `Clone` and `Drop` of the key runs under a lock;
//! the first three may panic, at the cost of the push or the call they are for.
//!
//! No wake-up is lost: a worker parks under the gate's lock, having seen there that the inbox is empty, and under the
//! hall's, having seen that nothing may start, or else knowing of another worker that has yet to look. The naive worker looks, lets go, and then registers itself; a push
//! in between finds nobody to wake.
//!
//! One table, not one per processor: priority, fairness and the concurrency cap hold over all keys. Workers take and
//! finish turns in batches, so the hall is entered far less often than once per push.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::task::Waker;

use hashbrown::DefaultHashBuilder;

use super::entry::Entry;
use super::gate::{Admission, Gate, Patience};
use super::hall::{Aftermath, Hall};
use super::push::Push;
use super::seam::Clock;
use super::settings::{Settings, Totals, View};
use super::sync::{Mutex, MutexGuard, lock, lock_brief, try_lock};
use super::visit::Basket;
use crate::table::{Arrival, Mode, Table, Tick, Turn};

/// A push with its value moved into the entry that its ticket shares.
pub(super) type Parcel<K, V, R, E> = Arrival<K, Arc<Entry<V, R, E>>>;
/// The right to run a parcel.
pub(super) type EntryTurn<K, V, R, E> = Turn<K, Arc<Entry<V, R, E>>>;

#[derive(Debug)]
pub(super) struct Hub<K, V, R, E> {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    hasher: DefaultHashBuilder,
    gate: Mutex<Gate<K, V, R, E>>,
    pub(super) hall: Mutex<Hall<K, V, R, E>>,
}

/// When the timekeeper has something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    At(Tick),
    /// Not before it is woken.
    Unknown,
    /// Closed and empty: it may end.
    NeverAgain,
}

impl<K: Hash + Eq + Clone, V, R, E> Hub<K, V, R, E> {
    pub(super) fn new(settings: Settings, clock: Clock) -> Self {
        let table = Table::new(settings.for_table());
        let hasher = table.hasher();
        let gate = Gate::new(settings.capacity, settings.workers);
        let hall = Hall {
            table,
            arrivals: Vec::new(),
            let_in: Vec::new(),
            ended: 0,
            workers: settings.workers,
            timekeeper: None,
            armed: None,
            help_due: None,
            totals: Totals::default(),
        };
        Self { settings, clock, hasher, gate: Mutex::new(gate), hall: Mutex::new(hall) }
    }

    pub(super) fn gate(&self) -> MutexGuard<'_, Gate<K, V, R, E>> {
        lock_brief(&self.gate)
    }

    pub(super) fn push(&self, push: Push<K, V>, patience: Patience) -> Admission<K, V, R, E> {
        let timed = push.ttl.is_some();
        let (hash, expires) = self.prepare(&push);
        let mut gate = self.gate();
        let admission = gate.push(push, hash, expires, patience);
        let worker = matches!(admission, Admission::Admitted(_)).then(|| gate.parked_worker()).flatten();
        let long = gate.is_inbox_long();
        drop(gate);
        if let Some(worker) = worker {
            worker.wake();
        }
        if long {
            self.help();
        }
        match admission {
            // What waits in the inbox may take the place of what waits in a lane: look behind the gate before
            // giving up.
            Admission::Full(push) if self.settings.mode == Mode::Latest => self.push_behind(push, patience),
            Admission::Admitted(entry) if timed => {
                // The timekeeper learns of the push when it is in the table.
                self.with(|_, _| ());
                Admission::Admitted(entry)
            }
            admission => admission,
        }
    }

    fn push_behind(&self, push: Push<K, V>, patience: Patience) -> Admission<K, V, R, E> {
        let (hash, expires) = self.prepare(&push);
        self.with(|_, _| ());
        let admission = self.gate().push(push, hash, expires, patience);
        self.with(|_, _| ());
        admission
    }

    fn prepare(&self, push: &Push<K, V>) -> (u64, Option<Tick>) {
        (self.hasher.hash_one(&push.key), push.ttl.map(|ttl| self.clock.now().after(ttl)))
    }

    pub(super) fn push_many(&self, pushes: impl Iterator<Item = Push<K, V>>) -> Vec<Admission<K, V, R, E>> {
        let pushes: Vec<_> = pushes.map(|push| (self.prepare(&push), push)).collect();
        let mut timed = false;
        let mut admissions = Vec::with_capacity(pushes.len());
        let mut gate = self.gate();
        for ((hash, expires), push) in pushes {
            timed |= expires.is_some();
            admissions.push(gate.push(push, hash, expires, Patience::Wait));
        }
        let worker = gate.has_inbox().then(|| gate.parked_worker()).flatten();
        let long = gate.is_inbox_long();
        drop(gate);
        if let Some(worker) = worker {
            worker.wake();
        }
        if timed {
            self.with(|_, _| ());
        } else if long {
            self.help();
        }
        admissions
    }

    /// Moves a long inbox into the table, unless somebody is just doing so.
    fn help(&self) {
        let Some(mut hall) = try_lock(&self.hall) else { return };
        let mut aftermath = Aftermath::new();
        self.gate().take_inbox(&mut hall.arrivals);
        hall.absorb(&mut aftermath);
        self.leave(hall, &mut aftermath);
        aftermath.carry_out();
    }

    /// The push a parcel was made from. Its entry must be held by nobody else.
    pub(super) fn unpack(&self, parcel: Parcel<K, V, R, E>) -> Push<K, V> {
        let Arrival { key, payload, priority, expires, revision } = parcel;
        let value =
            Arc::into_inner(payload).and_then(Entry::into_value).expect("a refused parcel is held once");
        let ttl = expires.map(|expires| expires.since(self.clock.now()));
        Push { key, value, priority, ttl, revision }
    }

    /// Runs one operation in the hall and carries out what follows.
    pub(super) fn with<A>(
        &self,
        operation: impl FnOnce(&mut Hall<K, V, R, E>, &mut Aftermath<V, R, E>) -> A,
    ) -> A {
        let mut aftermath = Aftermath::new();
        let mut hall = self.enter(&mut aftermath);
        // A key may panic when it is hashed, compared or cloned, always before the table is changed. The caller gets
        // the panic, after everybody else got what they are owed.
        let answer = catch_unwind(AssertUnwindSafe(|| operation(&mut hall, &mut aftermath)));
        self.leave(hall, &mut aftermath);
        aftermath.carry_out();
        answer.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn leave(&self, mut hall: MutexGuard<'_, Hall<K, V, R, E>>, aftermath: &mut Aftermath<V, R, E>) {
        let mut gate = self.gate();
        hall.leave(&mut gate, aftermath);
        // Under the gate's lock: see `step_aside`.
        drop(hall);
        drop(gate);
    }

    /// Takes the hall's lock and moves the inbox into the table.
    fn enter(&self, aftermath: &mut Aftermath<V, R, E>) -> MutexGuard<'_, Hall<K, V, R, E>> {
        let mut hall = lock(&self.hall);
        self.gate().take_inbox(&mut hall.arrivals);
        hall.absorb(aftermath);
        hall
    }

    /// Refuses pushes from now on.
    pub(super) fn close(&self) {
        self.with(|_, aftermath| self.gate().close(&mut aftermath.wakers));
    }

    /// A worker is gone, and with it the runs it had. Without any worker nothing would ever end, so the last one
    /// ends everything.
    pub(super) fn lose_worker(&self, worker: usize, basket: &mut Basket<K, V, R, E>) {
        self.with(|hall, aftermath| {
            // It is neither parked nor on its way: whoever is woken next must be another.
            self.gate().arrive(worker);
            hall.settle(&mut basket.settled);
            hall.workers -= 1;
            if hall.workers == 0 {
                let mut gate = self.gate();
                gate.close(&mut aftermath.wakers);
                // A push may have come in since the hall was entered; none will from now on.
                gate.take_inbox(&mut hall.arrivals);
                drop(gate);
                hall.absorb(aftermath);
                hall.table.cancel_all();
            }
        });
        basket.announce();
    }

    /// Lets time pass and says when to look again; registers the timekeeper for an earlier moment.
    pub(super) fn keep_time(&self, waker: &Waker) -> Due {
        let now = self.clock.now();
        self.with(|hall, _| {
            hall.table.advance(now);
            if hall.help_due.is_some_and(|due| due <= now) {
                hall.help_due = None;
            }
            hall.armed = hall.next_due();
            if hall.workers == 0 || (hall.table.is_empty() && self.gate().closed) {
                return Due::NeverAgain;
            }
            hall.timekeeper = Some(waker.clone());
            hall.armed.map_or(Due::Unknown, Due::At)
        })
    }

    pub(super) fn totals(&self) -> Totals {
        self.with(|hall, _| hall.totals)
    }

    pub(super) fn view(&self) -> View {
        self.with(|hall, _| {
            let gate = self.gate();
            View {
                table: hall.table.snapshot(),
                waiting_for_capacity: gate.waiters_len(),
                closed: gate.closed,
                totals: hall.totals,
            }
        })
    }
}
