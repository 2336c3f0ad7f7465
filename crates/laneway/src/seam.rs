//! This crate's one seam to time and threads.

use std::future::Future;
use std::time::Duration;

/// Runs something that blocks, such as opening files, beside the runtime.
#[cfg(any(feature = "embedded", feature = "redis"))]
#[expect(clippy::disallowed_methods, reason = "this crate's seam to threads")]
pub(crate) async fn blocking<A: Send + 'static>(work: impl FnOnce() -> A + Send + 'static) -> A {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
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
