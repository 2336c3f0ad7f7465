//! The server as its users have it: the release program in a process of its own, asked over HTTP, with its handlers in
//! other processes. Each row stands beside a bare axum handler and the raw log.

mod append;
mod asking;
mod jobs;
mod lines;
mod pipe;
mod place;
mod pull;
mod raw;
mod rounds;
mod rows;

pub(crate) use rows::{names, run};
