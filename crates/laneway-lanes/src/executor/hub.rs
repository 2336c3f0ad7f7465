//! The hub: the gate, the lane table behind it, and who must be woken after their locks are let go.
//!
//! Two locks, always taken in the order hall, gate. A push takes only the gate's. Whoever takes the hall's first moves
//! the inbox into the table, so that every look and every order sees all pushes made before it. What follows from an
//! operation is collected in an [`Aftermath`] and done when both locks are let go: waking tasks, resolving
//! tickets and dropping values. No code of the user but `Hash`, `Eq`, `Clone` and `Drop` of the key runs under a lock;
//! the first three may panic, at the cost of the push or the call they are for.
//!
//! No wake-up is lost: a worker parks under the gate's lock, having seen there that the inbox is empty, and under the
//! hall's, having seen that nothing may start. The naive worker looks, lets go, and then registers itself; a push
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
use super::fence::{discard, fenced};
use super::gate::{Admission, Admitted, Gate, Patience};
use super::outcome::{Cause, End, Failure};
use super::push::Push;
use super::seam::Clock;
use super::settings::{Settings, Totals, View};
use super::sync::{Mutex, MutexGuard, lock, try_lock};
use crate::table::{Arrival, Ending, Mode, Outbox, Pushed, Table, Tick, Turn, Verdict};

/// A push with its value moved into the entry that its ticket shares.
pub(super) type Parcel<K, V, R, E> = Arrival<K, Arc<Entry<V, R, E>>>;
/// The right to run a parcel.
pub(super) type Job<K, V, R, E> = Turn<K, Arc<Entry<V, R, E>>>;

#[derive(Debug)]
pub(super) struct Hub<K, V, R, E> {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    hasher: DefaultHashBuilder,
    gate: Mutex<Gate<K, V, R, E>>,
    hall: Mutex<Hall<K, V, R, E>>,
}

/// What is behind the gate.
#[derive(Debug)]
pub(super) struct Hall<K, V, R, E> {
    pub(super) table: Table<K, Arc<Entry<V, R, E>>>,
    /// The inbox being moved; empty between operations.
    arrivals: Vec<Admitted<K, V, R, E>>,
    /// Ends the gate has not been told of.
    ended: usize,
    workers: usize,
    timekeeper: Option<Waker>,
    /// When the timekeeper wakes by itself.
    armed: Option<Tick>,
    totals: Totals,
}

/// A run that is over, on its way back into the table.
#[derive(Debug)]
pub(super) struct Settled<K, V, R, E> {
    pub(super) job: Job<K, V, R, E>,
    pub(super) verdict: Verdict,
    /// How the push ends if the table agrees with the verdict.
    pub(super) end: Option<End<R, E>>,
    /// What the table said.
    pub(super) ending: Option<Ending>,
}

/// A push that is told its end without having been in the table.
type Farewell<V, R, E> = (Arc<Entry<V, R, E>>, End<R, E>);

/// What is left to do after the locks are let go.
#[derive(Debug)]
pub(super) struct Aftermath<V, R, E> {
    outbox: Outbox<Arc<Entry<V, R, E>>>,
    farewells: Vec<Farewell<V, R, E>>,
    stops: Vec<Arc<Entry<V, R, E>>>,
    wakers: Vec<Waker>,
}

/// What a worker brings to the hub and takes from it.
#[derive(Debug)]
pub(super) struct Basket<K, V, R, E> {
    pub(super) settled: Vec<Settled<K, V, R, E>>,
    pub(super) batch: Vec<Job<K, V, R, E>>,
    /// Entries that nobody holds any more.
    pub(super) spent: Vec<Arc<Entry<V, R, E>>>,
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It has turns to run, or should look again.
    Work,
    /// Another is in the hall; it has not been there.
    Busy,
    /// There is nothing for it, and it is not registered.
    Nothing,
    /// It is registered and will be woken.
    Parked,
    /// Closed and empty: it may end.
    Finished,
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

impl<V, R, E> Aftermath<V, R, E> {
    fn new() -> Self {
        Self { outbox: Outbox::default(), farewells: Vec::new(), stops: Vec::new(), wakers: Vec::new() }
    }

