//! The real program, started as a child on a free port in a folder of its own, seen only from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod claims;
mod cloud_events;
mod config;
mod dev;
mod errors;
mod exec;
mod follow;
mod guides;
mod http_calls;
mod keys;
mod lanes;
mod lines;
mod operations;
mod order;
mod pipe;
mod program;
mod raw;
mod seam;
mod serve;
mod web;
