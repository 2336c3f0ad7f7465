//! One push while it is in flight: its value, its end, and the request to stop it.
//!
//! One allocation shared by the table, the run and the ticket. Nothing here takes a lock of the hub, and nobody
//! is woken under a lock.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::outcome::End;
use super::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, lock, lock_unshared};

/// Laid out as written: a push that nobody awaits or stops touches no more than the beginning, which crosses from the
/// pusher's processor to the worker's and back.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Entry<V, R, E> {
    /// The push's number, 0 until it is admitted.
    id: AtomicU64,
    /// Whether anything was ever put into the slot.
    slot_used: AtomicBool,
    /// Empty only between two pushes.
    value: Option<V>,
    slot: Mutex<Slot<R, E>>,
}

#[derive(Debug)]
struct Slot<R, E> {
    end: Option<End<R, E>>,
    listener: Option<Waker>,
    stopped: bool,
    stop_listeners: Vec<(ListenerId, Waker)>,
    next_listener: ListenerId,
}

/// The number of one who waits for the request to stop, among those of one entry.
pub(super) type ListenerId = u32;

/// What a ticket sees of its push.
pub(super) trait Awaited<R, E>: Send + Sync {
    fn id(&self) -> u64;
    fn poll_end(&self, context: &mut Context<'_>) -> Poll<End<R, E>>;
}

/// What a cancel token sees of its push.
pub(super) trait Stoppable: Send + Sync {
    fn is_stopped(&self) -> bool;
    /// Registers the asker, under the same number each time, for the moment it is asked to stop.
    fn poll_stopped(&self, context: &mut Context<'_>, number: &mut Option<ListenerId>) -> Poll<()>;
    fn forget_listener(&self, number: ListenerId);
}

/// What a run sees of its push.
pub(super) trait Held<V>: Stoppable {
    fn value(&self) -> &V;
}

impl<V, R, E> Entry<V, R, E> {
    pub(super) fn new(value: V) -> Self {
        let slot =
            Slot { end: None, listener: None, stopped: false, stop_listeners: Vec::new(), next_listener: 0 };
        Self {
            id: AtomicU64::new(0),
            slot_used: AtomicBool::new(false),
            value: Some(value),
            slot: Mutex::new(slot),
        }
    }

    pub(super) fn into_value(self) -> Option<V> {
        self.value
    }

    /// Lets go of everything a push left behind.
    pub(super) fn clear(&mut self) {
        self.value = None;
        if std::mem::take(self.slot_used.get_mut()) {
            let slot = lock_unshared(&mut self.slot);
            (slot.end, slot.listener, slot.stopped) = (None, None, false);
            slot.stop_listeners.clear();
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot<R, E>> {
        // Seen by `clear`, which comes after the last holder has let go.
        self.slot_used.store(true, Ordering::Relaxed);
        lock(&self.slot)
    }

    /// Makes a cleared entry that of another push.
    pub(super) fn refill(&mut self, value: V) {
        self.value = Some(value);
    }

    /// Names the push. Called under the gate's lock, which also orders it before any reader.
    pub(super) fn name(&self, id: u64) {
        self.id.store(id, Ordering::Relaxed);
    }

    /// Gives the end to whoever awaits it. An entry that nobody else holds has no one to tell.
    pub(super) fn resolve(self: Arc<Self>, end: End<R, E>) {
        if Arc::strong_count(&self) == 1 {
            return;
        }
        let listener = {
            let mut slot = self.slot();
            slot.end = Some(end);
            slot.listener.take()
        };
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    /// Asks the run to stop.
    pub(super) fn stop(&self) {
        let listeners = {
            let mut slot = self.slot();
            slot.stopped = true;
            std::mem::take(&mut slot.stop_listeners)
        };
        listeners.into_iter().for_each(|(_, listener)| listener.wake());
    }
}

#[cfg(test)]
impl<V, R, E> Entry<V, R, E> {
    pub(super) fn stop_listeners_len(&self) -> usize {
        self.slot().stop_listeners.len()
    }
}

impl<V: Send + Sync, R: Send, E: Send> Awaited<R, E> for Entry<V, R, E> {
    fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    fn poll_end(&self, context: &mut Context<'_>) -> Poll<End<R, E>> {
        let mut slot = self.slot();
        if let Some(end) = slot.end.take() {
            return Poll::Ready(end);
        }
        match &mut slot.listener {
            Some(listener) => listener.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl<V: Send + Sync, R: Send, E: Send> Stoppable for Entry<V, R, E> {
    fn is_stopped(&self) -> bool {
        self.slot().stopped
    }

    fn poll_stopped(&self, context: &mut Context<'_>, number: &mut Option<ListenerId>) -> Poll<()> {
        let mut slot = self.slot();
        if slot.stopped {
            return Poll::Ready(());
        }
        let known = number.and_then(|number| slot.stop_listeners.iter_mut().find(|(id, _)| *id == number));
        if let Some((_, listener)) = known {
            listener.clone_from(context.waker());
        } else {
            let fresh = slot.next_listener;
            slot.next_listener = fresh.wrapping_add(1);
            slot.stop_listeners.push((fresh, context.waker().clone()));
            *number = Some(fresh);
        }
        Poll::Pending
    }

    fn forget_listener(&self, number: ListenerId) {
        let forgotten = {
            let mut slot = self.slot();
            let place = slot.stop_listeners.iter().position(|(id, _)| *id == number);
            place.map(|place| slot.stop_listeners.swap_remove(place))
        };
        drop(forgotten);
    }
}

impl<V: Send + Sync, R: Send, E: Send> Held<V> for Entry<V, R, E> {
    fn value(&self) -> &V {
        self.value.as_ref().expect("an entry has its value while it is held")
    }
}
