//! The executor: runs the lane heads the table chooses, on tokio.
//!
//! What may run is decided in [`crate::table`]; here is when it happens. The way of a push: `lanes` (the handle) takes
//! a `push`, the `gate` of the `hub` lets it in, a `worker` takes a batch of turns from the `hall` at each `visit`, calls the handler
//! and polls it on the spot; a handler that is not ready at once becomes an `attempt` in that worker's own set. So there
//! is no task per push. The end reaches the `ticket` through the `entry` both share.
//!
//! Clock, timers and spawning come from `seam`, locks from `sync`, and from nowhere else.

mod attempt;
#[cfg(test)]
mod attempt_over;
mod drain;
mod entry;
#[cfg(test)]
mod errand;
#[cfg(test)]
mod explored;
mod fence;
mod gate;
mod hall;
mod hub;
mod lanes;
#[cfg(test)]
mod lost_worker;
mod outcome;
mod push;
mod run;
mod seam;
mod settings;
mod sync;
mod ticket;
mod timekeeper;
mod visit;
mod waiting;
mod worker;

pub use drain::Drained;
pub use lanes::Lanes;
pub use outcome::{Cause, End, Failure, Outcome};
pub use push::{Push, PushError, TryPushError};
pub use run::{CancelToken, Done, Run};
pub use settings::{Settings, SettingsError, Totals, View};
pub use ticket::Ticket;
pub use waiting::{Pushing, PushingMany};
