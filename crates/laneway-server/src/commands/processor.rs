//! `laneway processor …`.

use laneway_client::Client;
use laneway_client::wire::{
    Count, OnFailure, Processor, ProcessorSettings, Reset, ResetEmit, ResetState, Retry, Start,
};

use super::watch::watched;
use crate::args::{
    OnFailureArg, PolicyArgs, ProcessorCreate, ProcessorEdit, ProcessorReset, ProcessorVerb, ResetEmitArg,
    ResetStateArg,
};
use crate::exit::{Exit, Fault};
use crate::output::{Cell, Column, Detail, Row, Writer, agree, grouped};

pub(super) async fn run(client: &Client, writer: Writer, verb: ProcessorVerb) -> Result<(), Fault> {
    match verb {
        ProcessorVerb::Ls(watch) => {
            watched(writer, &watch, async || {
                let nothing = "no processors; make one: laneway processor create NAME --stream STREAM";
                writer.list(&client.processors().await?, nothing)
            })
            .await
        }
        ProcessorVerb::Create(args) => create(client, writer, args).await,
        ProcessorVerb::Get(name) => writer.one(&client.processor(&name.processor).await?),
        ProcessorVerb::Edit(args) => edit(client, writer, args).await,
        ProcessorVerb::Pause(name) => {
            told(writer, "is paused", &name.processor, client.pause_processor(&name.processor).await?)
        }
        ProcessorVerb::Resume(name) => {
            told(writer, "goes on", &name.processor, client.resume_processor(&name.processor).await?)
        }
        ProcessorVerb::Reset(args) => reset(client, writer, args).await,
        ProcessorVerb::Rm(args) => {
            let processor = client.processor(&args.processor).await?;
            let what = format!(
                "remove processor {} of {} with its progress, states and dead letters",
                processor.name, processor.stream
            );
            if args.consent.dry_run {
                return writer.done(format!("would {what}"), &processor, &processor.name);
            }
            agree(args.consent, &what)?;
            client.delete_processor(&processor.name).await?;
            writer.done(format!("processor {} is removed", processor.name), &processor, &processor.name)
        }
    }
}

async fn create(client: &Client, writer: Writer, args: ProcessorCreate) -> Result<(), Fault> {
    let base = ProcessorSettings {
        stream: args.stream,
        pull: true,
        start: args.start.as_deref().map(start),
        ..ProcessorSettings::default()
    };
    let settings = with(base, args.policy);
    let processor = client.put_processor(&args.processor, &settings).await?;
    let sentence = format!(
        "processor {} waits for workers on {}: laneway work {} -- COMMAND",
        processor.name, processor.stream, processor.name
    );
    writer.done(sentence, &processor, &processor.name)
}

/// What is not said stays as it is: the server takes settings as a whole.
async fn edit(client: &Client, writer: Writer, args: ProcessorEdit) -> Result<(), Fault> {
    if args.policy.is_empty() {
        let hint = "say what, such as --concurrency 8; laneway processor edit --help lists all";
        return Err(Fault::usage("nothing to change").hint(hint));
    }
    let now = client.processor(&args.processor).await?;
    let Some(settings) = now.settings.filter(|settings| settings.pull) else {
        let words = format!(
            "processor {} runs in a server ({}), which sets it up at its start",
            now.name, now.handler
        );
        return Err(
            Fault::new(Exit::Conflict, words).hint("change laneway.toml or the program, and start it again")
        );
    };
    let processor = client.put_processor(&args.processor, &with(settings, args.policy)).await?;
    writer.done(format!("processor {} is changed", processor.name), &processor, &processor.name)
}

/// Settings with what was said.
fn with(settings: ProcessorSettings, policy: PolicyArgs) -> ProcessorSettings {
    let before = settings.retry.clone().unwrap_or_default();
    let retry = Retry {
        max_attempts: policy.max_attempts.or(before.max_attempts),
        backoff: policy.backoff.or(before.backoff),
        backoff_max: policy.backoff_max.or(before.backoff_max),
    };
    let on_failure = policy.on_failure.map(|wish| match wish {
        OnFailureArg::Park => OnFailure::Park,
        OnFailureArg::DeadLetter => OnFailure::DeadLetter,
        OnFailureArg::DeadLetterLane => OnFailure::DeadLetterLane,
        OnFailureArg::Halt => OnFailure::Halt,
        OnFailureArg::Drop => OnFailure::Drop,
    });
    ProcessorSettings {
        concurrency: policy.concurrency.or(settings.concurrency),
        timeout: policy.timeout.or(settings.timeout),
        retry: (retry != Retry::default()).then_some(retry),
        on_failure: on_failure.or(settings.on_failure),
        types: if policy.types.is_empty() { settings.types } else { policy.types },
        ..settings
    }
}

