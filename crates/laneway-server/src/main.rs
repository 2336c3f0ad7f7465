//! The program `laneway`: parses its arguments, runs one command, and ends with its exit code.

mod args;
mod commands;
mod dev;
mod http;
mod node;
mod seam;
mod serve;
mod settings;
mod signals;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    commands::run(args::Args::parse())
}
