//! CloudEvents as events to be.
//!
//! | attribute | becomes |
//! | --- | --- |
//! | `partitionkey`, else `subject` | the key |
//! | `type` | the type |
//! | `source` and `id` | the dedup id `SOURCE ID`, and headers |
//! | `data`, `data_base64` | the data |
//! | `traceparent`, `tracestate` | headers of that name |
//! | everything else | a header named `ce-` and the attribute |

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use laneway::Mode;
use laneway::core::Draft;
use laneway_client::wire::{CloudEvent, EventDraft};
use serde_json::Value;

use super::draft::draft;
use crate::http::error::{Failure, Result};

/// The only version there is.
const VERSION: &str = "1.0";
const KEY: &str = "partitionkey";
/// Attributes whose headers have no prefix: others read them too.
const PLAIN: [&str; 2] = ["traceparent", "tracestate"];
/// JSON needs no header that says so.
const JSON: &str = "application/json";

/// A CloudEvent as an event to be.
pub(crate) fn cloud_event(event: CloudEvent) -> Result<Draft> {
    if event.specversion != VERSION {
        return Err(Failure::value("specversion", format!("{:?}", event.specversion), "\"1.0\""));
    }
    for (name, value) in [("id", &event.id), ("source", &event.source), ("type", &event.kind)] {
        if value.is_empty() {
            return Err(Failure::value(name, "\"\"", "a text that is not empty"));
        }
    }
    let mut told = EventDraft {
        kind: Some(event.kind),
        data: event.data,
        // A source is a URI and has no space, so no other pair has this text.
        dedup_id: Some(format!("{} {}", event.source, event.id)),
        ..EventDraft::default()
    };
    let mut header = |name: &str, value: String| {
        let prefix = if PLAIN.contains(&name) { "" } else { "ce-" };
        told.headers.insert(format!("{prefix}{name}"), value);
    };
    header("id", event.id);
    header("source", event.source);
    let mut key = None;
    for (name, value) in event.attributes {
        let is_name = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !is_name || name.is_empty() {
            return Err(Failure::value("attribute", format!("{name:?}"), "lower-case letters and digits"));
        }
        let value = match value {
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                return Err(Failure::value(&name, "an array or object", "a text, a number or a truth"));
            }
        };
        match name.as_str() {
            KEY => key = Some(value),
            "datacontenttype" if value == JSON => {}
            _ => header(&name, value),
        }
    }
    if let Some(subject) = &event.subject {
        header("subject", subject.clone());
    }
    told.key = key.or(event.subject);
    let has_data = told.data.is_some();
    // Which state of a thing it is, a CloudEvent does not say: the newest one.
    let mut draft = draft(told, Mode::Latest)?;
    if let Some(base64) = event.data_base64 {
        if has_data {
            return Err(Failure::value("data_base64", "set beside data", "the only one of the two"));
        }
        let data = STANDARD.decode(&base64).map_err(|error| {
            Failure::value("data_base64", format!("no base64 ({error})"), "standard base64 with padding")
        })?;
        with_data(&mut draft, Bytes::from(data))?;
    }
    Ok(draft)
}

/// Gives an event data that is no JSON.
pub(crate) fn with_data(draft: &mut Draft, data: Bytes) -> Result<()> {
    draft.data = data;
    let body = draft.fingerprint();
    if let Some(dedup) = &mut draft.dedup {
        dedup.body = body;
    }
    Ok(draft.check()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Draft> {
        cloud_event(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn attributes_have_their_places() {
        let draft = of(
            r#"{"specversion":"1.0","id":"7","source":"/shop","type":"paid","subject":"ann","time":"2026-11-16T18:00:00Z",
                "datacontenttype":"application/json","traceparent":"00-1-2-01","n":3,"ok":true,"data":{"a" : 1}}"#,
        )
        .unwrap();
        assert_eq!((draft.key.unwrap().bytes(), draft.kind.as_str()), (&b"ann"[..], "paid"));
        assert_eq!((&draft.data[..], &draft.dedup.unwrap().id[..]), (&br#"{"a" : 1}"#[..], &b"/shop 7"[..]));
        let headers: Vec<_> =
            draft.headers.iter().map(|(name, value)| (name, std::str::from_utf8(value).unwrap())).collect();
        let expected = [
            ("ce-id", "7"),
            ("ce-n", "3"),
            ("ce-ok", "true"),
            ("ce-source", "/shop"),
            ("ce-subject", "ann"),
            ("ce-time", "2026-11-16T18:00:00Z"),
            ("traceparent", "00-1-2-01"),
        ];
        assert_eq!(headers, expected);
        let keyed = r#"{"specversion":"1.0","id":"7","source":"/s","type":"t","subject":"a","partitionkey":"p","data_base64":"AP8="}"#;
        let draft = of(keyed).unwrap();
        assert_eq!((draft.key.unwrap().bytes(), &draft.data[..]), (&b"p"[..], &b"\x00\xff"[..]));
    }

    #[test]
    fn what_is_no_cloud_event_is_refused_by_name() {
        for (said, says) in [
            (r#""specversion":"0.3","id":"7","source":"/s","type":"t""#, "specversion is \"0.3\""),
            (r#""specversion":"1.0","id":"","source":"/s","type":"t""#, "id is \"\""),
            (r#""specversion":"1.0","id":"7","source":"/s","type":"t","Odd":1"#, "attribute is \"Odd\""),
            (r#""specversion":"1.0","id":"7","source":"/s","type":"t","odd":[]"#, "odd is an array"),
            (
                r#""specversion":"1.0","id":"7","source":"/s","type":"t","data":1,"data_base64":"""#,
                "beside data",
            ),
            (r#""specversion":"1.0","id":"7","source":"/s","type":"t","data_base64":"!""#, "no base64"),
        ] {
            let told = of(&format!("{{{said}}}")).unwrap_err().detail;
            assert!(told.contains(says), "{said}: {told}");
        }
    }
}
