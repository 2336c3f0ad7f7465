//! The program `laneway`: parses its arguments, runs one command, and ends with its exit code.

mod access;
mod args;
mod commands;
mod connection;
mod declare;
mod dev;
mod duties;
mod exit;
mod file_limit;
mod handlers;
mod http;
mod listen;
mod logs;
mod nearest;
mod node;
mod output;
mod preflight;
#[cfg(test)]
mod reference;
mod reload;
mod seam;
mod serve;
mod settings;
mod signals;
mod telemetry;
mod terminal;
mod worker;

use std::process::ExitCode;

use clap::Parser as _;

/// The system's allocator keeps a sixth of the time of an event for itself: most of what a run needs is made on one
/// thread and dropped on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    commands::run(args::Args::parse())
}
