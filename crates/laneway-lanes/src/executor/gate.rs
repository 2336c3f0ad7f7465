//! The gate: where pushes come in. Capacity, the line of those who wait for it, and the inbox of those let in.
//!
//! Its lock is held for a few instructions at a time, so that pushing stays cheap while workers are in the table. It
//! takes the order of pushes: what is in the inbox is in push order, and the table takes it over in that order.
//!
//! Decides nothing about lanes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::entry::Entry;
use super::hub::Parcel;
use super::push::Push;
use crate::table::{Arrival, ItemId, Tick};

/// Entries kept for the next pushes, so that a steady flow allocates nothing.
const POOL_MAX: usize = 8_192;
/// Pushes in the inbox before a pusher helps to move them into the table, and room an emptied inbox keeps.
const INBOX_LONG: usize = 1_024;

/// A push that was let in, with its number and the hash of its key.
pub(super) type Admitted<K, V, R, E> = (ItemId, u64, Parcel<K, V, R, E>);

#[derive(Debug)]
pub(super) struct Gate<K, V, R, E> {
    pub(super) closed: bool,
    capacity: usize,
    /// Pushes let in and not yet known to have ended.
    in_flight: usize,
    inbox: Vec<Admitted<K, V, R, E>>,
    /// Pushes that wait for room, by the number of their arrival: first come, first let in.
    waiters: BTreeMap<u64, Waiter<K, V, R, E>>,
    next_waiter: u64,
    next_id: u64,
    /// Wakers of workers that found nothing to do, by worker number.
    parked: Vec<Option<Waker>>,
    /// A worker was woken and has not come yet. It will wake the next one if it finds more than it can take.
    one_is_coming: bool,
    /// Who waits until nothing is in flight.
    quiet: Vec<Waker>,
    pool: Vec<Arc<Entry<V, R, E>>>,
}

#[derive(Debug)]
struct Waiter<K, V, R, E> {
    hash: u64,
    parcel: Parcel<K, V, R, E>,
    waker: Option<Waker>,
}

/// What a push does when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    GiveUp,
}

/// What became of a push at the gate.
#[derive(Debug)]
pub(super) enum Admission<K, V, R, E> {
    Admitted(Arc<Entry<V, R, E>>),
    Waits { number: u64, entry: Arc<Entry<V, R, E>> },
    Full(Push<K, V>),
    Closed(Push<K, V>),
}

/// What a waiting push finds when it looks again.
#[derive(Debug)]
pub(super) enum Waited<K, V, R, E> {
    Still,
    Admitted,
    Closed(Parcel<K, V, R, E>),
}

impl<K, V, R, E> Gate<K, V, R, E> {
    pub(super) fn new(capacity: usize, workers: usize) -> Self {
        Self {
            closed: false,
            capacity,
            in_flight: 0,
            inbox: Vec::new(),
            waiters: BTreeMap::new(),
            next_waiter: 0,
            next_id: 1,
            parked: vec![None; workers],
            one_is_coming: false,
            quiet: Vec::new(),
            pool: Vec::new(),
        }
    }

    /// Lets a push in, puts it in line, or gives it back. `hash` and `expires` belong to the push.
    pub(super) fn push(
        &mut self,
        push: Push<K, V>,
        hash: u64,
        expires: Option<Tick>,
        patience: Patience,
    ) -> Admission<K, V, R, E> {
        if self.closed {
            return Admission::Closed(push);
        }
        let fits = self.waiters.is_empty() && self.in_flight < self.capacity;
        if !fits && patience == Patience::GiveUp {
            return Admission::Full(push);
        }
        let Push { key, value, priority, revision, .. } = push;
        let entry = self.entry(value);
        let parcel = Arrival { key, payload: Arc::clone(&entry), priority, expires, revision };
        if fits {
            self.let_in(hash, parcel);
            return Admission::Admitted(entry);
        }
        let number = self.next_waiter;
        self.next_waiter += 1;
        self.waiters.insert(number, Waiter { hash, parcel, waker: None });
        Admission::Waits { number, entry }
    }

