//! The real program, started as a child on a free port in a folder of its own, seen only from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod claims;
mod config;
mod dev;
mod errors;
mod exec;
mod http_calls;
mod keys;
mod operations;
mod order;
mod program;
mod seam;
mod serve;
