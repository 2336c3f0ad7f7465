//! `laneway job …`, and `laneway why` for jobs.

use std::time::Duration;

use laneway_client::wire::{Job, JobDraft, JobFilter, JobsNamed, json};
use laneway_client::{Client, Submission};

use super::send::payload;
use super::watch::{length, watched};
use crate::args::{JobCancel, JobList, JobRemove, JobSubmit, JobVerb};
use crate::exit::{Exit, Fault};
use crate::output::{Cell, Column, Detail, Row, Writer, agree, grouped, key_of};
use crate::seam;
use crate::terminal::{remark, say};

/// Longest wait that one call can ask for; longer ones are made of several.
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) async fn run(client: &Client, writer: Writer, verb: JobVerb) -> Result<(), Fault> {
    match verb {
        JobVerb::Submit(args) => submit(client, writer, args).await,
        JobVerb::Get(name) => writer.one(&client.job(&name.job, None).await?),
        JobVerb::Wait(args) => {
            let job = ended(client, &args.job, length("--timeout", &args.timeout)?).await?;
            told(writer, &job)
        }
        JobVerb::Ls(args) => watched(writer, &args.watch, async || list(client, writer, &args).await).await,
        JobVerb::Retry(args) => match client.retry_job(&args.job, None).await? {
            Submission::Settled(job) => told(writer, &job),
            Submission::Accepted(receipt) => {
                writer.done(format!("job {} is {}", receipt.id, receipt.status), &receipt, &receipt.id)
            }
        },
        JobVerb::Take(name) => told(writer, &client.take_job(&name.job).await?),
        JobVerb::Rm(args) => remove(client, writer, args).await,
        JobVerb::Cancel(args) => cancel(client, writer, args).await,
    }
}

async fn submit(client: &Client, writer: Writer, args: JobSubmit) -> Result<(), Fault> {
    let wait = args.wait.as_deref().map(|text| length("--wait", text)).transpose()?;
    let text = match args.data.as_deref() {
        Some("-") => Some(
            std::io::read_to_string(std::io::stdin())
                .map_err(|error| Fault::failed(format!("stdin: {error}")))?,
        ),
        text => text.map(str::to_owned),
    };
    let data = text.map(|text| {
        if args.raw { json(&text).map_err(|error| error.to_string()) } else { payload(text.trim()) }
    });
    let draft = JobDraft {
        key: args.key,
        kind: args.kind,
        data: data.transpose().map_err(|wrong| Fault::usage(format!("payload: {wrong}")))?,
        processor: args.processor,
        delay: args.delay,
        priority: args.priority,
        ttl: args.ttl,
        keep: args.keep,
        ..JobDraft::default()
    };
    let first_wait = wait.map(|wait| wait.min(WAIT_MAX));
    match client.submit(&args.stream, &draft, first_wait, args.idempotency_key.as_deref()).await? {
        Submission::Settled(job) => told(writer, &job),
        Submission::Accepted(receipt) => match wait {
            Some(wait) => told(writer, &ended(client, &receipt.id, wait.saturating_sub(WAIT_MAX)).await?),
            None => {
                let place =
                    receipt.reference.as_deref().map(|place| format!(" as {place}")).unwrap_or_default();
                writer.done(format!("job {} is {}{place}", receipt.id, receipt.status), &receipt, &receipt.id)
            }
        },
    }
}

/// A job that has ended, or will not without somebody.
async fn ended(client: &Client, id: &str, wait: Duration) -> Result<Job, Fault> {
    let begun = seam::steady();
    loop {
        let passed = Duration::from_micros(seam::steady().0.saturating_sub(begun.0));
        let left = wait.saturating_sub(passed);
        let job = client.job(id, (!left.is_zero()).then(|| left.min(WAIT_MAX))).await?;
        if job.finished_at.is_some() || job.status == "parked" {
            return Ok(job);
        }
        if left.is_zero() {
            let why = job.why.map(|why| format!(": {why}")).unwrap_or_default();
            let words = format!("job {id} is still {}{why}", job.status);
            return Err(Fault::new(Exit::TimedOut, words)
                .hint(format!("it goes on; ask again: laneway job wait {id}")));
        }
    }
}

/// The end of a job: its result on stdout, anything else as a fault of the job.
fn told(writer: Writer, job: &Job) -> Result<(), Fault> {
    if !writer.is_for_people() {
        writer.one(job)?;
    } else if let Some(result) = &job.result {
        say(result.get());
    } else if let Some(coded) = &job.result_b64 {
        say(coded);
    }
    if job.status == "done" {
        return Ok(());
    }
    let why = job.error.clone().or_else(|| job.why.as_ref().map(ToString::to_string));
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let fault = Fault::new(Exit::JobFailed, format!("job {} is {}{why}", job.id, job.status));
    Err(match job.status.as_str() {
        "parked" => {
            fault.hint(format!("laneway why {} says more; laneway lane retry or skip decides", job.id))
        }
        _ => fault,
    })
}

