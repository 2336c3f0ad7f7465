//! The clock of this test binary: it tells how long a check took, and decides nothing.

use std::time::{Duration, Instant};

/// Does something and says how long it took.
#[expect(clippy::disallowed_methods, reason = "only printed: no check depends on it")]
pub(crate) fn timed<A>(work: impl FnOnce() -> A) -> (A, Duration) {
    let start = Instant::now();
    let answer = work();
    (answer, start.elapsed())
}
