//! The soak: mixed load for an hour, looked at every minute, on a folder or on Redis with three nodes.
//!
//! `plan` says what runs, `site` sets up the store and its nodes, `load` appends, `samples` is what is looked at, `csv` and
//! `plot` write it down, `verdict` says whether it is flat, `run` puts them together.

mod csv;
mod load;
mod plan;
mod plot;
mod run;
mod samples;
mod site;
mod verdict;

pub(crate) use run::{Options, run};
