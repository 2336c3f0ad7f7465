//! The one place where this store starts tasks and waits for time.
#![expect(clippy::disallowed_methods, reason = "this file is the seam")]

use std::time::Duration;

use tokio::task::JoinHandle;

/// Starts a task; whoever holds the handle ends it.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

/// Waits so long.
pub(crate) async fn sleep(length: Duration) {
    tokio::time::sleep(length).await;
}

/// The answer, unless time runs out first.
pub(crate) async fn within<A>(length: Duration, answer: impl Future<Output = A>) -> Option<A> {
    tokio::time::timeout(length, answer).await.ok()
}
