//! Changes that run to their end, whoever waits for them.
//!
//! A caller may drop a future at any await point: an HTTP client hangs up, a `select!` takes another branch. A change of
//! several steps would then stop halfway. [`Finishing`] is polled by its caller as any future, so an undisturbed call
//! costs one allocation and no task; if it is dropped halfway, the rest goes on in a task of its own.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

/// A future that is carried to its end even if it is dropped, once it has been polled.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Duration;
///
/// use laneway_engine::Env;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let written = Arc::new(AtomicBool::new(false));
/// let flag = Arc::clone(&written);
/// let change = Env::system().finish(async move {
///     tokio::time::sleep(Duration::from_secs(3)).await;
///     flag.store(true, Ordering::Relaxed);
/// });
/// // The caller gives up after one second.
/// assert!(tokio::time::timeout(Duration::from_secs(1), change).await.is_err());
/// tokio::time::sleep(Duration::from_secs(3)).await;
/// assert!(written.load(Ordering::Relaxed));
/// # }
/// ```
#[must_use = "nothing happens until it is polled"]
pub struct Finishing<A: Send + 'static, S: FnOnce(BoxFuture<'static, ()>)> {
    /// Nothing once it has ended or panicked.
    change: Option<BoxFuture<'static, A>>,
    spawn: Option<S>,
    begun: bool,
}

impl<A: Send + 'static, S: FnOnce(BoxFuture<'static, ()>)> Finishing<A, S> {
    /// Wraps a change; `spawn` starts a task for the rest of it if the caller drops it.
    pub fn new(change: impl Future<Output = A> + Send + 'static, spawn: S) -> Self {
        Self { change: Some(Box::pin(change)), spawn: Some(spawn), begun: false }
    }
}

impl<A: Send + 'static, S: FnOnce(BoxFuture<'static, ()>) + Unpin> Future for Finishing<A, S> {
    type Output = A;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A> {
        self.begun = true;
        // Taken out while it is polled: one that panics is not polled again by `drop`.
        let mut change = self.change.take().expect("not polled after its end");
        let polled = change.as_mut().poll(context);
        if polled.is_pending() {
            self.change = Some(change);
        }
        polled
    }
}

impl<A: Send + 'static, S: FnOnce(BoxFuture<'static, ()>)> Drop for Finishing<A, S> {
    fn drop(&mut self) {
        // A change that was never polled has had no effect and is not wanted any more.
        if self.begun
            && let (Some(change), Some(spawn)) = (self.change.take(), self.spawn.take())
        {
            spawn(Box::pin(async move { drop(change.await) }));
        }
    }
}
