//! From a line to an event.

use laneway_client::Json;
use laneway_client::wire::{EventDraft, json};

/// What lines are.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) lines: LinesAre,
    /// Type of events that have none.
    pub(super) kind: Option<String>,
    /// Name of the sending.
    pub(super) name: String,
    /// How its lines are known again.
    pub(super) known: KnownBy,
}

/// How lines that come again are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownBy {
    /// By their number at an origin of the name of the sending, for ever.
    Position,
    /// By a name each, as long as the stream remembers it: for a sending that has no name of its own, so that it leaves
    /// nothing behind.
    DedupId,
}

/// What lines are.
#[derive(Debug)]
pub(super) enum LinesAre {
    /// Whole events.
    Events,
    /// Payloads, all of one lane or of none.
    Payloads { key: Option<String> },
    /// Payloads that name their lane.
    Keyed { field: String },
    /// Text, all of one lane or of none.
    Text { key: Option<String> },
}

impl Reading {
    /// The origin at which its lines have positions.
    pub(super) fn origin(&self) -> Option<&str> {
        (self.known == KnownBy::Position).then_some(self.name.as_str())
    }

    /// The event of a line. It is known by the name of the sending and its number, unless it has a name of its own.
    pub(super) fn draft(&self, number: u64, text: &str) -> Result<EventDraft, String> {
        let mut draft = match &self.lines {
            LinesAre::Events => serde_json::from_str(text).map_err(|error| shortened(&error))?,
            LinesAre::Payloads { key } => {
                EventDraft { key: key.clone(), data: Some(payload(text)?), ..EventDraft::default() }
            }
            LinesAre::Keyed { field } => {
                let key = Some(key_in(field, text)?);
                EventDraft { key, data: Some(payload(text)?), ..EventDraft::default() }
            }
            LinesAre::Text { key } => {
                let data = json(&text).map_err(|error| error.to_string())?;
                EventDraft { key: key.clone(), data: Some(data), ..EventDraft::default() }
            }
        };
        draft.kind = draft.kind.or_else(|| self.kind.clone());
        match self.known {
            KnownBy::Position => draft.position = Some(number),
            KnownBy::DedupId => {
                draft.dedup_id = draft.dedup_id.or_else(|| Some(format!("{}:{number}", self.name)));
            }
        }
        Ok(draft)
    }
}

/// A payload as it was typed.
pub(in crate::commands) fn payload(text: &str) -> Result<Json, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("{} (with --raw it is sent as text)", shortened(&error)))
}

fn key_in(field: &str, text: &str) -> Result<String, String> {
    let payload: serde_json::Value = serde_json::from_str(text).map_err(|error| shortened(&error))?;
    match payload.get(field) {
        Some(serde_json::Value::String(key)) => Ok(key.clone()),
        Some(serde_json::Value::Number(key)) => Ok(key.to_string()),
        Some(_) => Err(format!("field {field:?} is neither text nor a number")),
        None => Err(format!("there is no field {field:?}")),
    }
}

/// Without the list of all that could have been.
fn shortened(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let place = said.find(" at line ").unwrap_or(said.len());
    let said = &said[..place];
    let end = said.find(", expected one of").unwrap_or(said.len());
    format!("it is no event in JSON: {}, column {}", &said[..end], error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: LinesAre, text: &str, expected: Result<&str, &str>) {
        let (kind, name) = (Some("t".to_owned()), "n".to_owned());
        let reading = Reading { lines, kind, name, known: KnownBy::DedupId };
        let draft = reading.draft(7, text).map(|draft| serde_json::to_string(&draft).unwrap());
        match expected {
            Ok(expected) => assert_eq!(draft.as_deref(), Ok(expected)),
            Err(part) => assert!(draft.as_ref().is_err_and(|said| said.contains(part)), "{draft:?}"),
        }
    }

    #[test]
    fn a_line_is_an_event_a_payload_or_text() {
        let keyed = || LinesAre::Keyed { field: "id".to_owned() };
        let whole = r#"{"key":"a","type":"own","data":1,"dedup_id":"mine"}"#;
        check(LinesAre::Events, whole, Ok(whole));
        check(LinesAre::Events, r#"{"kee":"a"}"#, Err("unknown field `kee`, column 6"));
        check(LinesAre::Events, "[1", Err("it is no event in JSON"));
        check(
            keyed(),
            r#"{ "id": 17 }"#,
            Ok(r#"{"key":"17","type":"t","data":{ "id": 17 },"dedup_id":"n:7"}"#),
        );
        check(keyed(), r#"{"id":null}"#, Err("neither text nor a number"));
        check(keyed(), "{}", Err("there is no field \"id\""));
        let text = LinesAre::Text { key: None };
        check(text, "say \"hi\"", Ok(r#"{"type":"t","data":"say \"hi\"","dedup_id":"n:7"}"#));
        check(LinesAre::Payloads { key: Some("k".to_owned()) }, "x", Err("--raw"));
    }

    #[test]
    fn line_of_a_named_sending_has_its_number_as_position() {
        let name = "n".to_owned();
        let reading =
            Reading { lines: LinesAre::Text { key: None }, kind: None, name, known: KnownBy::Position };
        let draft = reading.draft(7, "hi").map(|draft| serde_json::to_string(&draft).unwrap());
        assert_eq!(draft.as_deref(), Ok(r#"{"data":"hi","position":7}"#));
    }
}
