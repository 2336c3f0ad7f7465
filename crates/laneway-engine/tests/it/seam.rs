//! The tests' seam to time, which is paused.

use std::future::Future;
use std::time::Duration;

/// Takes that long, in paused time.
#[expect(clippy::disallowed_methods, reason = "time is paused in these tests")]
pub(crate) async fn wait(length: Duration) {
    let passed = tokio::time::timeout(length, std::future::pending::<()>()).await;
    passed.expect_err("nothing ends it but time");
}

/// The answer, or the end of a test that would never end.
#[expect(clippy::disallowed_methods, reason = "time is paused in these tests")]
pub(crate) async fn within<A>(length: Duration, answer: impl Future<Output = A>) -> A {
    tokio::time::timeout(length, answer).await.expect("it happens")
}
