//! Handlers without Rust, as `laneway.toml` names them: a command per event, a command that is kept, a web endpoint.
//!
//! `facts` is what a handler is told about its event; `process` is one process in a group of its own; `exec` starts one per
//! event; `pipe` keeps them and talks in lines; `web` posts, to endpoints named over the API by the rules of `webhook`; `command` is the first two for `laneway work`. Remote workers are
//! no handler of this process: see the desk of the engine, and `http/claims.rs`.

mod command;
mod exec;
mod facts;
mod pipe;
mod process;
mod web;
mod webhook;

pub(crate) use command::{Command, failed};
pub(crate) use exec::{Exec, find_program};
pub(crate) use facts::VARIABLES;
pub(crate) use pipe::Pipe;
pub(crate) use web::{Secret, Web, WebTarget};
pub(crate) use webhook::{Range, Rules, RulesError, Target};
