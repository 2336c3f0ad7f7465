//! A command that is kept: whole events go in and answers come out, as lines of JSON.
//!
//! A run has a process to itself while it lasts, so there are never more than the processor's concurrency, and whoever
//! dies, dies with one event: that is a failed attempt of it. A process that is free is taken again, the last one first.
//!
//! `kept` is one process, `lines` what is said, `pool` which process runs what.

mod kept;
mod lines;
mod pool;

pub(super) use lines::settlement;
pub(crate) use pool::Pipe;
