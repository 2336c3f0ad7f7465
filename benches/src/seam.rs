//! The only place where the benchmarks touch the real world: clock, waiting, threads and tasks.
//!
//! Measures nothing itself.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::Failure;

/// Both cores of the machine that the figures are quoted for; a larger machine is measured the same way.
const RUNTIME_WORKERS: usize = 2;

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the real clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since then.
pub(crate) fn seconds_since(start: Instant) -> f64 {
    now().duration_since(start).as_secs_f64()
}

/// Lets a measured window pass, on a task.
#[expect(clippy::disallowed_methods, reason = "a measured window is real time")]
pub(crate) async fn pause(length: Duration) {
    tokio::time::sleep(length).await;
}

/// Beats of a clock, for work that comes at a rate of its own; a beat that is late does not shift the others.
#[expect(clippy::disallowed_methods, reason = "an open load follows real time")]
pub(crate) fn beats(every: Duration) -> tokio::time::Interval {
    tokio::time::interval(every)
}

/// Lets time pass, on a thread.
#[expect(clippy::disallowed_methods, reason = "the disk is given real time to become quiet")]
pub(crate) fn rest(length: Duration) {
    std::thread::sleep(length);
}

/// Lets time pass until then, on a thread; not at all if that is over.
pub(crate) fn rest_until(then: Instant) {
    let length = then.saturating_duration_since(now());
    if !length.is_zero() {
        rest(length);
    }
}

/// Starts a task; the caller joins it.
#[expect(clippy::disallowed_methods, reason = "this is the seam through which the benchmarks spawn")]
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future)
}

/// Starts a task of which only the effect counts.
#[expect(clippy::disallowed_methods, reason = "the hand-written baseline spawns a task per event")]
pub(crate) fn spawn_detached(future: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(future);
}

/// Starts work that blocks, on a thread for that.
#[expect(clippy::disallowed_methods, reason = "this is the seam through which the benchmarks block")]
pub(crate) fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}

/// Starts a named thread; the caller joins it.
#[expect(clippy::disallowed_methods, reason = "this is the seam through which the benchmarks start threads")]
pub(crate) fn thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>, Failure> {
    Ok(std::thread::Builder::new().name(name.to_owned()).spawn(work)?)
}

/// The runtime of those who only send and wait: on one thread nobody has to be woken to hand work over.
pub(crate) fn sending_runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// The runtime of every row. As in the server, whoever the store's own threads wake has the next turn.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    Ok(builder.worker_threads(RUNTIME_WORKERS).global_queue_interval(1).enable_all().build()?)
}
