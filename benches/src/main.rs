//! Laneway's benchmarks: every figure with its durability, beside a baseline measured in the same minute.
//!
//! `cargo run --release -p laneway-bench -- --quick` prints a table, with `-o json` one JSON object; `--help` tells the
//! rest. `neighbour` and `soak` are standing benchmarks that fail by themselves. `rows` holds what is measured, `raw_log` the baseline of the durable rows, `report` the printing. Results
//! that were looked at are kept in `RESULTS.md` beside this folder.

mod arguments;
mod children;
mod context;
mod counted_disk;
mod cpu;
mod http;
mod load;
mod measured;
mod memory;
mod neighbour;
mod node;
mod page_cache;
mod place;
mod producers;
mod raw_log;
mod report;
mod rows;
mod seam;
mod soak;
mod store;
mod targets;
mod workload;

use std::io::{Read, Write};
use std::process::ExitCode;

use arguments::{Arguments, Child, Command, Form, StoreKind};
use context::{Context, progress};

/// What the server uses too: the system's allocator keeps a sixth of the time of the cycle for itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long the neighbour and the soak run unless something else is asked for.
const NEIGHBOUR_MINUTES: u32 = 10;
const SOAK_MINUTES: u32 = 60;

/// Why a run cannot give its figures.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let outcome = match arguments::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => print(arguments::HELP),
        Ok(Command::Run(arguments)) => run(arguments),
        Ok(Command::Child(child)) => run_child(child),
        Err(mistake) => {
            progress(&mistake);
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            progress(&format!("failed: {failure}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let start = seam::now();
    let Arguments { quick, form, only, dir, minutes, store, out } = arguments;
    let context = Context { quick, only, place: place::Place::new(dir.as_deref())? };
    match context.only.as_deref() {
        Some(arguments::NEIGHBOUR) => {
            return neighbour::run(&context, minutes.unwrap_or(NEIGHBOUR_MINUTES), print);
        }
        Some(arguments::SOAK) => {
            let options = soak::Options {
                minutes: minutes.unwrap_or(SOAK_MINUTES),
                store: store.unwrap_or(StoreKind::File),
                out,
            };
            return soak::run(&context, &options, print);
        }
        _ => {}
    }
    let names = rows::names(&context);
    if !names.iter().any(|name| context.wants(name)) {
        let prefix = context.only.unwrap_or_default();
        return Err(format!(
            "--only {prefix:?} begins no row; the rows are: {}; and alone: {}, {}",
            names.join("; "),
            arguments::NEIGHBOUR,
            arguments::SOAK
        )
        .into());
    }
    rows::check(&context)?;
    let rows = rows::run(&context)?;
    let cores = std::thread::available_parallelism()?;
    let about = [
        ("mode", if quick { "quick" } else { "full" }.to_owned()),
        ("machine", format!("{cores} cores, Linux {}", kernel()?)),
        ("files on", context.place.filesystem.clone()),
        ("took", format!("{:.1} s", seam::seconds_since(start))),
    ];
    print(&match form {
        Form::Table => report::table(&rows, &about),
        Form::Json => report::json(&rows, &about),
    })?;
    let missed = rows.iter().filter(|row| row.reached() == Some(false)).map(|row| &row.name[..]);
    match missed.collect::<Vec<_>>().join("; ") {
        missed if missed.is_empty() => Ok(()),
        missed => Err(format!("these rows do not reach what they must: {missed}").into()),
    }
}

fn kernel() -> Result<String, Failure> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned())
}

fn run_child(child: Child) -> Result<(), Failure> {
    match child {
        Child::IdleMemory { keys } => print(&format!("{}\n", rows::idle_memory_child(keys)?)),
        Child::Load { dir, events, payload_bytes } => {
            // The store stays open until the parent kills this process.
            let (_store, answer) = rows::load_child(&dir, events, payload_bytes)?;
            print(&format!("{answer}\n"))?;
            wait_for_the_end()
        }
        Child::Open { dir } => {
            let (_store, answer) = rows::open_child(&dir)?;
            print(&format!("{answer}\n"))?;
            wait_for_the_end()
        }
        Child::WaitingMemory { dir, events, between_kib } => {
            print(&format!("{}\n", rows::waiting_memory_child(&dir, events, between_kib)?))
        }
        Child::IdleSeats { dir, streams, settle, measured } => {
            print(&format!("{}\n", rows::idle_seats_child(&dir, streams, settle, measured)?))
        }
        Child::BareHttp => http::bare_child(print, wait_for_the_end),
        Child::EchoLines => http::echo_child(),
    }
}

/// Waits to be killed, or for the parent's end of the pipe to close should it go first.
fn wait_for_the_end() -> Result<(), Failure> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
