//! Events.

use http::Method;

use super::{Client, dedup_id, escaped};
use crate::error::ClientError;
use crate::wire::{Appended, Event, EventDraft, EventPage};

impl Client {
    /// Appends events; the answers are in their order. Those without a `dedup_id` get one.
    pub async fn append(&self, stream: &str, events: &[EventDraft]) -> Result<Appended, ClientError> {
        let named = events.iter().map(|event| EventDraft {
            dedup_id: event.dedup_id.clone().or_else(|| Some(dedup_id())),
            ..event.clone()
        });
        let body = serde_json::to_vec(&named.collect::<Vec<_>>())?;
        self.send_once_done(&format!("/v1/streams/{}/events", escaped(stream)), &[], &body).await?.read()
    }

    /// Appends events that have positions at an origin, such as the lines of a file. The same may be sent again at any time,
    /// as long as positions are sent in order: what a partition has of that origin is not taken twice.
    pub async fn append_from(
        &self,
        origin: &str,
        stream: &str,
        events: &[EventDraft],
    ) -> Result<Appended, ClientError> {
        let path = format!("/v1/streams/{}/events?origin={}", escaped(stream), escaped(origin));
        self.send_once_done(&path, &[], &serde_json::to_vec(events)?).await?.read()
    }

    /// Events of one partition after an id, in order.
    pub async fn events(
        &self,
        stream: &str,
        partition: u32,
        after: u64,
        limit: usize,
    ) -> Result<EventPage, ClientError> {
        let query = format!("partition={partition}&after={after}&limit={limit}");
        self.call(Method::GET, &format!("/v1/streams/{}/events?{query}", escaped(stream))).await
    }

    /// One event.
    pub async fn event(&self, stream: &str, partition: u32, id: u64) -> Result<Event, ClientError> {
        self.call(Method::GET, &format!("/v1/streams/{}/events/{partition}/{id}", escaped(stream))).await
    }
}
