//! The commit path: two threads, so that the rules work while the disk does.
//!
//! Calls queue up ([`Queue`]). The apply thread applies each as it comes to the open group ([`Pipeline`]). The
//! write thread takes the group whenever the disk is free, writes it as one frame, syncs once, publishes and
//! answers. There is no timer: a group is whatever was applied while the group before was being synced.
//!
//! Nothing is applied before there is room for it in the log, because what was applied is never taken back. After
//! an error of the disk both threads stop for good, and the state is read back from what is durable.

mod apply;
mod op;
mod pipeline;
mod queue;
mod write;

pub(crate) use apply::ApplyThread;
pub(crate) use op::{Barrier, Call, Cost};
pub(crate) use pipeline::{Durable, Pipeline};
pub(crate) use queue::Queue;
pub(crate) use write::WriteThread;
