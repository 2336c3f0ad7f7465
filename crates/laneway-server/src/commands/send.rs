//! `laneway stream send`: arguments or lines become events; what was cut short goes on without sending anything twice.

mod deliver;
mod draft;
mod lines;

use laneway_client::Client;
use laneway_client::wire::{AppendedAs, EventReceipt};
use serde::Serialize;

use self::deliver::{Delivered, Delivery, Numbered};
pub(super) use self::draft::payload;
use self::draft::{KnownBy, LinesAre, Reading};
use self::lines::{Input, Line};
use crate::args::{Form, SendArgs};
use crate::exit::{Exit, Fault};
use crate::output::{Cell, Column, Progress, Row, Writer, grouped};
use crate::seam;
use crate::signals::End;
use crate::terminal::{plain, remark, say};

/// Bytes of payloads of one call: below the bound of the server, with room for the rest of the events.
const BATCH_BYTES: usize = 512 * 1024;
/// Bad lines that are told one by one.
const BAD_TOLD: usize = 10;
/// Events of one call that a server takes.
const BATCH_MAX: usize = 1_000;

pub(super) async fn run(client: &Client, writer: Writer, args: SendArgs, end: End) -> Result<(), Fault> {
    if !(1..=BATCH_MAX).contains(&args.batch) {
        return Err(Fault::usage(format!("--batch {}: must be 1 to {BATCH_MAX}", args.batch)));
    }
    let is_stdin = args.data.is_empty();
    let lines = match (args.raw, &args.key, &args.key_field) {
        (true, key, _) => LinesAre::Text { key: key.clone() },
        (false, _, Some(field)) => LinesAre::Keyed { field: field.clone() },
        (false, Some(key), None) => LinesAre::Payloads { key: Some(key.clone()) },
        (false, None, None) if is_stdin => LinesAre::Events,
        (false, None, None) => LinesAre::Payloads { key: None },
    };
    let name = args.name.clone().unwrap_or_else(new_name);
    let known = if is_made_up(&name) { KnownBy::DedupId } else { KnownBy::Position };
    let reading = Reading { lines, kind: args.kind.clone(), name, known };
    if is_stdin {
        send_lines(client, writer, &args, reading, end).await
    } else {
        send_few(client, writer, &args, &reading).await
    }
}

/// A name that no other sending has.
fn new_name() -> String {
    format!("send-{:x}-{:x}", seam::now().0, std::process::id())
}

/// Whether a name was made by [`new_name`], in this process or in one that was cut short.
fn is_made_up(name: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = name.strip_prefix("send-").and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(time, process)| is_hex(time) && is_hex(process))
}

/// Arguments: few, so each is told what became of it.
async fn send_few(client: &Client, writer: Writer, args: &SendArgs, reading: &Reading) -> Result<(), Fault> {
    let drafts = (1..).zip(&args.data).map(|(number, text)| {
        reading
            .draft(number, text)
            .map_err(|wrong| Fault::usage(format!("argument {}: {wrong}", plain(text))))
    });
    let drafts = drafts.collect::<Result<Vec<_>, Fault>>()?;
    let appended = match reading.origin() {
        Some(origin) => client.append_from(origin, &args.stream, &drafts).await?,
        None => client.append(&args.stream, &drafts).await?,
    };
    let refused = appended.events.iter().find_map(|event| event.problem.clone());
    match (writer.form(), &appended.events[..]) {
        (Form::Json, _) => writer.json(&appended)?,
        _ => writer.list(&appended.events, "")?,
    }
    refused.map_or(Ok(()), |problem| Err(laneway_client::ClientError::Problem(Box::new(problem)).into()))
}

