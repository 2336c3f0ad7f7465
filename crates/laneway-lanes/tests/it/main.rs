//! The executor as its users see it: one binary, one module per theme.
//!
//! No test sleeps: a test waits until a handler says that it has started, or lets tokio's paused clock run to the next
//! timer.

mod brisk;
mod capacity;
mod drain;
mod latest;
mod look;
mod order;
mod panics;
mod retry;
mod seed_000;
mod stage;
mod stop;
