//! A backlog that kept processes of the server drain, beside such processes asked directly.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child as Process, Command, Stdio};
use std::time::Duration;

use super::place::{KEYS, Place, STREAM};
use super::pull::END_BYTES;
use super::rounds::{About, in_turns};
use crate::arguments::Child;
use crate::context::Context;
use crate::http::{echo_answer, event};
use crate::measured::{Counts, Measured};
use crate::report::Row;
use crate::rows::engine::raw_drain;
use crate::{Failure, cpu, seam};

pub(super) const NAME: &str = "http pipe drain";

const PROCESSOR: &str = "pipe";
const PROCESSES: usize = 8;
/// How often it is looked whether everything has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A processor of the server that keeps so many processes.
pub(super) fn settings(processes: usize) -> Result<String, Failure> {
    let program = std::env::current_exe()?;
    let words = std::iter::once(program.display().to_string()).chain(Child::EchoLines.arguments());
    let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
    Ok(format!(
        "[[processor]]\nname = \"{PROCESSOR}\"\nstream = \"{STREAM}\"\nexec = [{}]\nexec_mode = \"pipe\"\nconcurrency = \
         {processes}\n",
        words.join(", ")
    ))
}

pub(super) fn run(context: &Context) -> Result<Row, Failure> {
    let place = Place::new(context, &settings(PROCESSES)?)?;
    let events = context.choose(10_000, 100_000);
    let mut raw_rounds = 0;
    let rounds = in_turns(
        context,
        NAME,
        |_| drain(&place, events),
        |_| ask_directly(events),
        |_| {
            raw_rounds += 1;
            let folder = place.folder.join(format!("raw drain {raw_rounds}"));
            raw_drain(&place.runtime, &folder, u64::from(events), END_BYTES)
        },
    )?;
    let about = About { name: NAME, baseline: "bare pipes", unit: "events/s", must: None };
    let note = format!(
        "{events} events of {KEYS} keys; {PROCESSES} kept processes, whose CPU is not the server's; bare pipes are as many \
         processes, asked by a thread each; the raw log is scanned and {END_BYTES} bytes an event are written"
    );
    let row = rounds.row(about, place.server.resident_mib()?, &note);
    place.end(context)?;
    Ok(row)
}

/// From the resumption of the processor until everything has ended.
fn drain(place: &Place, events: u32) -> Result<Measured, Failure> {
    let server = &place.server;
    let change = |verb: &str| format!("/v1/processors/{PROCESSOR}/{verb}");
    place.sending.block_on(server.change("POST", &change("pause"), "{}"))?;
    place.load(events)?;
    server.wait_until_quiet()?;
    let (start, own_before, cpu_before) = (seam::now(), cpu::seconds(), server.cpu_seconds()?);
    place.sending.block_on(async {
        server.change("POST", &change("resume"), "{}").await?;
        while server.lag(STREAM).await? > 0 {
            seam::pause(LOOK_EVERY).await;
        }
        Ok::<_, Failure>(())
    })?;
    Ok(Measured {
        seconds: seam::seconds_since(start),
        cpu_seconds: server.cpu_seconds()? - cpu_before,
        sender_cpu_seconds: cpu::seconds() - own_before,
        counts: Counts { events: u64::from(events), ..Counts::default() },
        calls: Vec::new(),
    })
}

/// As many processes, with a thread each that says a line and reads the answer.
fn ask_directly(events: u32) -> Result<Measured, Failure> {
    let each = events as usize / PROCESSES;
    let mut processes = (0..PROCESSES).map(|_| echo()).collect::<Result<Vec<_>, _>>()?;
    let (start, cpu_before) = (seam::now(), cpu::seconds());
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            processes.iter_mut().map(|process| scope.spawn(move || converse(process, each))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    let measured = Measured {
        seconds: seam::seconds_since(start),
        cpu_seconds: cpu::seconds() - cpu_before,
        counts: Counts { events: (each * PROCESSES) as u64, ..Counts::default() },
        ..Measured::default()
    };
    for mut process in processes {
        // Its input has ended with its conversation, and so does it.
        process.wait()?;
    }
    Ok(measured)
}

fn echo() -> Result<Process, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(Child::EchoLines.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(command.spawn()?)
}

fn converse(process: &mut Process, events: usize) -> Result<(), Failure> {
    let mut stdin = process.stdin.take().ok_or("a process has no input")?;
    let mut stdout = BufReader::new(process.stdout.take().ok_or("a process has no output")?);
    let event = event(&mut fastrand::Rng::with_seed(19), 7);
    let question = format!(
        r#"{{"claim":"12345","stream":"{STREAM}","fence":"0000000000000001-0000000000000001","attempt":1,"events":[{event}]}}"#
    );
    let (question, mut line) = (question + "\n", String::new());
    for _ in 0..events {
        stdin.write_all(question.as_bytes())?;
        line.clear();
        stdout.read_line(&mut line)?;
        if line.trim_end() != echo_answer("12345") {
            return Err(format!("a process answered {line:?}").into());
        }
    }
    Ok(())
}
