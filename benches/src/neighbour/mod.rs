//! The neighbour: a busy stream beside everything that has been slow beside one, with limits that must hold.
//!
//! `plan` says what runs, `streams` sets it up, `limits` judges, `run` puts them together. The process fails when a limit
//! does not hold.

mod limits;
mod plan;
mod run;
mod streams;

pub(crate) use run::run;
