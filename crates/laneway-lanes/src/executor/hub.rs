//! The hub: one lock around the lane table, and who must be woken after it is let go.
//!
//! Every operation locks once, changes the table, collects what follows from it into an [`Aftermath`], unlocks, and only
//! then wakes tasks, resolves tickets and drops payloads: no code of the user but `Hash`, `Eq` and `Clone` of the key
//! runs under the lock.
//!
//! No wake-up is lost because a worker looks for work and parks under the same lock under which a push makes work.
//! The naive worker looks, lets go, and then registers itself; a push in between finds nobody to wake.
//!
//! One table, not one per processor: priority, fairness, the concurrency cap and the order of waiting pushes hold over
//! all keys. Workers take and finish turns in batches, so the lock is taken far less often than once per push.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hashbrown::DefaultHashBuilder;

use super::entry::Entry;
use super::outcome::End;
use super::push::Push;
use super::seam::Clock;
use super::settings::{Settings, Totals, View};
use super::sync::{Mutex, MutexGuard, lock};
use crate::table::{Arrival, Ending, Outbox, Pushed, Table, Tick, Turn, Verdict};

/// A push with its value moved into the entry that its ticket shares.
pub(super) type Parcel<K, V, R, E> = Arrival<K, Arc<Entry<V, R, E>>>;
/// The right to run a parcel.
pub(super) type Job<K, V, R, E> = Turn<K, Arc<Entry<V, R, E>>>;

#[derive(Debug)]
pub(super) struct Hub<K, V, R, E> {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    hasher: DefaultHashBuilder,
    state: Mutex<State<K, V, R, E>>,
}

#[derive(Debug)]
pub(super) struct State<K, V, R, E> {
    pub(super) table: Table<K, Arc<Entry<V, R, E>>>,
    capacity: usize,
    /// Pushes that wait for room, by the number of their arrival: first come, first let in.
    waiters: BTreeMap<u64, Waiter<K, V, R, E>>,
    next_waiter: u64,
    closed: bool,
    workers: usize,
    /// Wakers of workers that found nothing to do, by worker number.
    parked: Vec<Option<Waker>>,
    timekeeper: Option<Waker>,
    /// When the timekeeper wakes by itself.
    armed: Option<Tick>,
    /// Who waits until nothing is in flight.
    quiet: Vec<Waker>,
    totals: Totals,
}

#[derive(Debug)]
struct Waiter<K, V, R, E> {
    hash: u64,
    parcel: Parcel<K, V, R, E>,
    waker: Option<Waker>,
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

/// What is left to do after the lock is let go.
#[derive(Debug)]
pub(super) struct Aftermath<V, R, E> {
    outbox: Outbox<Arc<Entry<V, R, E>>>,
    stale: Vec<(Arc<Entry<V, R, E>>, End<R, E>)>,
    stops: Vec<Arc<Entry<V, R, E>>>,
    wakers: Vec<Waker>,
}

/// What a push that does not fit becomes.
#[derive(Debug)]
pub(super) enum Admission<K, V, R, E> {
    Admitted,
    Waits { number: u64 },
    Refused { parcel: Parcel<K, V, R, E>, closed: bool },
}

/// What a push does when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    GiveUp,
}

/// What a waiting push finds when it looks again.
#[derive(Debug)]
pub(super) enum Waited<K, V, R, E> {
    Still,
    Admitted,
    Closed(Parcel<K, V, R, E>),
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It has turns to run, or should look again.
    Work,
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
    pub(super) fn new() -> Self {
        Self { outbox: Outbox::default(), stale: Vec::new(), stops: Vec::new(), wakers: Vec::new() }
    }

    /// Ends, stops and wakes. Never under the lock.
    pub(super) fn carry_out(self) {
        for (entry, end) in self.stale {
            entry.resolve(end);
        }
        for ended in self.outbox.ended {
            if let Some(end) = forced_end(ended.ending) {
                ended.payload.resolve(end);
            }
        }
        self.stops.iter().for_each(|entry| entry.stop());
        self.wakers.into_iter().for_each(Waker::wake);
    }
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

impl<K: Hash + Eq + Clone, V, R, E> Hub<K, V, R, E> {
    pub(super) fn new(settings: Settings, clock: Clock) -> Self {
        let table = Table::new(settings.for_table());
        let state = State {
            capacity: settings.capacity,
            waiters: BTreeMap::new(),
            next_waiter: 0,
            closed: false,
            workers: settings.workers,
            parked: vec![None; settings.workers],
            timekeeper: None,
            armed: None,
            quiet: Vec::new(),
            totals: Totals::default(),
            table,
        };
        let hasher = state.table.hasher();
        Self { settings, clock, hasher, state: Mutex::new(state) }
    }

