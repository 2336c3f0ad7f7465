//! `laneway work`: claims lanes of a processor over HTTP, runs a command for each, and settles them.
//!
//! `crew` claims as much as there is room for, until it is asked to end; `held` is one claim from its run to its
//! settlement, whose lease is extended meanwhile. A claim that is lost ends the processes that run for it.

mod crew;
mod held;

pub(crate) use crew::{ANSWER, Crew, work};
