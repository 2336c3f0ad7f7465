//! One file per command.

mod dev;
mod run;
mod serve;

pub(crate) use run::run;
