//! The executor's lock and atomic, in one place so that a schedule explorer can put its own here.
//!
//! Nothing else in the executor names a synchronisation primitive.

pub(super) use std::sync::atomic::{AtomicU64, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};

/// Takes a lock that only a broken invariant can poison.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the lock is not poisoned: no handler code runs under it")
}
