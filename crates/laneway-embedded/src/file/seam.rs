//! The one place where this store asks the operating system for threads, wall time and random bits.
//!
//! Everything else takes them from here, so that a lint can ban the originals. Time that decides
//! anything (leases, schedules, log time) is not read here: callers pass it in.
#![expect(clippy::disallowed_methods, reason = "this file is the seam")]

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

/// Starts a named background thread.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(work)
}

/// Does work that may wait for a disk without holding up a thread of the runtime; at once where there is no runtime.
/// `None` if the runtime ends before the work began. A panic of the work goes on here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::runtime::Handle::try_current() {
        Err(_) => Some(work()),
        Ok(runtime) => match runtime.spawn_blocking(work).await {
            Ok(done) => Some(done),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => None,
        },
    }
}

/// Microseconds since 1970 by the wall clock; a clock set before 1970 counts as 1970.
pub(crate) fn calendar_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Random bits for names that must not repeat; not for secrets.
pub(crate) fn random_u64() -> u64 {
    fastrand::u64(..)
}

/// As [`random_u64`], wide enough to name a store.
pub(crate) fn random_u128() -> u128 {
    fastrand::u128(..)
}
