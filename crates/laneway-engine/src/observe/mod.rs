//! What the engine tells of itself: why something waits and how lanes stand (read from the store, by any node), meters,
//! and reports on the system stream. Nothing here changes what the engine does.

mod events;
mod facts;
mod jobs;
mod lanes;
mod lists;
mod meters;
mod nearby;
mod report;
mod why;

pub use events::{EventStatus, EventView, EventsPage, PartitionStanding, SeatStanding, StreamStanding};
pub use facts::{LookError, Looker};
pub use jobs::{JobStanding, StandingJobs};
pub use lanes::{DeadLetter, HeldLane, LaneStanding, OwnedSeat, ProcessorStanding, StoppedSeat};
pub use lists::DeadLetters;
pub(crate) use meters::{Meters, Tally};
pub(crate) use nearby::{Asked, LaneRuns, Nearby, Places, Question, UnderWay};
pub use report::SYSTEM_STREAM;
pub(crate) use report::{Report, report};
pub use why::{Facts, Place, Runs, Short, Why, status, why};
