//! The proofs' seam to time, tasks and threads.

use std::future::Future;
use std::io::Read;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Starts a task; the caller keeps the handle.
#[expect(clippy::disallowed_methods, reason = "this is the seam through which the proofs spawn")]
pub(crate) fn spawn<A: Send + 'static>(task: impl Future<Output = A> + Send + 'static) -> JoinHandle<A> {
    tokio::spawn(task)
}

/// The answer, or nothing when it takes longer.
#[expect(clippy::disallowed_methods, reason = "a proof that hangs must come to an end")]
pub(crate) async fn within<A>(length: Duration, answer: impl Future<Output = A>) -> Option<A> {
    tokio::time::timeout(length, answer).await.ok()
}

/// Tells when the other end of standard input is closed.
#[expect(clippy::disallowed_methods, reason = "standard input can only be waited for on a thread")]
pub(crate) fn input_closed() -> oneshot::Receiver<()> {
    let (tell, told) = oneshot::channel();
    let thread = std::thread::spawn(move || {
        let mut ignored = Vec::new();
        // However it ends, nobody writes any more; and whoever waited may have gone first.
        let _however = std::io::stdin().read_to_end(&mut ignored);
        let _nobody_waits = tell.send(());
    });
    drop(thread);
    told
}

/// Takes that long. Only where time is paused.
#[expect(clippy::disallowed_methods, reason = "time is paused where this is used")]
pub(crate) async fn wait(length: Duration) {
    let passed = tokio::time::timeout(length, std::future::pending::<()>()).await;
    passed.expect_err("nothing ends it but time");
}