impl Row for EventReceipt {
    const COLUMNS: &'static [Column] = &[
        Column::left("REF"),
        Column::right("SEQ"),
        Column::left("APPEND"),
        Column::left("DUE").rare(),
        Column::left("WHY").cut().rare(),
    ];

    fn id(&self) -> String {
        self.reference.clone().unwrap_or_default()
    }

    fn cells(&self) -> Vec<Cell> {
        let word = match self.append {
            AppendedAs::New => "new",
            AppendedAs::Duplicate => "duplicate",
            AppendedAs::Stale => "stale",
            AppendedAs::Scheduled => "scheduled",
            AppendedAs::Conflict => "conflict",
            AppendedAs::Refused => "refused",
        };
        vec![
            Cell::maybe(self.reference.clone()),
            self.seq.map_or(Cell::Nothing, Cell::Number),
            Cell::Text(word.to_owned()),
            Cell::time(self.due_at.as_deref()),
            Cell::maybe(self.problem.as_ref().map(|problem| problem.detail.clone())),
        ]
    }
}

/// What a sending did, for programs.
#[derive(Debug, Default, Serialize)]
struct Report {
    stream: String,
    name: String,
    new: u64,
    duplicate: u64,
    stale: u64,
    scheduled: u64,
    bad: u64,
    /// The line to go on with: all before it are taken or bad.
    next_line: u64,
    seconds: f64,
    durability: Option<String>,
}

impl Report {
    fn taken(&self) -> u64 {
        self.new + self.duplicate + self.stale + self.scheduled
    }

    fn sentence(&self) -> String {
        let mut kinds = vec![format!("{} new", grouped(self.new))];
        for (count, word) in
            [(self.duplicate, "sent before"), (self.stale, "stale"), (self.scheduled, "scheduled")]
        {
            if count > 0 {
                kinds.push(format!("{} {word}", grouped(count)));
            }
        }
        let safe = self.durability.as_ref().map(|word| format!(", {word}")).unwrap_or_default();
        let bad = if self.bad > 0 {
            format!("; {} bad lines were passed over", grouped(self.bad))
        } else {
            String::new()
        };
        format!(
            "{} events to {} in {:.1}s ({}/s): {}{safe}{bad}",
            grouped(self.taken()),
            self.stream,
            self.seconds,
            rate(self.taken(), self.seconds),
            kinds.join(", ")
        )
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rate for people"
)]
fn rate(count: u64, seconds: f64) -> String {
    grouped((count as f64 / seconds.max(0.001)) as u64)
}

/// A sending under way.
struct Sending<'a> {
    reading: Reading,
    args: &'a SendArgs,
    writer: Writer,
    progress: &'a Progress,
    report: Report,
    begun: laneway::Steady,
}

