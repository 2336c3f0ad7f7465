//! The lane table: which item may run next, decided in plain synchronous code.
//!
//! Takes items with a key and says which lane head may start, and how each item ends. It does no I/O, never looks
//! at a clock ([`Tick`] is passed in), draws no random numbers and wakes nobody: `crate::executor` and the engine
//! act on what it decides.
//!
//! Invariants:
//! - a key has at most one running item
//! - within a lane items start in the order of their push; a retried head keeps its place
//! - only lane heads are candidates; a blocked lane is in no ready list and is never scanned
//! - every accepted item ends exactly once
//! - a lane exists only while it has a running or waiting item, is paused, or (latest mode) is remembered

mod advance;
mod arrival;
mod control;
mod finish;
mod item;
mod lane;
mod latest;
mod places;
mod shelf;
mod start;
mod state;
mod view;
mod words;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use arrival::{Arrival, Pushed};
pub use control::Cancelled;
pub use finish::Verdict;
pub use item::ItemId;
pub use latest::{Kind, Revision, Version};
pub use start::{LastDone, Turn};
pub use state::{Ended, Ending, Outbox, Table};
pub use view::{LaneStatus, LaneView, Snapshot, Why};
pub use words::{Mode, Priority, Settings, Tick};
