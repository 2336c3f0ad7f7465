//! The commit path: calls queue up, one thread applies whatever waits as a group, writes one frame, syncs once,
//! and answers.

mod op;
mod queue;
mod thread;

pub(crate) use op::{Call, Cost};
pub(crate) use queue::Queue;
pub(crate) use thread::{CommitThread, Durable};
