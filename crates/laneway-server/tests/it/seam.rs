//! Where these tests touch the real world: a guard against hanging, threads that read pipes, and looking again.

use std::future::Future;
use std::time::{Duration, Instant};

/// How long anything may take before a test counts as hanging.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

/// The answer, or a failed test when there is none.
#[expect(clippy::disallowed_methods, reason = "a guard against hanging, not a wait")]
pub(crate) async fn guarded<A>(what: &str, answer: impl Future<Output = A>) -> A {
    match tokio::time::timeout(GUARD, answer).await {
        Ok(answer) => answer,
        Err(_) => panic!("{what} takes longer than {GUARD:?}"),
    }
}

/// Reads a pipe beside the test.
#[expect(clippy::disallowed_methods, reason = "the thread ends with the pipe it reads")]
pub(crate) fn beside(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work);
}

/// Starts a task that the test joins.
#[expect(clippy::disallowed_methods, reason = "the test joins it")]
pub(crate) fn spawn<A: Send + 'static>(
    task: impl Future<Output = A> + Send + 'static,
) -> tokio::task::JoinHandle<A> {
    tokio::spawn(task)
}

/// Asks until the answer is there: for what the outside world gives no signal of, such as the end of a foreign process.
#[expect(
    clippy::disallowed_methods,
    reason = "asks again as soon as others had their turn; the guard bounds it"
)]
pub(crate) async fn until<A, F: Future<Output = Option<A>>>(what: &str, mut ask: impl FnMut() -> F) -> A {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < GUARD, "{what} takes longer than {GUARD:?}");
        tokio::task::yield_now().await;
    }
}

/// The answer of a server that may be frozen: it takes connections and never answers.
#[expect(clippy::disallowed_methods, reason = "the tests' seam to timers")]
pub(crate) async fn in_time<A>(answer: impl Future<Output = A>) -> Option<A> {
    tokio::time::timeout(Duration::from_secs(2), answer).await.ok()
}

/// A moment on the clock of the machine, for tests that measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(Instant);

/// The moment so long from now.
#[expect(clippy::disallowed_methods, reason = "measures the program under load")]
pub(crate) fn later(length: Duration) -> Moment {
    Moment(Instant::now() + length)
}

impl Moment {
    /// Whether it is over.
    pub(crate) fn is_over(self) -> bool {
        !self.passed().is_zero()
    }

    /// How long it has been over.
    #[expect(clippy::disallowed_methods, reason = "measures the program under load")]
    pub(crate) fn passed(self) -> Duration {
        Instant::now().saturating_duration_since(self.0)
    }
}
