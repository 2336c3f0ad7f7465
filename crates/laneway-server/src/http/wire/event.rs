//! Events that are there.

use std::collections::BTreeMap;

use laneway::core::Headers;
use laneway::core::store::Entry;
use laneway::{EventId, Partition, Ref};
use laneway_client::wire::{self, ClaimedEvent};

use super::key::{Named, named};
use super::payload::payload;
use super::time::date_of;

/// The one name of an event.
pub(crate) fn reference(stream: &str, partition: Partition, id: EventId) -> String {
    Ref { stream: stream.to_owned(), partition, id }.to_string()
}

fn headers(headers: &Headers) -> BTreeMap<String, String> {
    headers
        .iter()
        .map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into_owned()))
        .collect()
}

pub(crate) fn kind(kind: &laneway::core::Kind) -> Option<String> {
    Some(kind.as_str()).filter(|kind| !kind.is_empty()).map(str::to_owned)
}

/// An event that is read back, without where it stands.
pub(crate) fn event(stream: &str, partition: Partition, entry: &Entry) -> wire::Event {
    let event = match entry {
        Entry::Event(event) => event,
        Entry::Superseded { id, key, job, .. } => {
            let Named { key, key_b64 } = named(Some(key));
            let job = job.map(|job| job.id.to_string());
            return wire::Event { key, key_b64, job, ..bare(stream, partition, *id) };
        }
    };
    let Named { key, key_b64 } = named(event.key.as_ref());
    let (data, data_b64) = payload(&event.data);
    wire::Event {
        prev: event.prev.map(|prev| prev.0),
        seq: event.seq.map(|seq| seq.0),
        key,
        key_b64,
        kind: kind(&event.kind),
        data,
        data_b64,
        headers: headers(&event.headers),
        time: Some(date_of(event.time)),
        generation: event.generation,
        incarnation: event.generation.map(|_| event.incarnation),
        delete: event.delete,
        priority: Some(event.priority).filter(|priority| *priority > 0),
        expires_at: event.expires_at.map(date_of),
        job: event.job.map(|job| job.id.to_string()),
        ..bare(stream, partition, event.id)
    }
}

/// Nothing but its name: newest-wins may have dropped the rest.
fn bare(stream: &str, partition: Partition, id: EventId) -> wire::Event {
    wire::Event {
        reference: reference(stream, partition, id),
        partition: partition.0,
        id: id.0,
        prev: None,
        seq: None,
        key: None,
        key_b64: None,
        kind: None,
        data: None,
        data_b64: None,
        headers: BTreeMap::new(),
        time: None,
        generation: None,
        incarnation: None,
        delete: false,
        priority: None,
        expires_at: None,
        job: None,
        processors: Vec::new(),
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
        data,
        data_b64,
        headers: headers(&event.headers),
        job: event.job.map(|job| job.id.to_string()),
    }
}
