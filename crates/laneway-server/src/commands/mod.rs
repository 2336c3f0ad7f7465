//! One file per command.

mod config;
mod dev;
mod run;
mod serve;

pub(crate) use run::run;
