//! A disk for tests: in memory, with power cuts, failing calls and a limited size.
//!
//! Not for data anybody wants to keep. It is as unfriendly as a real disk may be: a write survives a power
//! cut only after a sync, sector by sector and in any order; a name only after a sync of its folder; and
//! after a failed sync the data is dropped, so that a second sync succeeds and has saved nothing.

mod disk;
mod media;
mod names;
mod watched;

pub use disk::{Calls, Fault, SimulatedDisk};
pub use watched::{Call, WatchedDisk};
