//! `[[processor]]`: a processor that this server runs, with its handler.

use std::path::PathBuf;
use std::time::Duration;

use laneway::StartAt;
use laneway::core::EventId;
use laneway::engine::handler::OnFailure;
use laneway::engine::{Batch, ProcessorSettings};
use serde_json::Value;

use super::section::{Section, absent, own_name};
use crate::settings::field::{Field, Form, choice, length, list, number, put, put_some, text, yes_no};

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
    /// A command that is kept, and talks in lines.
    Pipe(Vec<String>),
    /// A web endpoint.
    Web {
        /// Where to post.
        url: http::Uri,
        /// What calls are signed with.
        secret: Option<SecretPlace>,
    },
    /// Remote workers, which claim them.
    Pull,
}

/// Where a secret is to be found: it is never in the file itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretPlace {
    /// In this file, without white space around it.
    File(PathBuf),
    /// In this variable of the environment.
    Variable(String),
}

/// The same while it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawProcessor {
    name: String,
    stream: String,
    exec: Option<Vec<String>>,
    mode: ExecMode,
    http: Option<http::Uri>,
    secret: Option<SecretPlace>,
    pull: bool,
    settings: ProcessorSettings,
    start: Option<StartAt>,
    batch_over: Option<Over>,
    batch_max: Option<usize>,
    batch_within: Option<Duration>,
}

/// How a command is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ExecMode {
    #[default]
    Once,
    Pipe,
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
            path: "exec_mode",
            form: Form::Choice(&["once", "pipe"]),
            default: Some("once"),
            about: "Whether the program is started for every event, or kept and given events as lines of JSON.",
            read: |to, value| {
                put(&mut to.mode, choice(value, &[("once", ExecMode::Once), ("pipe", ExecMode::Pipe)]))
            },
        },
        Field {
            path: "http",
            form: Form::Text("URL"),
            default: None,
            about: "A web endpoint that gets every event as a POST.",
            read: |to, value| put_some(&mut to.http, url(value)),
        },
        Field {
            path: "http_secret_file",
            form: Form::Text("FILE"),
            default: None,
            about: "A file with the secret that calls of `http` are signed with. Default: they are not signed.",
            read: |to, value| {
                put_some(&mut to.secret, text(value).map(|file| SecretPlace::File(file.into())))
            },
        },
        Field {
            path: "http_secret_env",
            form: Form::Text("VARIABLE"),
            default: None,
            about: "A variable with the secret that calls of `http` are signed with. Default: they are not signed.",
            read: |to, value| put_some(&mut to.secret, text(value).map(SecretPlace::Variable)),
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
        Field {
            path: "keep_last",
            form: Form::YesNo,
            default: Some("false"),
            about: "In a stream of mode latest, the payload of the event done last in a lane is kept and told to its next run; `exec` and `http` handlers get its numbers only.",
            read: |to, value| put(&mut to.settings.keep_last, yes_no(value)),
        },
    ];

    fn name(raw: &RawProcessor) -> &str {
        &raw.name
    }

    fn check(raw: RawProcessor) -> Result<Self, Vec<String>> {
        let mut faults = absent(&[("name", !raw.name.is_empty()), ("stream", !raw.stream.is_empty())]);
        let handler = keep(handler(&raw), &mut faults);
        let batch = keep(batch(&raw), &mut faults);
        faults.extend(handler.as_ref().and_then(|handler| no_batch(handler, raw.batch_over)));
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
    let exec = raw.exec.clone().map(|command| match raw.mode {
        ExecMode::Pipe => ProcessorHandler::Pipe(command),
        ExecMode::Once => ProcessorHandler::Exec(command),
    });
    let web = raw.http.clone().map(|url| ProcessorHandler::Web { url, secret: raw.secret.clone() });
    let pull = raw.pull.then_some(ProcessorHandler::Pull);
    let mut forms: Vec<ProcessorHandler> = exec.into_iter().chain(web).chain(pull).collect();
    for (field, is_set, needs) in [
        ("exec_mode", raw.mode == ExecMode::Pipe, raw.exec.is_some()),
        ("http_secret", raw.secret.is_some(), raw.http.is_some()),
    ] {
        if is_set && !needs {
            return Err(format!(
                "{field} does nothing without {}",
                field.split('_').next().unwrap_or_default()
            ));
        }
    }
    match (forms.pop(), forms.len()) {
        (Some(form), 0) => Ok(form),
        (last, more) => Err(format!(
            "has {} handlers, must have one: exec = [\"./handler.sh\"], http = \"http://127.0.0.1:9000/\", or pull = true",
            more + usize::from(last.is_some())
        )),
    }
}

/// Why this handler cannot have batches, if it cannot.
fn no_batch(handler: &ProcessorHandler, over: Option<Over>) -> Option<String> {
    let words = match (handler, over?) {
        (ProcessorHandler::Pull, _) => {
            "pull: each worker says with max_events of its claim how many events it takes"
        }
        (ProcessorHandler::Exec(_), _) => "a command per event: say exec_mode = \"pipe\"",
        (ProcessorHandler::Web { .. }, Over::Lane) => "http: every event is a call",
        (ProcessorHandler::Web { .. }, Over::Lanes) | (ProcessorHandler::Pipe(_), _) => return None,
    };
    Some(format!("batch is not for {words}"))
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

fn url(value: &Value) -> Result<http::Uri, String> {
    let url: Option<http::Uri> = value.as_str().and_then(|text| text.parse().ok());
    let url = url.filter(|url| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some());
    let url = url.filter(|url| url.authority().is_some_and(|authority| !authority.as_str().contains('@')));
    url.ok_or_else(|| {
        "must be an address such as \"http://127.0.0.1:9000/charge\", without a user".to_owned()
    })
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
