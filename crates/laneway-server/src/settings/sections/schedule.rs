//! `[[schedule]]`: events that send themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use laneway::Timestamp;
use laneway::core::{Headers, Key, Kind};
use laneway::engine::upkeep::schedule::{CatchUp, Firing, Overlap, Schedule as Stored, Spec};
use serde_json::Value;

use super::section::{Section, absent, own_name};
use crate::settings::field::{Field, Form, choice, length, put, put_some, text};

/// A schedule as the file wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedule(pub(crate) Stored);

/// The same while it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawSchedule {
    name: String,
    stream: String,
    cron: Option<String>,
    zone: Option<String>,
    every: Option<Duration>,
    key: Option<String>,
    kind: Option<String>,
    data: Option<Value>,
    headers: BTreeMap<String, String>,
    processor: Option<String>,
    overlap: Overlap,
    catch_up: CatchUp,
}

const OVERLAPS: [(&str, Overlap); 3] =
    [("queue", Overlap::Queue), ("skip", Overlap::Skip), ("allow", Overlap::Allow)];

impl Section for Schedule {
    const NAME: &'static str = "schedule";
    type Raw = RawSchedule;

    const FIELDS: &'static [Field<RawSchedule>] = &[
        Field {
            path: "name",
            form: Form::Text("NAME"),
            default: None,
            about: "Its name. It must be said.",
            read: |to, value| put(&mut to.name, own_name(value)),
        },
        Field {
            path: "stream",
            form: Form::Text("NAME"),
            default: None,
            about: "The stream that gets the events. It must be said.",
            read: |to, value| put(&mut to.stream, own_name(value)),
        },
        Field {
            path: "cron",
            form: Form::Text("MIN HOUR DAY MONTH WEEKDAY"),
            default: None,
            about: "When the clocks of the zone match, with seconds before the minutes if there are six fields. This or `every`.",
            read: |to, value| put_some(&mut to.cron, text(value)),
        },
        Field {
            path: "zone",
            form: Form::Text("ZONE"),
            default: Some("UTC"),
            about: "Whose clocks `cron` means, such as `Europe/Berlin`.",
            read: |to, value| put_some(&mut to.zone, text(value)),
        },
        Field {
            path: "every",
            form: Form::Length,
            default: None,
            about: "Again and again after this length of real time. This or `cron`.",
            read: |to, value| put_some(&mut to.every, length(value)),
        },
        Field {
            path: "key",
            form: Form::Text("KEY"),
            default: None,
            about: "The lane. Default: one named after the schedule, or none where firings may overlap.",
            read: |to, value| put_some(&mut to.key, text(value)),
        },
        Field {
            path: "type",
            form: Form::Text("TYPE"),
            default: None,
            about: "The events' type. Default: none.",
            read: |to, value| put_some(&mut to.kind, text(value)),
        },
        Field {
            path: "data",
            form: Form::Any,
            default: None,
            about: "The events' data; a table becomes a JSON object. Default: null.",
            read: |to, value| put_some(&mut to.data, Ok(value.clone())),
        },
        Field {
            path: "headers",
            form: Form::Any,
            default: None,
            about: "The events' headers, as a table of texts. Default: none.",
            read: |to, value| put(&mut to.headers, headers(value)),
        },
        Field {
            path: "processor",
            form: Form::Text("NAME"),
            default: None,
            about: "Makes every firing a job that this processor answers. Default: plain events.",
            read: |to, value| put_some(&mut to.processor, text(value)),
        },
        Field {
            path: "overlap",
            form: Form::Choice(&["queue", "skip", "allow"]),
            default: Some("queue"),
            about: "When the firing before has not ended: wait behind it, pass over, or run beside it.",
            read: |to, value| put(&mut to.overlap, choice(value, &OVERLAPS)),
        },
        Field {
            path: "catch_up",
            form: Form::Text("none|last|NUMBER"),
            default: Some("last"),
            about: "Firings that nobody was there for: none, only the last, or up to so many.",
            read: |to, value| put(&mut to.catch_up, catch_up(value)),
        },
    ];

    fn name(raw: &RawSchedule) -> &str {
        &raw.name
    }

    fn check(raw: RawSchedule) -> Result<Self, Vec<String>> {
        let mut faults = absent(&[("name", !raw.name.is_empty()), ("stream", !raw.stream.is_empty())]);
        let checked = spec(&raw).and_then(|spec| stored(raw, spec));
        match checked {
            Ok(schedule) if faults.is_empty() => Ok(Self(schedule)),
            checked => {
                faults.extend(checked.err());
                Err(faults)
            }
        }
    }
}

fn spec(raw: &RawSchedule) -> Result<Spec, String> {
    let zone = raw.zone.clone();
    match (raw.cron.clone(), raw.every) {
        (Some(expression), None) => {
            Ok(Spec::Cron { expression, zone: zone.unwrap_or_else(|| "UTC".to_owned()) })
        }
        (None, Some(_)) if zone.is_some() => Err("zone is only for cron: every counts real time".to_owned()),
        (None, Some(length)) => Ok(Spec::Every { length, anchor: Timestamp(0) }),
        _ => Err("must have one of cron and every".to_owned()),
    }
}

fn stored(raw: RawSchedule, spec: Spec) -> Result<Stored, String> {
    let told = |refusal: laneway::core::Refusal| refusal.to_string();
    let data = raw.data.unwrap_or_default();
    let firing = Firing {
        key: raw.key.map(Key::new).transpose().map_err(told)?,
        kind: Kind::new(raw.kind.unwrap_or_default()).map_err(told)?,
        data: Bytes::from(data.to_string()),
        headers: Headers::new(&raw.headers).map_err(told)?,
        processor: raw.processor,
        ..Firing::new(raw.stream)
    };
    let (overlap, catch_up) = (raw.overlap, raw.catch_up);
    let schedule =
        Stored { name: raw.name, spec, overlap, catch_up, paused: false, since: Timestamp(0), firing };
    schedule.check().map_err(told)?;
    Ok(schedule)
}

fn headers(value: &Value) -> Result<BTreeMap<String, String>, String> {
    let wrong = || "must be a table of texts".to_owned();
    let entries = value.as_object().ok_or_else(wrong)?.iter();
    entries.map(|(name, value)| Ok((name.clone(), value.as_str().ok_or_else(wrong)?.to_owned()))).collect()
}

fn catch_up(value: &Value) -> Result<CatchUp, String> {
    match value {
        Value::String(word) if word == "none" => Ok(CatchUp::None),
        Value::String(word) if word == "last" => Ok(CatchUp::Last),
        Value::Number(_) => Ok(CatchUp::All { max: crate::settings::field::number(value)? }),
        _ => Err("must be \"none\", \"last\", or a number".to_owned()),
    }
}