    pub(super) fn stop(&mut self, running: Vec<Arc<Entry<V, R, E>>>) {
        self.stops.extend(running);
    }

    /// Ends, stops and wakes. Never under a lock.
    fn carry_out(self) {
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
fn forced_end<R, E>(ending: Ending) -> Option<End<R, E>> {
    match ending {
        Ending::Superseded { by } => Some(End::Superseded { by }),
        Ending::Cancelled => Some(End::Cancelled),
        Ending::Expired => Some(End::Expired),
        Ending::Done | Ending::Failed => None,
    }
}

impl<K: Hash + Eq + Clone, V, R, E> Hub<K, V, R, E> {
    pub(super) fn new(settings: Settings, clock: Clock) -> Self {
        let table = Table::new(settings.for_table());
        let hasher = table.hasher();
        let gate = Gate::new(settings.capacity, settings.workers);
        let hall = Hall {
            table,
            arrivals: Vec::new(),
            ended: 0,
            workers: settings.workers,
            timekeeper: None,
            armed: None,
            totals: Totals::default(),
        };
        Self { settings, clock, hasher, gate: Mutex::new(gate), hall: Mutex::new(hall) }
    }

    pub(super) fn gate(&self) -> MutexGuard<'_, Gate<K, V, R, E>> {
        lock(&self.gate)
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
        hall.leave(&mut self.gate(), &mut aftermath);
        drop(hall);
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
        hall.leave(&mut self.gate(), &mut aftermath);
        drop(hall);
        aftermath.carry_out();
        answer.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Takes the hall's lock and moves the inbox into the table.
    fn enter(&self, aftermath: &mut Aftermath<V, R, E>) -> MutexGuard<'_, Hall<K, V, R, E>> {
        let mut hall = lock(&self.hall);
        self.gate().take_inbox(&mut hall.arrivals);
        hall.absorb(aftermath);
        hall
    }

    /// Hands finished runs back and takes new turns: a worker's one visit per batch. With a waker it parks if there
    /// is nothing.
    pub(super) fn exchange(
        &self,
        basket: &mut Basket<K, V, R, E>,
        batch_max: usize,
        worker: usize,
        patience: Patience,
        waker: Option<&Waker>,
    ) -> (Next, Tick) {
        let now = self.clock.now();
        let mut aftermath = Aftermath::new();
        let mut hall = match patience {
            Patience::Wait => lock(&self.hall),
            Patience::GiveUp => match try_lock(&self.hall) {
                Some(hall) => hall,
                None => return (Next::Busy, now),
            },
        };
        hall.settle(&mut basket.settled);
        let mut gate = self.gate();
        gate.arrive(worker);
        gate.release(std::mem::take(&mut hall.ended), &mut aftermath.wakers);
        gate.recycle(&mut basket.spent);
        gate.take_inbox(&mut hall.arrivals);
        drop(gate);
        hall.absorb(&mut aftermath);
        hall.take(now, &mut basket.batch, batch_max, &mut aftermath);
        let busy = !basket.batch.is_empty() || !basket.settled.is_empty();
        let next = if busy && !hall.owes_the_gate() {
            hall.set_alarm(&mut aftermath);
            Next::Work
        } else {
            let mut gate = self.gate();
            hall.leave(&mut gate, &mut aftermath);
            match waker {
                _ if busy || gate.has_inbox() => Next::Work,
                _ if gate.is_finished() => Next::Finished,
                None => Next::Nothing,
                Some(waker) => {
                    gate.park(worker, waker);
                    Next::Parked
                }
            }
        };
        drop(hall);
        aftermath.carry_out();
        basket.announce();
        (next, now)
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
                self.gate().close(&mut aftermath.wakers);
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
            hall.armed = hall.table.next_due();
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

impl<K, V, R, E> Settled<K, V, R, E> {
    /// Tells the ticket, or answers the emptied entry of a push that has no ticket any more.
    fn announce(self) -> Option<Arc<Entry<V, R, E>>> {
        let ending = self.ending?;
        let mut entry = self.job.payload;
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
    fn announce(&mut self) {
        // What the gate had no room for.
        self.spent.clear();
        for settled in self.settled.drain(..) {
            // A destructor that panics costs its entry the pool, nothing else.
            if let Ok(Some(entry)) = fenced(|| settled.announce()) {
                self.spent.push(entry);
            }
        }
    }
}

impl<K: Hash + Eq + Clone, V, R, E> Hall<K, V, R, E> {
    fn absorb(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        for (id, hash, parcel) in self.arrivals.drain(..) {
            let farewell = match fenced(|| self.table.find_hashed(hash, &parcel.key)) {
                Ok(known) => match self.table.push_found(id, hash, known, parcel) {
                    Pushed::Accepted { stop, .. } => {
                        aftermath.stops.extend(stop);
                        continue;
                    }
                    Pushed::Stale { newest, payload, .. } => {
                        self.totals.stale += 1;
                        (payload, End::Stale { newest })
                    }
                },
                Err(message) => {
                    self.totals.failed += 1;
                    (parcel.payload, panicked(message, 0))
                }
            };
            self.ended += 1;
            aftermath.farewells.push(farewell);
        }
    }

    fn settle(&mut self, settled: &mut [Settled<K, V, R, E>]) {
        for run in settled {
            self.totals.runs += 1;
            run.ending = self.table.finish(&run.job, run.verdict);
            if let Some(ending) = run.ending {
                self.totals.count(ending);
                self.ended += 1;
            }
        }
    }

    /// Takes turns until the batch is full or nothing more may start.
    fn take(
        &mut self,
        now: Tick,
        batch: &mut Vec<Job<K, V, R, E>>,
        batch_max: usize,
        aftermath: &mut Aftermath<V, R, E>,
    ) {
        while batch.len() < batch_max {
            match fenced(|| self.table.start(now)) {
                Ok(Some(job)) => batch.push(job),
                Ok(None) => return,
                Err(message) => {
                    let Some((payload, attempts)) = self.table.refuse_next() else { return };
                    self.totals.failed += 1;
                    self.ended += 1;
                    aftermath.farewells.push((payload, panicked(message, attempts)));
                }
            }
        }
    }

    /// Whether there is anything to tell the gate: ends, or work for another worker.
    fn owes_the_gate(&self) -> bool {
        self.ended > 0 || self.table.has_outbox() || self.table.can_start()
    }

    /// Wakes the timekeeper if something is due before it would wake by itself.
    fn set_alarm(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        if let Some(due) = self.table.next_due()
            && self.armed.is_none_or(|armed| due < armed)
        {
            self.armed = Some(due);
            aftermath.wakers.extend(self.timekeeper.take());
        }
    }

    /// What every operation owes to others: room to waiting pushes, work to parked workers, a word to the timekeeper
    /// and to whoever waits for quiet.
    fn leave(&mut self, gate: &mut Gate<K, V, R, E>, aftermath: &mut Aftermath<V, R, E>) {
        if self.table.has_outbox() {
            self.table.swap_outbox(&mut aftermath.outbox);
            self.ended += aftermath.outbox.ended.len();
            aftermath.outbox.ended.iter().for_each(|ended| self.totals.count(ended.ending));
        }
        gate.release(std::mem::take(&mut self.ended), &mut aftermath.wakers);
        if self.table.can_start() || gate.has_inbox() {
            aftermath.wakers.extend(gate.parked_worker());
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
