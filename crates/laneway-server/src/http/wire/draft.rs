//! Events to be.

use std::time::Duration;

use bytes::Bytes;
use laneway::core::event::Dedup;
use laneway::core::store::ObjectWrite;
use laneway::core::{Delay, DelayMode, Draft, Headers, Kind, StartAfter};
use laneway::engine::log::Appending;
use laneway::{EventId, Mode};
use laneway_client::wire::{self, EventDraft};

use super::key::key;
use super::time::{date, length};
use crate::http::error::{Failure, Result};

/// Events of one call to a stream of this mode, and the object that changes with them.
pub(crate) fn appending(events: Vec<EventDraft>, mode: Mode) -> Result<Appending> {
    let several = events.len() > 1;
    let at = |index, failure: Failure| if several { failure.at(index) } else { failure };
    let mut objects = events.iter().enumerate().filter(|(_, event)| event.object.is_some());
    let object = objects.next().map(|(_, event)| event).map(object).transpose()?;
    if let Some((index, _)) = objects.next() {
        let refusal = Failure::value("object", "set again", "set in one event of a call");
        return Err(at(index, refusal));
    }
    for (index, event) in events.iter().enumerate() {
        if event.expect_object_version.is_some() && event.object.is_none() {
            return Err(at(index, expects_no_object()));
        }
    }
    let drafts: Result<Vec<Draft>> = events
        .into_iter()
        .enumerate()
        .map(|(index, event)| draft(event, mode).map_err(|failure| at(index, failure)))
        .collect();
    Ok(Appending { drafts: drafts?, object })
}

/// A version is expected of an object that is not there.
pub(crate) fn expects_no_object() -> Failure {
    Failure::value("expect_object_version", "set", "absent unless object is set")
}

fn object(event: &EventDraft) -> Result<ObjectWrite> {
    let value = event.object.as_ref().map_or("null", |object| object.get());
    let value = (value != "null").then(|| Bytes::copy_from_slice(value.as_bytes()));
    Ok(ObjectWrite { expect: event.expect_object_version, value })
}

/// One event of a stream of this mode.
pub(crate) fn draft(event: EventDraft, mode: Mode) -> Result<Draft> {
    if mode == Mode::Queue {
        for (field, is_set) in [
            ("generation", event.generation.is_some()),
            ("incarnation", event.incarnation.is_some()),
            ("delete", event.delete),
        ] {
            if is_set {
                return Err(Failure::value(field, "set", "absent unless the stream's mode is latest"));
            }
        }
    }
    let key = key(event.key.as_ref().map(AsRef::as_ref), event.key_b64.as_ref().map(AsRef::as_ref))?;
    let data = event.data.as_ref().map_or("null", |data| data.get());
    let data = Bytes::copy_from_slice(data.as_bytes());
    let delay = delay(event.delay.as_deref(), event.run_at.as_deref(), event.delay_mode)?;
    let mut draft = Draft::new(key, Kind::new(event.kind.unwrap_or_default())?, data);
    draft.headers = Headers::new(event.headers)?;
    draft.generation = event.generation;
    draft.incarnation = event.incarnation.unwrap_or_default();
    draft.delete = event.delete;
    draft.delay = delay;
    draft.priority = event.priority.unwrap_or_default();
    draft.ttl = event.ttl.as_deref().map(|ttl| length("ttl", ttl)).transpose()?;
    draft.dedup = event.dedup_id.map(|id| Dedup {
        id: Bytes::from(id),
        body: draft.fingerprint(),
        // As long as the stream says.
        window: Duration::ZERO,
    });
    draft.expect_prev = event.expect_prev.map(|prev| prev.map(EventId));
    draft.origin_seq = event.position;
    draft.check()?;
    Ok(draft)
}

