//! `laneway work`: a command as a worker of a server elsewhere.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::watch::length;
use crate::args::WorkArgs;
use crate::connection::connect;
use crate::exit::Fault;
use crate::handlers::Command;
use crate::logs;
use crate::signals::End;
use crate::worker::{ANSWER, Crew, work};

/// Lanes at the same time: as many as one claim can name.
const CONCURRENCY: RangeInclusive<usize> = 1..=1_000;
/// A shorter lease would end while one is asked to extend it.
const LEASE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3_600);

pub(super) async fn run(args: WorkArgs, end: End) -> Result<(), Fault> {
    let crew = crew(args)?;
    logs::begin(tracing_subscriber::filter::LevelFilter::WARN, logs::Format::Text);
    Ok(work(&crew, async { drop(end.await) }).await?)
}

/// Checks what was typed.
fn crew(args: WorkArgs) -> Result<Crew, Fault> {
    let WorkArgs { server, processor, pipe, concurrency, lease, grace, name, command } = args;
    if !CONCURRENCY.contains(&concurrency) {
        return Err(Fault::usage(format!("--concurrency {concurrency}: must be 1 to 1000")));
    }
    let held = length("--lease", &lease)?;
    if !LEASE.contains(&held) {
        return Err(Fault::usage(format!("--lease {lease}: must be 1s to 1h")));
    }
    let grace = length("--grace", &grace)?;
    let command = if pipe { Command::pipe(command) } else { Command::exec(command) };
    let command = command.map_err(|error| Fault::usage(error.to_string()))?;
    let name = name.unwrap_or_else(our_name);
    let client = connect(&server)?.with_timeout(ANSWER);
    Ok(Crew { client, processor, command, concurrency, lease: held, grace, name })
}

/// This process among all on all machines.
fn our_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "unknown host" } else { host.trim() };
    format!("{}@{host}", std::process::id())
}