    fn entry(&mut self, value: V) -> Arc<Entry<V, R, E>> {
        if let Some(mut entry) = self.pool.pop()
            && let Some(unshared) = Arc::get_mut(&mut entry)
        {
            unshared.refill(value);
            return entry;
        }
        Arc::new(Entry::new(value))
    }

    fn let_in(&mut self, hash: u64, parcel: Parcel<K, V, R, E>) {
        let id = ItemId::from_number(self.next_id);
        self.next_id += 1;
        self.in_flight += 1;
        parcel.payload.name(id.get());
        self.inbox.push((id, hash, parcel));
    }

    /// Swaps the inbox with an empty one.
    pub(super) fn take_inbox(&mut self, emptied: &mut Vec<Admitted<K, V, R, E>>) {
        debug_assert!(emptied.is_empty(), "an inbox is swapped for an empty one");
        if emptied.capacity() > 2 * INBOX_LONG {
            *emptied = Vec::new();
        }
        std::mem::swap(&mut self.inbox, emptied);
    }

    /// Whether more came in than the workers have fetched in time.
    pub(super) fn is_inbox_long(&self) -> bool {
        self.inbox.len() >= INBOX_LONG
    }

    pub(super) fn has_inbox(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Gives room back and lets waiting pushes in, in their order, as far as there is room.
    pub(super) fn release(&mut self, ended: usize, wakers: &mut Vec<Waker>) {
        self.in_flight -= ended;
        while !self.closed
            && self.in_flight < self.capacity
            && let Some((_, waiter)) = self.waiters.pop_first()
        {
            self.let_in(waiter.hash, waiter.parcel);
            wakers.extend(waiter.waker);
        }
        if self.in_flight == 0 {
            wakers.append(&mut self.quiet);
        }
    }

    /// Keeps entries that nobody holds any more for the next pushes; gives back those that are too many.
    pub(super) fn recycle(&mut self, entries: &mut Vec<Arc<Entry<V, R, E>>>) {
        let kept = entries.len().min(POOL_MAX.saturating_sub(self.pool.len()));
        self.pool.extend(entries.drain(..kept));
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

    pub(super) fn waiters_len(&self) -> usize {
        self.waiters.len()
    }

    /// Registers a worker to be woken. Right only under the lock under which it saw the inbox empty, or when another
    /// worker is at it.
    pub(super) fn park(&mut self, worker: usize, waker: &Waker) {
        self.parked[worker] = Some(waker.clone());
    }

    /// A worker that parked is up again. Answers whether it was called from here. One that was woken by a run of its
    /// own sees to that first, so a push is to call another.
    pub(super) fn unpark(&mut self, worker: usize) -> bool {
        self.parked[worker].take().is_none()
    }

    /// A worker has come to look for work.
    pub(super) fn arrive(&mut self, worker: usize) {
        self.parked[worker] = None;
        self.one_is_coming = false;
    }

    /// Whether a worker other than this one is not parked.
    pub(super) fn others_are_up(&self, worker: usize) -> bool {
        self.parked.iter().enumerate().any(|(other, waker)| other != worker && waker.is_none())
    }

    /// A worker to wake for new work, unless one is on its way.
    pub(super) fn parked_worker(&mut self) -> Option<Waker> {
        if self.one_is_coming {
            return None;
        }
        let waker = self.any_parked_worker()?;
        self.one_is_coming = true;
        Some(waker)
    }

    /// A parked worker, whatever else is under way.
    pub(super) fn any_parked_worker(&mut self) -> Option<Waker> {
        self.parked.iter_mut().find_map(Option::take)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.closed && self.in_flight == 0
    }

    /// Refuses pushes from now on, those that wait for room included.
    pub(super) fn close(&mut self, wakers: &mut Vec<Waker>) {
        self.closed = true;
        wakers.extend(self.waiters.values_mut().filter_map(|waiter| waiter.waker.take()));
    }

    pub(super) fn poll_quiet(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.in_flight == 0 {
            return Poll::Ready(());
        }
        if !self.quiet.iter().any(|waker| waker.will_wake(context.waker())) {
            self.quiet.push(context.waker().clone());
        }
        Poll::Pending
    }
}