    pub(super) fn parcel(&self, push: Push<K, V>) -> (u64, Parcel<K, V, R, E>) {
        let Push { key, value, priority, ttl, revision } = push;
        let hash = self.hasher.hash_one(&key);
        let expires = ttl.map(|ttl| self.clock.now().after(ttl));
        (hash, Arrival { key, payload: Arc::new(Entry::new(value)), priority, expires, revision })
    }

    /// The push a parcel was made from. Its entry must be held by nobody else.
    pub(super) fn unpack(&self, parcel: Parcel<K, V, R, E>) -> Push<K, V> {
        let Arrival { key, payload, priority, expires, revision } = parcel;
        let value = Arc::into_inner(payload).expect("a refused parcel is held once").into_value();
        let ttl = expires.map(|expires| expires.since(self.clock.now()));
        Push { key, value, priority, ttl, revision }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<K, V, R, E>> {
        lock(&self.state)
    }

    /// Runs one operation under the lock and carries out what follows.
    pub(super) fn with<A>(&self, operation: impl FnOnce(&mut State<K, V, R, E>, &mut Aftermath<V, R, E>) -> A) -> A {
        let mut aftermath = Aftermath::new();
        let mut state = self.lock();
        let answer = operation(&mut state, &mut aftermath);
        state.follow_up(&mut aftermath);
        drop(state);
        aftermath.carry_out();
        answer
    }

    pub(super) fn push(&self, hash: u64, parcel: Parcel<K, V, R, E>, patience: Patience) -> Admission<K, V, R, E> {
        self.with(|state, aftermath| state.push(hash, parcel, patience, aftermath))
    }

    /// Hands finished runs back and takes new turns: a worker's one visit to the table per batch.
    pub(super) fn exchange(
        &self,
        settled: &mut Vec<Settled<K, V, R, E>>,
        batch: &mut Vec<Job<K, V, R, E>>,
        batch_max: usize,
        worker: usize,
        waker: &Waker,
    ) -> (Next, Tick) {
        let now = self.clock.now();
        let next = self.with(|state, aftermath| {
            state.unpark(worker);
            state.settle(settled);
            state.admit(aftermath);
            state.take(now, batch, batch_max);
            if !batch.is_empty() || !settled.is_empty() {
                return Next::Work;
            }
            if state.is_finished() {
                return Next::Finished;
            }
            state.park(worker, waker);
            Next::Parked
        });
        for run in settled.drain(..) {
            run.announce();
        }
        (next, now)
    }

    pub(super) fn view(&self) -> View {
        let state = self.lock();
        View {
            table: state.table.snapshot(),
            waiting_for_capacity: state.waiters.len(),
            closed: state.closed,
            totals: state.totals,
        }
    }
}

impl<K, V, R, E> Settled<K, V, R, E> {
    /// Tells the ticket, once the table has spoken.
    pub(super) fn announce(self) {
        let Some(ending) = self.ending else { return };
        if let Some(end) = forced_end(ending).or(self.end) {
            self.job.payload.resolve(end);
        }
    }
}

impl<K: Hash + Eq + Clone, V, R, E> State<K, V, R, E> {
    pub(super) fn push(
        &mut self,
        hash: u64,
        parcel: Parcel<K, V, R, E>,
        patience: Patience,
        aftermath: &mut Aftermath<V, R, E>,
    ) -> Admission<K, V, R, E> {
        if self.closed {
            return Admission::Refused { parcel, closed: true };
        }
        if self.waiters.is_empty() && self.table.len() < self.capacity {
            self.let_in(hash, parcel, aftermath);
            return Admission::Admitted;
        }
        if patience == Patience::GiveUp {
            return Admission::Refused { parcel, closed: false };
        }
        let number = self.next_waiter;
        self.next_waiter += 1;
        self.waiters.insert(number, Waiter { hash, parcel, waker: None });
        Admission::Waits { number }
    }

    fn let_in(&mut self, hash: u64, parcel: Parcel<K, V, R, E>, aftermath: &mut Aftermath<V, R, E>) {
        let entry = Arc::clone(&parcel.payload);
        let id = match self.table.push_hashed(hash, parcel) {
            Pushed::Accepted { id, stop } => {
                aftermath.stops.extend(stop);
                id
            }
            Pushed::Stale { id, newest, payload } => {
                self.totals.stale += 1;
                aftermath.stale.push((payload, End::Stale { newest }));
                id
            }
        };
        entry.name(id.get());
    }

