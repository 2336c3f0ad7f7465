//! Schedules: when something is due, what fires now, and how a schedule is stored.
//!
//! Pure: time is passed in, nothing is read or written. Who plans, who appends and where the document lives is decided
//! by the caller.
//!
//! Reading order: [`definition`] (what a user asks for), [`timetable`] (the due times of it), [`mod@plan`] (what fires now),
//! [`codec`] (the stored form). Beneath the timetable: `pattern` (cron on a clock that never changes), `zone` (the
//! changes of a zone's clocks), `cron` (one on top of the other).
//!
//! Invariants:
//! - a due time depends on the spec alone, never on when somebody planned, so every node finds the same ones
//! - a plan fires nothing that is not later than what was fired or passed over before
//! - the due time numbers the firing at the store, so a due time is appended once, whoever planned it

pub mod codec;
mod cron;
pub mod definition;
mod pattern;
pub mod plan;
pub mod timetable;
mod zone;

#[cfg(test)]
mod tests;

pub use codec::DecodeError;
pub use definition::{CatchUp, Firing, Overlap, Schedule, Spec};
pub use plan::{LastJob, Past, Plan, pass_over, plan};
pub use timetable::Timetable;
