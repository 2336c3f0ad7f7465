//! The group commit: callers apply the rules, one thread writes.
//!
//! A call is applied to the open group on its caller's thread, under the state's lock (`call`). The write thread takes
//! the group whenever the disk is free, writes it as one frame, syncs once, publishes and lets its calls answer
//! (`write`). So the rules work while the disk does, and there is no timer: a group is whatever was applied while
//! the group before was being synced.
//!
//! Nothing is applied before there is room for it in the log, because what was applied is never taken back. After
//! an error of the disk the store stops for good, and the state is read back from what is durable.

mod call;
mod done;
mod pipeline;
mod write;

pub(crate) use call::Cost;
pub(crate) use done::Done;
pub(crate) use pipeline::{Durable, Pipeline};
pub(crate) use write::WriteThread;
