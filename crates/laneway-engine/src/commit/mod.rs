//! Commit: what runs came to, gathered while the commit before is made durable, and settled in one fenced step.
//!
//! `gather` collects, `prepare` checks what a handler returned before any of it counts, `run` sends and repeats.

mod gather;
mod prepare;
mod run;

pub(crate) use gather::{Gathering, Taken};
#[cfg(test)]
pub(crate) use prepare::PreparedDone;
pub(crate) use prepare::{Prepared, prepare, shorten};
pub(crate) use run::send;
