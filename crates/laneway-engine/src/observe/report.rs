//! Reports: what an operator wants to be told goes to the system stream `_laneway`, in the very commit in which it
//! happens, so that nothing is told that did not happen and nothing that happened is left out.

use laneway_core::store::Append;
use laneway_core::{Draft, Event, EventId, JobId, Key, Kind, Partition, Shard, Store, StreamId};

use crate::log::{Catalogue, Lost};

/// Name of the stream that reports go to.
pub const SYSTEM_STREAM: &str = "_laneway";

/// Bytes of a refused emit's data that its report carries.
const DATA_BYTES_MAX: usize = 512;

/// Something worth telling.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Report<'a> {
    /// A lane stands until somebody decides.
    LaneParked { head: EventId, key: Option<&'a Key>, cause: &'a str, attempts: u32 },
    /// A job ended without being done.
    JobFailed { event: &'a Event, job: JobId, cause: &'a str },
    /// An emit was refused by its stream for what it is, after it was committed; the beginning of its data goes with the
    /// report, as text.
    EmitRefused { lost: &'a Lost },
    /// A commit was refused: somebody else owns the seat.
    SeatFenced { error: &'a str },
    /// A processor keeps the store from deleting old files.
    StoreHeld { event: EventId, bytes: u64, by: &'a str },
    /// The loop of a seat came to a bad end by a fault of its own, and begins again.
    SeatFailed { fault: &'a str },
}

/// A report as an event. Its key is the lane it is about, so that reports of one lane keep their order.
pub(crate) fn report(report: Report<'_>, processor: &str, stream: &str, shard: Shard) -> Draft {
    let mut fields = vec![
        ("stream", stream.to_owned()),
        ("processor", processor.to_owned()),
        ("partition", shard.partition.to_string()),
    ];
    let (kind, event, key) = match report {
        Report::LaneParked { head, key, cause, attempts } => {
            fields.extend([("cause", cause.to_owned()), ("attempts", attempts.to_string())]);
            ("lane.parked", Some(head), key)
        }
        Report::JobFailed { event, job, cause } => {
            fields.extend([("cause", cause.to_owned()), ("job", job.to_string())]);
            ("job.failed", Some(event.id), event.key.as_ref())
        }
        Report::EmitRefused { lost } => {
            let Lost { stream, draft, why } = lost;
            let data = &draft.data[..draft.data.len().min(DATA_BYTES_MAX)];
            fields.extend([
                ("to", stream.to_string()),
                ("type", draft.kind.as_str().to_owned()),
                ("why", why.clone()),
                ("data", String::from_utf8_lossy(data).into_owned()),
            ]);
            ("emit.refused", None, draft.key.as_ref())
        }
        Report::SeatFenced { error } => {
            fields.push(("error", error.to_owned()));
            ("seat.fenced", None, None)
        }
        Report::SeatFailed { fault } => {
            fields.push(("fault", fault.to_owned()));
            ("seat.failed", None, None)
        }
        Report::StoreHeld { event, bytes, by } => {
            fields.extend([("bytes", bytes.to_string()), ("by", by.to_owned())]);
            ("store.held", Some(event), None)
        }
    };
    if let Some(event) = event {
        fields.push(("event", event.to_string()));
    }
    if let Some(key) = key {
        fields.push(("key", key.to_string()));
    }
    let seat = || Key::new(format!("{stream}/{}", shard.partition)).expect("a short key");
    let about = key.cloned().unwrap_or_else(seat);
    Draft::new(Some(about), Kind::new(kind).expect("a short type"), json(&fields))
}

/// Appends a report outside of a commit.
///
/// # Errors
/// Returns why the append failed.
pub(crate) async fn send_report(
    store: &dyn Store,
    catalogue: &Catalogue,
    system: StreamId,
    draft: Draft,
) -> Result<(), String> {
    let info = catalogue.stream_of(system).await.map_err(|error| error.to_string())?;
    let append = Append {
        shard: info.shard(Partition(0)),
        incarnation: catalogue.life(),
        layout: info.layout,
        origin: None,
        drafts: vec![draft],
        object: None,
    };
    let sent = |incarnation| store.append(Append { incarnation, ..append.clone() });
    catalogue.in_this_life(sent).await.map(|_| ()).map_err(|error| error.to_string())
}

/// An object of texts.
fn json(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\":\"{}\"", escaped(value))).collect();
    format!("{{{}}}", fields.join(","))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            control if u32::from(control) < 0x20 => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(control)))
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_json_wants_them() {
        let fields = [("cause", "said \"no\"\n\u{1}\\".to_owned())];
        assert_eq!(json(&fields), "{\"cause\":\"said \\\"no\\\"\\n\\u0001\\\\\"}");
    }
}
