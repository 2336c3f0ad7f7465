//! Events that are there.

use std::collections::BTreeMap;

use laneway::core::Headers;
use laneway::engine::observe::{EventStatus, EventView};
use laneway::{EventId, Partition, Ref};
use laneway_client::wire::{self, ClaimedEvent};

use super::key::{Named, named};
use super::payload::payload;
use super::time::date_of;

/// The one name of an event.
pub(crate) fn reference(stream: &str, partition: Partition, id: EventId) -> String {
    Ref { stream: stream.to_owned(), partition, id }.to_string()
}

/// Headers as text.
pub(crate) fn header_texts(headers: &Headers) -> BTreeMap<String, String> {
    headers
        .iter()
        .map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into_owned()))
        .collect()
}

pub(crate) fn kind(kind: &laneway::core::Kind) -> Option<String> {
    Some(kind.as_str()).filter(|kind| !kind.is_empty()).map(str::to_owned)
}

/// An event that is read back, and how it stands.
pub(crate) fn event(view: &EventView) -> wire::Event {
    let event = &view.event;
    let Named { key, key_b64 } = named(event.key.as_ref());
    let (data, data_b64) = payload(&event.data);
    wire::Event {
        reference: view.reference.to_string(),
        partition: view.reference.partition.0,
        id: event.id.0,
        prev: event.prev.map(|prev| prev.0),
        seq: event.seq.map(|seq| seq.0),
        key,
        key_b64,
        kind: kind(&event.kind),
        data,
        data_b64,
        headers: header_texts(&event.headers),
        time: date_of(event.time),
        generation: event.generation,
        incarnation: event.generation.map(|_| event.incarnation),
        delete: event.delete,
        priority: Some(event.priority).filter(|priority| *priority > 0),
        expires_at: event.expires_at.map(date_of),
        job: event.job.map(|job| job.id.to_string()),
        processors: view.statuses.iter().map(status).collect(),
    }
}

fn status(status: &EventStatus) -> wire::EventStatus {
    let reason = String::from_utf8_lossy(&status.reason).into_owned();
    wire::EventStatus {
        processor: status.processor.clone(),
        status: status.status.to_string(),
        reason: Some(reason).filter(|reason| !reason.is_empty()),
        winner: status.winner.map(|winner| winner.0),
    }
}

/// An event for a worker.
pub(crate) fn claimed(stream: &str, partition: Partition, event: &laneway::core::Event) -> ClaimedEvent {
    let (data, data_b64) = payload(&event.data);
    ClaimedEvent {
        reference: reference(stream, partition, event.id),
        id: event.id.0,
        prev: event.prev.map(|prev| prev.0),
        seq: event.seq.map(|seq| seq.0),
        kind: kind(&event.kind),
        generation: event.generation,
        incarnation: event.generation.map(|_| event.incarnation),
        delete: event.delete,
        data,
        data_b64,
        headers: header_texts(&event.headers),
        job: event.job.map(|job| job.id.to_string()),
    }
}

/// What was done last in a lane, for a worker.
pub(crate) fn last_done(last: &laneway::engine::handler::LastDone) -> wire::LastDone {
    let (data, data_b64) = last.data.as_ref().map_or((None, None), |data| payload(data));
    wire::LastDone {
        id: last.id.0,
        generation: last.generation,
        incarnation: last.incarnation,
        data,
        data_b64,
    }
}
