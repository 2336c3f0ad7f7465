//! All settings of `laneway serve` but the lists: one entry each.

use std::net::SocketAddr;

use tracing_subscriber::filter::LevelFilter;

use super::field::{Field, Form, choice, put, text};
use super::listen;
use super::sections::{Processor, Schedule, Stream};

/// Settings that can be used.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    /// `[store]`.
    pub(crate) store: Store,
    /// `[http]`.
    pub(crate) http: Http,
    /// `[log]`.
    pub(crate) log: Log,
    /// `[[stream]]`.
    pub(crate) streams: Vec<Stream>,
    /// `[[processor]]`.
    pub(crate) processors: Vec<Processor>,
    /// `[[schedule]]`.
    pub(crate) schedules: Vec<Schedule>,
}

/// Where everything is kept.
#[derive(Debug, PartialEq)]
pub(crate) struct Store {
    /// URL of the store.
    pub(crate) url: String,
    /// Separates applications on one store.
    pub(crate) namespace: String,
}

/// The HTTP API.
#[derive(Debug, PartialEq)]
pub(crate) struct Http {
    /// Where to listen.
    pub(crate) listen: SocketAddr,
}

/// What is told on stderr.
#[derive(Debug, PartialEq)]
pub(crate) struct Log {
    /// How important a line must be.
    pub(crate) level: LevelFilter,
}

impl Settings {
    /// Nothing yet: the defaults are in the table, and are read like everything else.
    pub(super) fn unread() -> Self {
        Self {
            store: Store { url: String::new(), namespace: String::new() },
            http: Http { listen: listen::DEFAULT },
            log: Log { level: LevelFilter::OFF },
            streams: Vec::new(),
            processors: Vec::new(),
            schedules: Vec::new(),
        }
    }
}

/// One setting, and where besides the file it can be said.
pub(crate) struct Setting {
    /// What it is.
    pub(crate) field: Field<Settings>,
    /// Its flag of `laneway serve`, without the dashes. A secret has none: others can see what was typed.
    pub(crate) flag: Option<&'static str>,
    /// What may be shown of its value.
    pub(crate) shown: Shown,
}

/// What may be shown of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All of it.
    Whole,
    /// All but who signs in, and with which words.
    WithoutUser,
}

impl Setting {
    /// The variable that says the same.
    pub(crate) fn variable(&self) -> String {
        format!("LANEWAY_{}", self.field.path.replace('.', "_").to_uppercase())
    }
}

/// All of them, in the order in which they are told.
pub(crate) const TABLE: &[Setting] = &[
    Setting {
        field: Field {
            path: "store.url",
            form: Form::Text("URL"),
            default: Some("file:./laneway-data"),
            about: "Where everything is kept: `file:PATH`, or `memory:` to keep nothing.",
            read: |to, value| put(&mut to.store.url, text(value).and_then(url)),
        },
        flag: Some("store"),
        shown: Shown::WithoutUser,
    },
    Setting {
        field: Field {
            path: "store.namespace",
            form: Form::Text("NAME"),
            default: Some("laneway"),
            about: "Separates applications on one store. `file:` and `memory:` hold one application each, named laneway.",
            read: |to, value| put(&mut to.store.namespace, text(value)),
        },
        flag: None,
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "http.listen",
            form: Form::Text("ADDRESS:PORT"),
            default: Some("127.0.0.1:7070"),
            about: "Address to listen on; a loopback address. Port 0 picks a free one.",
            read: |to, value| {
                put(&mut to.http.listen, text(value).and_then(|address| listen::check(&address)))
            },
        },
        flag: Some("listen"),
        shown: Shown::Whole,
    },
    Setting {
        field: Field {
            path: "log.level",
            form: Form::Choice(&["error", "warn", "info", "debug", "trace"]),
            default: Some("warn"),
            about: "How important something must be to be logged.",
            read: |to, value| put(&mut to.log.level, choice(value, &LEVELS)),
        },
        flag: Some("log-level"),
        shown: Shown::Whole,
    },
];

const LEVELS: [(&str, LevelFilter); 5] = [
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

fn url(url: String) -> Result<String, String> {
    if url.contains(':') {
        return Ok(url);
    }
    Err("is no URL, must be file:PATH or memory: (for a folder, write file: before it)".to_owned())
}
