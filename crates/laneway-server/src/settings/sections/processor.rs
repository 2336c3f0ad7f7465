//! `[[processor]]`: a processor that this server runs, with its handler.

use std::time::Duration;

use laneway::StartAt;
use laneway::core::EventId;
use laneway::engine::handler::OnFailure;
use laneway::engine::{Batch, ProcessorSettings};
use serde_json::Value;

use super::section::{Section, absent, own_name};
use crate::settings::field::{Field, Form, choice, length, list, number, put, put_some, yes_no};

/// A processor as the file wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Processor {
    /// Its name, unique in the store.
    pub(crate) name: String,
    /// The stream it processes.
    pub(crate) stream: String,
    /// Who runs its events.
    pub(crate) handler: ProcessorHandler,
    /// How it runs them.
    pub(crate) settings: ProcessorSettings,
    /// Whether the file says where it begins.
    pub(crate) says_start: bool,
}

/// Who runs the events of a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessorHandler {
    /// A command, started for every event.
    Exec(Vec<String>),
    /// Remote workers, which claim them.
    Pull,
}

/// The same while it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawProcessor {
    name: String,
    stream: String,
    exec: Option<Vec<String>>,
    pull: bool,
    settings: ProcessorSettings,
    start: Option<StartAt>,
    batch_over: Option<Over>,
    batch_max: Option<usize>,
    batch_within: Option<Duration>,
}

/// What a batch gathers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Lane,
    Lanes,
}

const POLICIES: [(&str, OnFailure); 5] = [
    ("park", OnFailure::Park),
    ("dead_letter", OnFailure::DeadLetter),
    ("dead_letter_lane", OnFailure::DeadLetterLane),
    ("halt", OnFailure::Halt),
    ("drop", OnFailure::Drop),
];

impl Section for Processor {
    const NAME: &'static str = "processor";
    type Raw = RawProcessor;

    const FIELDS: &'static [Field<RawProcessor>] = &[
        Field {
            path: "name",
            form: Form::Text("NAME"),
            default: None,
            about: "Its name, unique in the store. It must be said.",
            read: |to, value| put(&mut to.name, own_name(value)),
        },
        Field {
            path: "stream",
            form: Form::Text("NAME"),
            default: None,
            about: "The stream it processes. It must be said.",
            read: |to, value| put(&mut to.stream, own_name(value)),
        },
        Field {
            path: "exec",
            form: Form::List("COMMAND"),
            default: None,
            about: "A program and its arguments that run every event.",
            read: |to, value| put_some(&mut to.exec, command(value)),
        },
        Field {
            path: "pull",
            form: Form::YesNo,
            default: Some("false"),
            about: "Remote workers claim the events.",
            read: |to, value| put(&mut to.pull, yes_no(value)),
        },
        Field {
            path: "concurrency",
            form: Form::Number,
            default: Some("64"),
            about: "Runs at the same time.",
            read: |to, value| put(&mut to.settings.concurrency, number(value)),
        },
        Field {
            path: "timeout",
            form: Form::Length,
            default: None,
            about: "How long a run may take; then it is ended and has failed. Default: as long as it wants.",
            read: |to, value| put_some(&mut to.settings.timeout, length(value)),
        },
        Field {
            path: "retry.max_attempts",
            form: Form::Number,
            default: Some("5"),
            about: "Attempts at one event, the first included.",
            read: |to, value| put(&mut to.settings.policy.max_attempts, number(value)),
        },
        Field {
            path: "retry.backoff",
            form: Form::Length,
            default: Some("1s"),
            about: "Wait after the first failed attempt; it doubles with each.",
            read: |to, value| put(&mut to.settings.policy.backoff, length(value)),
        },
        Field {
            path: "retry.backoff_max",
            form: Form::Length,
            default: Some("5m"),
            about: "Longest wait between two attempts.",
            read: |to, value| put(&mut to.settings.policy.backoff_max, length(value)),
        },
        Field {
            path: "on_failure",
            form: Form::Choice(&["park", "dead_letter", "dead_letter_lane", "halt", "drop"]),
            default: Some("park"),
            about: "What happens after the last attempt: the lane stops; the event is kept aside; it and all later ones of \
                    its lane are; the partition stops; it is counted and gone.",
            read: |to, value| put(&mut to.settings.policy.on_failure, choice(value, &POLICIES)),
        },
        Field {
            path: "batch.over",
            form: Form::Choice(&["lane", "lanes"]),
            default: None,
            about: "Gives the handler several events at once: of one lane in order, or the heads of many lanes. Default: one event.",
            read: |to, value| {
                put_some(&mut to.batch_over, choice(value, &[("lane", Over::Lane), ("lanes", Over::Lanes)]))
            },
        },
        Field {
            path: "batch.max",
            form: Form::Number,
            default: None,
            about: "Most events of a batch. It must be said with `batch.over`.",
            read: |to, value| put_some(&mut to.batch_max, number(value)),
        },
        Field {
            path: "batch.within",
            form: Form::Length,
            default: None,
            about: "How long a batch that is not full waits for more. Default: not at all.",
            read: |to, value| put_some(&mut to.batch_within, length(value)),
        },
        Field {
            path: "types",
            form: Form::List("TYPE"),
            default: None,
            about: "Which types of events run, with `*` for any ending; the others pass by. Default: all.",
            read: |to, value| put(&mut to.settings.types, list(value)),
        },
        Field {
            path: "start",
            form: Form::Text("beginning|end|ID|DATE"),
            default: Some("beginning"),
            about: "Where a new processor begins: at the first event, behind the last, at an id, or at a time.",
            read: |to, value| put_some(&mut to.start, start(value)),
        },
        Field {
            path: "rate",
            form: Form::Number,
            default: None,
            about: "Runs that may start per second, over all partitions. Default: no bound.",
            read: |to, value| put_some(&mut to.settings.rate, number(value)),
        },
        Field {
            path: "rate_per_key",
            form: Form::Number,
            default: None,
            about: "Runs of one key that may start per second. Default: no bound.",
            read: |to, value| put_some(&mut to.settings.rate_per_key, number(value)),
        },
        Field {
            path: "supersede_running",
            form: Form::YesNo,
            default: Some("false"),
            about: "In a stream of mode latest, a newer event asks the running one of its lane to stop.",
            read: |to, value| put(&mut to.settings.supersede_running, yes_no(value)),
        },
    ];

    fn name(raw: &RawProcessor) -> &str {
        &raw.name
    }

    fn check(raw: RawProcessor) -> Result<Self, Vec<String>> {
        let mut faults = absent(&[("name", !raw.name.is_empty()), ("stream", !raw.stream.is_empty())]);
        let handler = keep(handler(&raw), &mut faults);
        let batch = keep(batch(&raw), &mut faults);
        if handler == Some(ProcessorHandler::Pull) && raw.batch_over.is_some() {
            let words = "batch is not for pull: each worker says with max_events of its claim how many events it takes";
            faults.push(words.to_owned());
        }
        let start = raw.start.unwrap_or(StartAt::Beginning);
        let settings = ProcessorSettings { batch: batch.unwrap_or_default(), start, ..raw.settings };
        if let Err(refusals) = settings.check() {
            faults.extend(refusals.iter().map(ToString::to_string));
        }
        match handler {
            Some(handler) if faults.is_empty() => {
                let says_start = raw.start.is_some();
                Ok(Self { name: raw.name, stream: raw.stream, handler, settings, says_start })
            }
            _ => Err(faults),
        }
    }
}

