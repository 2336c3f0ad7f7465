//! This crate's one seam to time, timers and tasks.

use std::future::Future;
use std::time::Duration;

use laneway::Timestamp;
use laneway::core::{Clock as _, SystemClock};

/// What time it is.
pub(crate) fn now() -> Timestamp {
    SystemClock.calendar()
}

/// Microseconds of a clock that never goes back.
pub(crate) fn steady() -> laneway::Steady {
    SystemClock.steady()
}

/// Lets time pass.
#[expect(clippy::disallowed_methods, reason = "this crate's seam to timers")]
pub(crate) async fn pass(length: Duration) {
    tokio::time::sleep(length).await;
}

/// The answer, unless time runs out first.
#[expect(clippy::disallowed_methods, reason = "this crate's seam to timers")]
pub(crate) async fn within<A>(length: Duration, answer: impl Future<Output = A>) -> Option<A> {
    tokio::time::timeout(length, answer).await.ok()
}

/// Starts a task that ends by itself.
#[expect(clippy::disallowed_methods, reason = "this crate's seam to tasks")]
pub(crate) fn spawn<A: Send + 'static>(
    task: impl Future<Output = A> + Send + 'static,
) -> tokio::task::JoinHandle<A> {
    tokio::spawn(task)
}

/// Starts a task for the rest of something whose caller went away. Without a runtime the process is about to end, and the
/// rest is dropped as it would be by a crash.
pub(crate) fn spawn_rest(rest: impl Future<Output = ()> + Send + 'static) {
    if tokio::runtime::Handle::try_current().is_ok() {
        drop(spawn(rest));
    }
}

/// Runs something that blocks, such as reading a folder, beside the runtime.
#[expect(clippy::disallowed_methods, reason = "this crate's seam to threads")]
pub(crate) async fn blocking<A: Send + 'static>(work: impl FnOnce() -> A + Send + 'static) -> A {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}
