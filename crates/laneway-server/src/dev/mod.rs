//! What `laneway dev` adds: its words, its built-in handler, and a line per start and end of a run.

mod banner;
mod demo;
mod folder;
mod lines;

pub(crate) use banner::Banner;
pub(crate) use demo::{Demo, policy};
pub(crate) use folder::empty_folder;
pub(crate) use lines::RunLines;
