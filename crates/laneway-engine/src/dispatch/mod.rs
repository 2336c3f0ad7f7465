//! Dispatch: what a processor's owner of a partition does with its events, from the log to the commit.
//!
//! `seat` is the state, in plain code; its rules are in `intake`, `turns`, `batches`, `accused`, `urgent`, `settle`, `requests` (with `queue`, `redrive`, `claims`), `loading` and
//! `durable`; `standing` tells how lanes stand.
//! `note` is what a seat keeps besides its progress. `settings` is what a processor was asked to be and `stored` its form in the store; `run` is the loop that acts, `carry` is a run on its way and `workers` who carries it out, `fetch` and `fetch_dead` are the reads it makes, `dead_lanes` which dead letters a lane has, `dormant` what stays of a seat without work, `own` how a seat comes to its owner.

mod accused;
mod batches;
mod carry;
mod claims;
mod dead_count;
mod dead_lanes;
mod dormant;
mod durable;
mod fetch;
mod fetch_dead;
mod intake;
mod levels;
mod loading;
mod note;
mod own;
mod queue;
mod redrive;
mod requests;
mod run;
mod seat;
mod settings;
mod settle;
mod standing;
mod stored;
mod turns;
mod urgent;
mod workers;

#[cfg(test)]
mod tests;

pub(crate) use carry::Ground;
pub(crate) use claims::LEASE_ENDED;
pub(crate) use fetch::plain;
pub(crate) use note::Note;
pub use note::Paused;
pub(crate) use own::own;
pub(crate) use run::Order;
pub(crate) use seat::Names;
pub use settings::{Batch, ProcessorSettings};
pub use stored::{SettingsError, StoredProcessor};
pub(crate) use workers::Workers;
