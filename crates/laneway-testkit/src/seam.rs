//! The only place where the testkit touches the real world: it starts tasks and bounds waiting.
//!
//! Tests never sleep. Of real time there are a guard, so that a store which never answers fails a test by name instead of
//! hanging the whole run, and the delay of a slow road; simulations let paused time pass.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// How long one case may take before it counts as hanging.
pub(crate) const CASE_GUARD: Duration = Duration::from_secs(120);

/// A runtime of two workers, so that concurrent histories really run side by side.
pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime needs nothing but threads")
}

/// Starts a task; the caller joins it.
#[expect(clippy::disallowed_methods, reason = "this is the seam through which the testkit spawns")]
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(future)
}

/// Starts a thread that reads until there is no more.
#[expect(clippy::disallowed_methods, reason = "it ends with those whose words it reads")]
pub(crate) fn read_on(read: impl FnOnce() + Send + 'static) {
    std::thread::spawn(read);
}

/// Runs a future under the guard; `None` when it hangs.
#[expect(clippy::disallowed_methods, reason = "a guard against hanging, not a wait")]
pub(crate) async fn guarded<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(CASE_GUARD, future).await.ok()
}

/// A runtime for one simulated world: one thread, and time that passes only while everybody waits.
pub(crate) fn paused_runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing but a thread")
}

/// Lets time pass: simulated time, or what a slow road takes.
#[expect(clippy::disallowed_methods, reason = "time is paused in simulations, and a slow road is slow")]
pub(crate) async fn pass(length: Duration) {
    if !length.is_zero() {
        tokio::time::sleep(length).await;
    }
}