impl PolicyArgs {
    fn is_empty(&self) -> bool {
        let Self { concurrency, timeout, max_attempts, backoff, backoff_max, on_failure, types } = self;
        concurrency.is_none()
            && timeout.is_none()
            && max_attempts.is_none()
            && backoff.is_none()
            && backoff_max.is_none()
            && on_failure.is_none()
            && types.is_empty()
    }
}

/// A place by its text: a number is an id, anything else a word or a date.
fn start(text: &str) -> Start {
    text.parse().map_or_else(|_| Start::At(text.to_owned()), Start::Id)
}

async fn reset(client: &Client, writer: Writer, args: ProcessorReset) -> Result<(), Fault> {
    let processor = client.processor(&args.processor).await?;
    let (state, states) = match args.state {
        ResetStateArg::Keep => (ResetState::Keep, ""),
        ResetStateArg::Clear => (ResetState::Clear, " and forget the states of its lanes"),
    };
    let (emit, quietly) = match args.emit {
        ResetEmitArg::On => (ResetEmit::On, ""),
        ResetEmitArg::Off => (ResetEmit::Off, ", without what it has emitted before,"),
    };
    let what = format!("begin processor {} anew at {}{quietly}{states}", processor.name, args.start);
    if args.consent.dry_run {
        return writer.done(format!("would {what}"), &processor, &processor.name);
    }
    agree(args.consent, &what)?;
    let reset = Reset { start: Some(start(&args.start)), state, emit };
    let count = client.reset_processor(&processor.name, &reset).await?;
    told(writer, "begins anew", &processor.name, count)
}

fn told(writer: Writer, what: &str, processor: &str, count: Count) -> Result<(), Fault> {
    let when = if count.applied { "" } else { "; it has its effect once the processor runs" };
    let sentence = format!("processor {processor} {what} on {} partitions{when}", grouped(count.count));
    writer.done(sentence, &count, processor)
}

fn on_failure(settings: &ProcessorSettings) -> Option<&'static str> {
    Some(match settings.on_failure? {
        OnFailure::Park => "park",
        OnFailure::DeadLetter => "dead-letter",
        OnFailure::DeadLetterLane => "dead-letter-lane",
        OnFailure::Halt => "halt",
        OnFailure::Drop => "drop",
    })
}

/// How it stands, in one word.
fn status(processor: &Processor) -> Cell {
    let worst = processor.stopped.iter().map(|stopped| stopped.status.as_str());
    match worst.max_by_key(|status| *status == "halted") {
        Some(status) => Cell::status(status),
        None if processor.running => Cell::Text("running".to_owned()),
        None => Cell::status("idle"),
    }
}

impl Row for Processor {
    const COLUMNS: &'static [Column] = &[
        Column::left("PROCESSOR").cut(),
        Column::left("STREAM").cut(),
        Column::left("HANDLER"),
        Column::left("STATUS"),
        Column::right("CONCURRENCY"),
        Column::left("ON FAILURE"),
    ];

    fn id(&self) -> String {
        self.name.clone()
    }

    fn cells(&self) -> Vec<Cell> {
        let settings = self.settings.as_ref();
        vec![
            Cell::Text(self.name.clone()),
            Cell::Text(self.stream.clone()),
            Cell::Text(self.handler.clone()),
            status(self),
            settings
                .and_then(|settings| settings.concurrency)
                .map_or(Cell::Nothing, |count| Cell::Number(count as u64)),
            Cell::maybe(settings.and_then(on_failure)),
        ]
    }
}

impl Detail for Processor {
    fn id(&self) -> String {
        self.name.clone()
    }

    fn parts(&self) -> Vec<(&'static str, Cell)> {
        let mut parts = vec![
            ("processor", Cell::Text(self.name.clone())),
            ("stream", Cell::Text(self.stream.clone())),
            ("handler", Cell::Text(self.handler.clone())),
            ("status", status(self)),
        ];
        if let Some(settings) = &self.settings {
            let retry = settings.retry.clone().unwrap_or_default();
            let texts = [
                ("concurrency", settings.concurrency.map(|count| count.to_string())),
                ("timeout", settings.timeout.clone()),
                ("attempts", retry.max_attempts.map(|count| count.to_string())),
                ("backoff", retry.backoff.clone()),
                ("backoff max", retry.backoff_max.clone()),
                ("on failure", on_failure(settings).map(str::to_owned)),
                ("types", (!settings.types.is_empty()).then(|| settings.types.join(","))),
            ];
            parts.extend(texts.into_iter().map(|(name, text)| (name, Cell::maybe(text))));
        }
        for stopped in &self.stopped {
            let event = stopped.reference.as_ref().map(|event| format!(" by {event}")).unwrap_or_default();
            let cause = stopped.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
            let who = stopped.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let words = format!("partition {} {}{event}{who}{cause}", stopped.partition, stopped.status);
            parts.push(("stopped", Cell::Text(words)));
        }
        parts
    }
}
