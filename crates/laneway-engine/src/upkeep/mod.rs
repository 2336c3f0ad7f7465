//! What is done beside the way of events: retention, and firing what is scheduled. Nothing but conditional calls to the
//! store, so that two nodes that do it at once do no harm.

mod firing;
mod held;
mod retention;
pub mod schedule;

pub use firing::{Expect, Fire, ScheduleError, ScheduleStanding, Schedules};
pub use held::HeldView;
pub(crate) use held::held;
pub(crate) use retention::retain;
