//! What the engine tells by `tracing`, heard in a process of its own.
//!
//! While a process has one subscriber, `tracing` asks only the thread that comes by a callsite first whether anybody listens, and
//! remembers its answer for all threads. So a test that listens to its own thread misses what a test beside it, which
//! listens to nothing, came by first. Here one subscriber is installed for the whole process before any callsite is met, and
//! each callsite asks again every time.
//!
//! Invariant: every test that has an engine begins with `Heard::new()`.

#[expect(dead_code, reason = "the tests of the whole engine use the rest")]
#[path = "../it/faulty.rs"]
mod faulty;
#[expect(dead_code, reason = "the tests of metrics use the rest")]
#[path = "../it/observed/recorder.rs"]
mod recorder;
#[path = "../it/seam.rs"]
mod seam;
mod silence;
mod spans;
mod subscriber;
#[expect(dead_code, reason = "the tests of the whole engine use the rest")]
#[path = "../it/world.rs"]
mod world;