    /// Lets waiting pushes in, in their order, as far as there is room.
    pub(super) fn admit(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        while !self.closed
            && self.table.len() < self.capacity
            && let Some((_, waiter)) = self.waiters.pop_first()
        {
            self.let_in(waiter.hash, waiter.parcel, aftermath);
            aftermath.wakers.extend(waiter.waker);
        }
    }

    /// How a waiting push stands; registers it for the next change.
    pub(super) fn poll_waiter(&mut self, number: u64, context: &Context<'_>) -> Waited<K, V, R, E> {
        if self.closed {
            return self.withdraw(number).map_or(Waited::Admitted, Waited::Closed);
        }
        match self.waiters.get_mut(&number) {
            Some(waiter) => {
                waiter.waker = Some(context.waker().clone());
                Waited::Still
            }
            None => Waited::Admitted,
        }
    }

    /// Takes a push that still waits for room out of the line.
    pub(super) fn withdraw(&mut self, number: u64) -> Option<Parcel<K, V, R, E>> {
        self.waiters.remove(&number).map(|waiter| waiter.parcel)
    }

    fn settle(&mut self, settled: &mut [Settled<K, V, R, E>]) {
        for run in settled {
            self.totals.runs += 1;
            run.ending = self.table.finish(&run.job, run.verdict);
            if let Some(ending) = run.ending {
                self.totals.count(ending);
            }
        }
    }

    /// Takes turns until the batch is full or nothing more may start.
    pub(super) fn take(&mut self, now: Tick, batch: &mut Vec<Job<K, V, R, E>>, batch_max: usize) {
        while batch.len() < batch_max
            && let Some(job) = self.table.start(now)
        {
            batch.push(job);
        }
    }

    /// Registers a worker that found nothing. Only right under the lock under which it looked.
    pub(super) fn park(&mut self, worker: usize, waker: &Waker) {
        self.parked[worker] = Some(waker.clone());
    }

    fn unpark(&mut self, worker: usize) {
        self.parked[worker] = None;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.closed && self.table.is_empty()
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// Refuses pushes from now on, those that wait for room included.
    pub(super) fn close(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        self.closed = true;
        aftermath.wakers.extend(self.waiters.values_mut().filter_map(|waiter| waiter.waker.take()));
    }

    pub(super) fn stop(&mut self, running: Vec<Arc<Entry<V, R, E>>>, aftermath: &mut Aftermath<V, R, E>) {
        aftermath.stops.extend(running);
    }

    /// A worker is gone, and with it the runs it had. Without any worker nothing would ever end, so the last one
    /// ends everything.
    pub(super) fn lose_worker(&mut self, lost: &mut [Settled<K, V, R, E>], aftermath: &mut Aftermath<V, R, E>) {
        self.settle(lost);
        self.workers -= 1;
        if self.workers == 0 && !self.is_finished() {
            self.close(aftermath);
            self.table.cancel_all();
        }
    }

    /// Lets time pass and says when to look again; registers the timekeeper for an earlier moment.
    pub(super) fn keep_time(&mut self, now: Tick, waker: &Waker) -> Due {
        self.table.advance(now);
        self.armed = self.table.next_due();
        if self.is_finished() || self.workers == 0 {
            return Due::NeverAgain;
        }
        self.timekeeper = Some(waker.clone());
        self.armed.map_or(Due::Unknown, Due::At)
    }

    pub(super) fn poll_quiet(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.table.is_empty() {
            return Poll::Ready(());
        }
        self.quiet.push(context.waker().clone());
        Poll::Pending
    }

    /// What every operation owes to others: room to waiting pushes, work to parked workers, a word to the timekeeper
    /// and to whoever waits for quiet.
    fn follow_up(&mut self, aftermath: &mut Aftermath<V, R, E>) {
        if !self.waiters.is_empty() {
            self.admit(aftermath);
        }
        if self.table.has_outbox() {
            self.table.swap_outbox(&mut aftermath.outbox);
            aftermath.outbox.ended.iter().for_each(|ended| self.totals.count(ended.ending));
        }
        if self.table.can_start()
            && let Some(waker) = self.parked.iter_mut().find_map(Option::take)
        {
            aftermath.wakers.push(waker);
        }
        if let Some(due) = self.table.next_due()
            && self.armed.is_none_or(|armed| due < armed)
        {
            self.armed = Some(due);
            aftermath.wakers.extend(self.timekeeper.take());
        }
        if self.closed && self.table.is_empty() {
            aftermath.wakers.extend(self.parked.iter_mut().filter_map(Option::take));
            aftermath.wakers.extend(self.timekeeper.take());
            aftermath.wakers.append(&mut self.quiet);
        }
    }
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
