//! What the process tells of itself: `exposition` keeps the metrics and writes them out, `process` is what the system knows
//! of the process.

mod exposition;
mod process;

pub(crate) use exposition::{CONTENT_TYPE, follower_dropped, install, keep_up, render};