fn keep<A>(checked: Result<A, String>, faults: &mut Vec<String>) -> Option<A> {
    checked.map_err(|fault| faults.push(fault)).ok()
}

/// Exactly one of the forms that a handler can have.
fn handler(raw: &RawProcessor) -> Result<ProcessorHandler, String> {
    let exec = raw.exec.clone().map(ProcessorHandler::Exec);
    let forms: Vec<ProcessorHandler> =
        exec.into_iter().chain(raw.pull.then_some(ProcessorHandler::Pull)).collect();
    match forms.len() {
        1 => forms.into_iter().next().ok_or_else(String::new),
        count => {
            Err(format!("has {count} handlers, must have one: exec = [\"./handler.sh\"], or pull = true"))
        }
    }
}

fn batch(raw: &RawProcessor) -> Result<Batch, String> {
    let within = raw.batch_within.unwrap_or_default();
    match (raw.batch_over, raw.batch_max) {
        (None, None) if raw.batch_within.is_none() => Ok(Batch::One),
        (Some(Over::Lane), Some(max)) => Ok(Batch::Lane { max, within }),
        (Some(Over::Lanes), Some(max)) => Ok(Batch::Lanes { max, within }),
        _ => Err("batch needs over and max, such as { over = \"lane\", max = 100 }".to_owned()),
    }
}

/// A program and its arguments; text is taken for a program without any, never for a line of a shell.
fn command(value: &Value) -> Result<Vec<String>, String> {
    let wrong = || {
        "must be a list of texts: a program and its arguments, such as [\"python3\", \"handler.py\"]"
            .to_owned()
    };
    let words = value.as_array().ok_or_else(wrong)?.iter().map(|word| word.as_str().map(str::to_owned));
    let words: Vec<String> = words.collect::<Option<_>>().ok_or_else(wrong)?;
    if words.first().is_none_or(String::is_empty) {
        return Err(wrong());
    }
    Ok(words)
}

fn start(value: &Value) -> Result<StartAt, String> {
    let wrong =
        || "must be \"beginning\", \"end\", an id, or a date such as \"2026-11-16T18:00:00Z\"".to_owned();
    match value {
        Value::Number(_) => Ok(StartAt::Id(EventId(number(value)?))),
        Value::String(word) => match word.as_str() {
            "beginning" => Ok(StartAt::Beginning),
            "end" => Ok(StartAt::End),
            date => {
                let at: jiff::Timestamp = date.parse().map_err(|_| wrong())?;
                let at = u64::try_from(at.as_microsecond()).map_err(|_| wrong())?;
                Ok(StartAt::Time(laneway::Timestamp(at)))
            }
        },
        _ => Err(wrong()),
    }
}
