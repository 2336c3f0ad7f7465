//! `[[stream]]`: a stream that is made or changed at the start.

use std::time::Duration;

use laneway::Mode;
use laneway::core::StreamSettings;

use super::section::{Section, absent, own_name};
use crate::settings::field::{Field, Form, choice, length, number, put, put_some};

/// A stream as the file wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    /// Its name.
    pub(crate) name: String,
    partitions: Option<u32>,
    mode: Option<Mode>,
    keep: Option<Duration>,
    keep_done: Option<Duration>,
    dead_keep: Option<Duration>,
    max_pending: Option<u64>,
    responder: Option<String>,
    forget_lanes_after: Option<Duration>,
    dedup_window: Option<Duration>,
    dedup_max: Option<u64>,
}

impl Stream {
    /// What it is to be. Partitions and mode never change, so leaving them out leaves them as they are.
    pub(crate) fn settings(&self, there: Option<&StreamSettings>) -> StreamSettings {
        let default = StreamSettings::default();
        let fixed = there.unwrap_or(&default);
        StreamSettings {
            partitions: self.partitions.unwrap_or(fixed.partitions),
            mode: self.mode.unwrap_or(fixed.mode),
            keep: self.keep.unwrap_or(default.keep),
            keep_done: self.keep_done.unwrap_or(default.keep_done),
            dead_keep: self.dead_keep.unwrap_or(default.dead_keep),
            max_pending: self.max_pending,
            responder: self.responder.clone(),
            forget_lanes_after: self.forget_lanes_after,
            dedup_window: self.dedup_window.unwrap_or(default.dedup_window),
            dedup_max: self.dedup_max.unwrap_or(default.dedup_max),
        }
    }
}

impl Section for Stream {
    const NAME: &'static str = "stream";
    type Raw = Self;

    const FIELDS: &'static [Field<Self>] = &[
        Field {
            path: "name",
            form: Form::Text("NAME"),
            default: None,
            about: "Its name. It must be said.",
            read: |to, value| put(&mut to.name, own_name(value)),
        },
        Field {
            path: "partitions",
            form: Form::Number,
            default: Some("16"),
            about: "How many partitions. It cannot be changed later.",
            read: |to, value| put_some(&mut to.partitions, number(value)),
        },
        Field {
            path: "mode",
            form: Form::Choice(&["queue", "latest"]),
            default: Some("queue"),
            about: "Whether every event runs, or only the newest generation of each lane. It cannot be changed later.",
            read: |to, value| {
                put_some(&mut to.mode, choice(value, &[("queue", Mode::Queue), ("latest", Mode::Latest)]))
            },
        },
        Field {
            path: "keep",
            form: Form::Length,
            default: Some("7d"),
            about: "How long events stay readable after every processor passed them.",
            read: |to, value| put_some(&mut to.keep, length(value)),
        },
        Field {
            path: "keep_done",
            form: Form::Length,
            default: Some("1d"),
            about: "How long the end of a job is kept unless its submitter says otherwise.",
            read: |to, value| put_some(&mut to.keep_done, length(value)),
        },
        Field {
            path: "dead_keep",
            form: Form::Length,
            default: Some("30d"),
            about: "How long dead letters are kept.",
            read: |to, value| put_some(&mut to.dead_keep, length(value)),
        },
        Field {
            path: "max_pending",
            form: Form::Number,
            default: None,
            about: "Most events waiting, over all partitions; what goes beyond is refused. Default: no bound.",
            read: |to, value| put_some(&mut to.max_pending, number(value)),
        },
        Field {
            path: "responder",
            form: Form::Text("NAME"),
            default: None,
            about: "The processor that answers jobs whose submitter names none. Default: the stream's only one.",
            read: |to, value| put_some(&mut to.responder, own_name(value)),
        },
        Field {
            path: "forget_lanes_after",
            form: Form::Length,
            default: None,
            about: "How long a lane must have had no event before it is forgotten, once its last one is gone by `keep`. Default: never.",
            read: |to, value| put_some(&mut to.forget_lanes_after, length(value)),
        },
        Field {
            path: "dedup_window",
            form: Form::Length,
            default: Some("1d"),
            about: "How long a `dedup_id` or `Idempotency-Key` is remembered, unless `dedup_max` newer ones have come to its partition since.",
            read: |to, value| put_some(&mut to.dedup_window, length(value)),
        },
        Field {
            path: "dedup_max",
            form: Form::Number,
            default: Some("100000"),
            about: "Most ids that a partition remembers; beyond it the oldest go before their time.",
            read: |to, value| put_some(&mut to.dedup_max, number(value)),
        },
    ];

    fn name(raw: &Self) -> &str {
        &raw.name
    }

    fn check(raw: Self) -> Result<Self, Vec<String>> {
        let mut faults = absent(&[("name", !raw.name.is_empty())]);
        faults.extend(raw.settings(None).check().err().map(|refusal| refusal.to_string()));
        if faults.is_empty() { Ok(raw) } else { Err(faults) }
    }
}
