//! Looking at what the engine does: why something waits, and lanes as they stand. Reads only.

mod facts;
mod lanes;
mod why;

pub use facts::{LookError, Looker};
pub use lanes::{LaneStanding, ProcessorStanding};
pub use why::{Facts, Place, Why, why};