async fn cancel(client: &Client, writer: Writer, args: JobCancel) -> Result<(), Fault> {
    let wait = args.wait.as_deref().map(|text| length("--wait", text)).transpose()?;
    if let Some(batch) = args.batch {
        let named = JobsNamed { batch: Some(batch.clone()), ..JobsNamed::default() };
        let answer = client.cancel_jobs(&named, None).await?;
        return writer.done(
            format!("{} jobs of {batch} are asked to stop", grouped(answer.count)),
            &answer,
            answer.count,
        );
    }
    let mut first_fault = None;
    for id in &args.jobs {
        match client.cancel(id, wait).await {
            Ok(job) => writer.done(format!("job {id} is {}", job.status), &job, id)?,
            Err(error) => {
                let fault = Fault::from(error);
                if args.jobs.len() > 1 {
                    remark(format_args!("job {id}: {}", fault.words.join(" ")));
                }
                first_fault.get_or_insert(fault);
            }
        }
    }
    first_fault.map_or(Ok(()), Err)
}

/// Jobs that fit, page by page.
async fn list(client: &Client, writer: Writer, args: &JobList) -> Result<(), Fault> {
    let mut filter = JobFilter {
        stream: args.stream.clone(),
        status: args.status.clone(),
        key: args.key.as_ref().map(|key| key.clone().into_bytes()),
        kind: args.kind.clone(),
        batch: args.batch.clone(),
        since: args.since.as_deref().map(since),
        cursor: None,
        limit: Some(args.limit.clamp(1, 1_000)),
    };
    let mut found = Vec::new();
    loop {
        let page = client.jobs(&filter).await?;
        found.extend(page.items);
        filter.cursor = page.next;
        if filter.cursor.is_none() || found.len() >= args.limit {
            break;
        }
    }
    let more = filter.cursor.is_some() || found.len() > args.limit;
    found.truncate(args.limit);
    writer.list(&found, "no such jobs")?;
    if more {
        writer.remark(format_args!("there are more; raise --limit ({})", args.limit));
    }
    Ok(())
}

/// A date: what was typed, or so long ago.
fn since(text: &str) -> String {
    let Some(length) = laneway::core::period::parse(text) else { return text.to_owned() };
    let then = seam::now().0.saturating_sub(u64::try_from(length.as_micros()).unwrap_or(u64::MAX));
    let date = i64::try_from(then).ok().and_then(|then| jiff::Timestamp::from_microsecond(then).ok());
    date.map_or_else(|| text.to_owned(), |date| date.to_string())
}

async fn remove(client: &Client, writer: Writer, args: JobRemove) -> Result<(), Fault> {
    let what = format!("forget the ends of {} jobs", grouped(args.jobs.len() as u64));
    if args.consent.dry_run {
        let mut found = Vec::new();
        for id in &args.jobs {
            found.push(client.job(id, None).await?);
        }
        writer.list(&found, "")?;
        writer.remark(format_args!("would {what}"));
        return Ok(());
    }
    agree(args.consent, &what)?;
    for id in &args.jobs {
        client.delete_job(id).await?;
        writer.done(format!("job {id} is forgotten"), &serde_json::json!({"id": id}), id)?;
    }
    Ok(())
}

impl Row for Job {
    const COLUMNS: &'static [Column] = &[
        Column::left("JOB"),
        Column::left("STATUS"),
        Column::left("STREAM").cut(),
        Column::left("KEY").cut(),
        Column::right("TRIES"),
        Column::left("CREATED"),
    ];

    fn id(&self) -> String {
        self.id.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.id.clone()),
            Cell::status(&self.status),
            Cell::Text(self.stream.clone()),
            key_of(self.key.as_deref(), self.key_b64.as_deref()),
            Cell::Number(self.attempt.into()),
            Cell::Time(self.created_at.clone()),
        ]
    }
}

/// One sentence.
pub(super) async fn why(client: &Client, writer: Writer, id: &str) -> Result<(), Fault> {
    let job = client.job(id, None).await?;
    if !writer.is_for_people() {
        return writer.json(&job.why);
    }
    match (&job.why, &job.error) {
        (Some(why), _) => say(format_args!("job {id} is {}: {why}", job.status)),
        (None, Some(error)) => say(format_args!("job {id} is {}: {error}", job.status)),
        (None, None) => say(format_args!("job {id} is {}", job.status)),
    }
    Ok(())
}

impl Detail for Job {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn parts(&self) -> Vec<(&'static str, Cell)> {
        let mut parts = vec![
            ("job", Cell::Text(self.id.clone())),
            ("status", Cell::status(&self.status)),
            ("event", Cell::maybe(self.reference.clone())),
            ("stream", Cell::Text(self.stream.clone())),
            ("key", key_of(self.key.as_deref(), self.key_b64.as_deref())),
            ("type", Cell::maybe(self.kind.clone())),
            ("processor", Cell::maybe(self.processor.clone())),
            ("attempts", Cell::Number(self.attempt.into())),
            ("created", Cell::Time(self.created_at.clone())),
            ("started", Cell::time(self.started_at.as_deref())),
            ("finished", Cell::time(self.finished_at.as_deref())),
        ];
        let texts = [
            ("retry of", self.retry_of.clone()),
            ("progress", self.progress.as_ref().map(|progress| progress.get().to_owned())),
            ("result", self.result.as_ref().map(|result| result.get().to_owned())),
            ("result b64", self.result_b64.clone()),
            ("error", self.error.clone()),
            ("why", self.why.as_ref().map(ToString::to_string)),
        ];
        parts.extend(texts.into_iter().filter_map(|(name, text)| Some((name, Cell::Text(text?)))));
        if self.keep_until.is_some() {
            parts.push(("kept until", Cell::time(self.keep_until.as_deref())));
        }
        parts
    }
}
