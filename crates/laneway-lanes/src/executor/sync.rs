//! The executor's lock and atomic, in one place so that a schedule explorer can put its own here.
//!
//! Nothing else in the executor names a synchronisation primitive.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard, TryLockError};

/// Takes a lock that only a broken invariant can poison.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the lock is not poisoned: no handler code runs under it")
}

/// Takes a lock that is never held for long. Tries again for a while before it sleeps: being woken costs many times
/// what its holders take, and a sleeper would find it taken again by a pusher who never sleeps.
pub(super) fn lock_brief<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for _ in 0..TRIES_BEFORE_SLEEPING {
        if let Some(guard) = try_lock(mutex) {
            return guard;
        }
        std::hint::spin_loop();
    }
    lock(mutex)
}

/// Worth some microseconds.
const TRIES_BEFORE_SLEEPING: u32 = 512;

/// Looks behind a lock that nobody else can reach.
pub(super) fn lock_unshared<T>(mutex: &mut Mutex<T>) -> &mut T {
    mutex.get_mut().expect("the lock is not poisoned: no handler code runs under it")
}

/// Takes a lock if it is free.
pub(super) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Poisoned(_)) => panic!("the lock is not poisoned: no handler code runs under it"),
    }
}