fn delay(delay: Option<&str>, run_at: Option<&str>, mode: Option<wire::DelayMode>) -> Result<Option<Delay>> {
    let until = match (delay, run_at) {
        (Some(_), Some(_)) => {
            return Err(Failure::value("run_at", "set beside delay", "the only one of the two"));
        }
        (Some(delay), None) => StartAfter::Delay(length("delay", delay)?),
        (None, Some(run_at)) => StartAfter::At(date("run_at", run_at)?),
        (None, None) if mode.is_some() => {
            return Err(Failure::value("delay_mode", "set", "absent unless delay or run_at is set"));
        }
        (None, None) => return Ok(None),
    };
    let mode = match mode {
        Some(wire::DelayMode::Hold) => DelayMode::Hold,
        Some(wire::DelayMode::Join) | None => DelayMode::Join,
    };
    Ok(Some(Delay { until, mode }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<Appending> {
        appending(serde_json::from_str(json).unwrap(), Mode::Latest)
    }

    #[test]
    fn every_field_of_an_event_arrives() {
        let appending = of(
            r#"[{"key":"k","type":"t","data":{"a":1},"headers":{"h":"v"},"generation":3,"incarnation":2,"delete":true,
                "delay":"5s","delay_mode":"hold","priority":9,"ttl":"1h","dedup_id":"d","object":{"o":1},
                "expect_object_version":4}]"#,
        )
        .unwrap();
        let draft = &appending.drafts[0];
        assert_eq!(draft.key.as_ref().unwrap().bytes(), &b"k"[..]);
        assert_eq!((draft.kind.as_str(), &draft.data[..]), ("t", &br#"{"a":1}"#[..]));
        assert_eq!(draft.headers.get("h"), Some(&b"v"[..]));
        assert_eq!((draft.generation, draft.incarnation, draft.delete), (Some(3), 2, true));
        let until = StartAfter::Delay(Duration::from_secs(5));
        assert_eq!(draft.delay, Some(Delay { until, mode: DelayMode::Hold }));
        assert_eq!((draft.priority, draft.ttl), (9, Some(Duration::from_secs(3_600))));
        assert_eq!(draft.dedup.as_ref().unwrap().id, "d");
        let object = appending.object.unwrap();
        assert_eq!((object.expect, object.value.as_deref()), (Some(4), Some(&br#"{"o":1}"#[..])));
        assert_eq!(
            of(r#"[{"key":"k","expect_prev":7}]"#).unwrap().drafts[0].expect_prev,
            Some(Some(EventId(7)))
        );
        let removed = of(r#"[{"key":"k","object":null}]"#).unwrap().object.unwrap();
        assert_eq!(removed.value, None);
    }

    #[test]
    fn what_contradicts_itself_is_refused_by_name() {
        for (json, says) in [
            (r#"[{"delay":"5s","run_at":"2026-11-16T18:00:00Z"}]"#, "run_at is set beside delay"),
            (r#"[{"delay_mode":"hold"}]"#, "delay_mode is set"),
            (r#"[{"key":"a"},{"key":"a","expect_object_version":1}]"#, "event 1: expect_object_version"),
            (r#"[{"key":"a","object":1},{"key":"a","object":2}]"#, "event 1: object is set again"),
            (r#"[{"key":"a"},{"key":""}]"#, "event 1: key is \"\""),
            (r#"[{"key":"a","ttl":"soon"}]"#, "ttl is \"soon\""),
            (r#"[{"key":"a","expect_object_version":1}]"#, "expect_object_version is set"),
        ] {
            let told = of(json).unwrap_err().detail;
            assert!(told.contains(says), "{json}: {told}");
            assert!(
                json.contains("},{") || !told.contains("event 0"),
                "a single event has no number: {told}"
            );
        }
        for field in [r#""generation":3"#, r#""incarnation":2"#, r#""delete":true"#] {
            let events = format!(r#"[{{"key":"a",{field}}}]"#);
            let told = appending(serde_json::from_str(&events).unwrap(), Mode::Queue).unwrap_err().detail;
            assert!(told.ends_with("is set, must be absent unless the stream's mode is latest"), "{told}");
        }
    }
}
