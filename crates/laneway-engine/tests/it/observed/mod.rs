//! What the engine tells of itself in numbers. Spans and log lines are heard in a process of their own (`tests/traced`).

mod metrics;
#[expect(dead_code, reason = "the tests of what is told by tracing use the rest")]
pub(crate) mod recorder;
