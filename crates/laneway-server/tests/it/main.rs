//! The real program, started as a child on a free port in a folder of its own, seen only from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod access;
mod claims;
mod cli;
mod cloud_events;
mod config;
mod dead_letters;
mod dev;
mod errors;
mod exec;
mod follow;
mod guides;
mod http_calls;
mod jobs;
mod keys;
mod lanes;
mod limits;
mod lines;
mod listening;
mod observed;
mod operations;
mod order;
mod pages;
mod pipe;
mod program;
mod protected;
mod raw;
mod roles;
mod schedules;
mod seam;
mod security_page;
mod serve;
mod slow;
mod tls;
mod web;
mod work;