async fn send_lines(
    client: &Client,
    writer: Writer,
    args: &SendArgs,
    reading: Reading,
    end: End,
) -> Result<(), Fault> {
    let input = Input::open(args.file.as_deref(), writer.is_quiet())?;
    let progress = Progress::of_bytes(input.bytes, writer.is_quiet());
    let report =
        Report { stream: args.stream.clone(), name: reading.name.clone(), next_line: 1, ..Report::default() };
    let begun = seam::steady();
    let origin = reading.origin().map(str::to_owned);
    let mut sending = Sending { reading, args, writer, progress: &progress, report, begun };
    let mut delivery = Delivery { client, stream: &args.stream, origin, progress: &progress, has_met: false };
    let sent = sending.all(input, &mut delivery, end).await;
    let mut report = sending.report;
    report.seconds = seconds_since(begun);
    drop(progress);
    match sent {
        Ok(()) => {
            if writer.form() != Form::Id {
                writer.done(report.sentence(), &report, &report.name)?;
            }
            if report.bad > 0 { Err(Fault::silent(Exit::Failed)) } else { Ok(()) }
        }
        Err(fault) if report.next_line > 1 || fault.exit == Exit::Interrupted => {
            writer.remark(format_args!("cut short: {}", report.sentence()));
            let from = report.next_line;
            Err(fault.hint(format!(
                "go on with the same input: laneway stream send {} --resume {} --from-line {from}",
                report.stream, report.name
            )))
        }
        Err(fault) => Err(fault),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a length for people")]
fn seconds_since(begun: laneway::Steady) -> f64 {
    seam::steady().0.saturating_sub(begun.0) as f64 / 1e6
}

impl Sending<'_> {
    /// Sends what is there, batch by batch: while one is under way the next gathers.
    async fn all(&mut self, input: Input, delivery: &mut Delivery<'_>, mut end: End) -> Result<(), Fault> {
        let mut lines = input.lines();
        loop {
            let mut read = Vec::new();
            tokio::select! {
                biased;
                _ = &mut end => return Err(Fault::new(Exit::Interrupted, "interrupted")),
                count = lines.recv_many(&mut read, self.args.batch) => if count == 0 { return Ok(()) },
            }
            let read = read.into_iter().collect::<std::io::Result<Vec<Line>>>();
            let read = read.map_err(|error| Fault::failed(format!("the input cannot be read: {error}")))?;
            let mut waiting = read.into_iter().peekable();
            while waiting.peek().is_some() {
                let (batch, past, position) = self.gather(&mut waiting)?;
                let delivered = tokio::select! {
                    biased;
                    delivered = delivery.bring(batch) => delivered?,
                    // What was under way is known by its name and number when it comes again.
                    _ = &mut end => return Err(Fault::new(Exit::Interrupted, "interrupted")),
                };
                self.count(delivered)?;
                self.report.next_line = past;
                self.tell(position);
            }
        }
    }

    /// Events for one call; then the number of the line behind them, and how far the input is.
    fn gather(
        &mut self,
        lines: &mut std::iter::Peekable<std::vec::IntoIter<Line>>,
    ) -> Result<(Numbered, u64, u64), Fault> {
        let (mut batch, mut bytes, mut past, mut position) = (Vec::new(), 0, self.report.next_line, 0);
        while let Some(line) = lines.next_if(|_| bytes < BATCH_BYTES) {
            (past, position) = (line.number + 1, line.end);
            if line.number < self.args.from_line {
                continue;
            }
            let text = line.text.as_deref().map(|text| text.trim_end_matches(['\n', '\r']));
            match text {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => match self.reading.draft(line.number, text) {
                    Ok(draft) => {
                        bytes += text.len();
                        batch.push((line.number, draft));
                    }
                    Err(wrong) => self.bad(line.number, &wrong)?,
                },
                Err(wrong) => self.bad(line.number, wrong)?,
            }
        }
        Ok((batch, past, position))
    }

    fn count(&mut self, delivered: Delivered) -> Result<(), Fault> {
        for (_, receipt) in &delivered.taken {
            match receipt.append {
                AppendedAs::Duplicate => self.report.duplicate += 1,
                AppendedAs::Stale => self.report.stale += 1,
                AppendedAs::Scheduled => self.report.scheduled += 1,
                _ => self.report.new += 1,
            }
            if self.writer.form() == Form::Id {
                self.progress.beside(|| say(receipt.id()));
            }
        }
        self.report.durability = delivered.durability.or(self.report.durability.take());
        delivered.bad.iter().try_for_each(|(number, wrong)| self.bad(*number, wrong))
    }

    /// A line that can be no event: told, and passed over unless that is unwanted.
    fn bad(&mut self, number: u64, wrong: &str) -> Result<(), Fault> {
        let words = format!("line {number}: {}", plain(wrong));
        if self.args.strict {
            return Err(Fault::failed(words));
        }
        self.report.bad += 1;
        let told = usize::try_from(self.report.bad).unwrap_or(usize::MAX);
        match told {
            ..=BAD_TOLD => self.progress.beside(|| remark(words)),
            _ if told == BAD_TOLD + 1 => self.progress.beside(|| remark("more bad lines are only counted")),
            _ => {}
        }
        Ok(())
    }

    fn tell(&self, position: u64) {
        let seconds = seconds_since(self.begun);
        let bad =
            if self.report.bad > 0 { format!(", {} bad", grouped(self.report.bad)) } else { String::new() };
        self.progress.at(position);
        self.progress.say(format!(
            "{} events, {}/s{bad}",
            grouped(self.report.taken()),
            rate(self.report.taken(), seconds)
        ));
    }
}
