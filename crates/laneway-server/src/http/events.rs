//! Events: append them, read them back.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use laneway::core::{Refusal, StoreError, StreamInfo};
use laneway::engine::log::{AppendError, Appending, Sent};
use laneway::engine::observe::{EventView, LookError};
use laneway::{EventId, Partition, Ref};
use laneway_client::wire;

use super::answer::Json;
use super::body::Many;
use super::code::Code;
use super::error::{Each, Failure, Result};
use super::query::Query;
use super::receipt::receipt;
use super::{append_lines, body, cloud_events, follow, follow_wish, lines, wire as convert};
use crate::node::Node;

/// Most events of a page, and how many there are unless it is said.
const PAGE_MAX: usize = 1_000;
const PAGE: usize = 100;

/// Appends events. Those of one partition are appended together or not at all, except lines, of which each stands alone.
///
/// The body is one event, an array of up to 1,000, or CloudEvents 1.0 (one, a batch, or one in headers with its data as the
/// body). With `application/x-ndjson` it is one event per line, as many as there are: every line is answered as soon as it
/// is durable, so read the answers while you send.
///
/// With `?origin=NAME` every event has a `position`, such as the number of its line in a file. A partition takes only
/// positions above the highest it has of that origin, whenever that was; the others are answered as duplicates. So whoever
/// sends in order may begin again anywhere after a failure.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/events", tag = "events",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("origin" = Option<String>, Query, description = "the name of the source at which the events have positions, up to 256 bytes"),
    ),
    request_body(content(
        (wire::EventsBody = "application/json"),
        (wire::EventDraft = "application/x-ndjson"),
        (wire::CloudEvent = "application/cloudevents+json"),
        (Vec<wire::CloudEvent> = "application/cloudevents-batch+json"),
    ), description = "one event, an array of up to 1,000, lines of events, or CloudEvents"),
    responses(
        (status = 200, content((wire::LineReceipt = "application/x-ndjson")), description = "lines: one answer per line"),
        (status = 201, body = wire::Appended, description = "all were appended, or had been before"),
        (status = 207, body = wire::Appended, description = "some were not; each says why"),
    ),
)]
pub(super) async fn append(
    State(node): State<Node>,
    Path(stream): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let origin = origin(query.as_deref())?;
    let media_type = body::media_type(&headers);
    if cloud_events::is_meant(media_type.as_deref(), &headers) {
        if origin.is_some() {
            return Err(Failure::value(
                "query origin",
                "set",
                "absent beside CloudEvents, which have no position",
            ));
        }
        let (drafts, many) = cloud_events::read(media_type.as_deref(), &headers, body).await?;
        stream_info(&node, &stream).await?;
        return append_all(&node, &stream, Appending { drafts, object: None }, None, many).await;
    }
    if media_type.as_deref() == Some(lines::MEDIA_TYPE) {
        let info = stream_info(&node, &stream).await?;
        return Ok(append_lines::answer(node, &info, origin, headers, body));
    }
    let (events, many) = body::objects(&headers, body).await?;
    let mode = stream_info(&node, &stream).await?.settings.mode;
    append_all(&node, &stream, convert::appending(events, mode)?, origin.as_deref(), many).await
}

/// The origin at which the events of a call have positions.
fn origin(query: Option<&str>) -> Result<Option<String>> {
    let query = Query::read(query, &["origin"])?;
    let name = query.bytes("origin").map(|name| String::from_utf8(name.to_vec()));
    name.transpose().map_err(|_| Failure::value("query origin", "other bytes", "UTF-8"))
}

/// Appends drafts, with positions if there is an origin.
pub(super) async fn append_drafts(
    node: &Node,
    stream: &str,
    appending: Appending,
    origin: Option<&str>,
) -> Result<Vec<Sent>, AppendError> {
    let producer = node.engine().producer();
    if let Some(origin) = origin {
        return producer.append_from(origin, stream, appending).await;
    }
    if let Some(index) = appending.drafts.iter().position(|draft| draft.origin_seq.is_some()) {
        let refusal = Refusal::new("position", "set", "absent unless the query names an origin");
        return Err(AppendError::Refused { index, refusal });
    }
    producer.append(stream, appending).await
}

/// The stream that is appended to.
async fn stream_info(node: &Node, stream: &str) -> Result<Arc<StreamInfo>> {
    Failure::own_stream("stream", stream)?;
    Ok(node.engine().catalogue().stream(stream).await?)
}

async fn append_all(
    node: &Node,
    stream: &str,
    appending: Appending,
    origin: Option<&str>,
    many: Many,
) -> Result<Response> {
    let sent = append_drafts(node, stream, appending, origin).await.map_err(|error| match error {
        // A single event has no number that anybody gave it.
        AppendError::Refused { refusal, .. } if many == Many::One => refusal.into(),
        error => Failure::from(error),
    })?;
    let durability = sent.iter().find_map(|sent| sent.durability);
    let object_version = sent.iter().find_map(|sent| sent.object_version);
    let failed: Vec<Failure> = sent
        .iter()
        .filter_map(|sent| sent.receipt.as_ref().err().map(|error| Failure::from(&**error)))
        .collect();
    let all_failed = failed.len() == sent.len();
    let events: Vec<wire::EventReceipt> = sent.into_iter().map(|sent| receipt(stream, sent)).collect();
    if let Some(first) = failed.first()
        && all_failed
    {
        let each = (many == Many::Array).then_some(Each::Events { events });
        return Err(Failure { each, ..first.clone() });
    }
    let status = if failed.is_empty() { StatusCode::CREATED } else { StatusCode::MULTI_STATUS };
    let durability = durability.map(|durability| durability.to_string()).unwrap_or_default();
    Ok((status, Json(wire::Appended { events, durability, object_version })).into_response())
}

/// Events of one partition after an id, in order, with their status per processor; or, with `Accept: text/event-stream`,
/// events as they come.
///
/// A follower gets every event of one partition, of all partitions or of one lane, each with an `id` that carries its place:
/// whoever comes back with the last one as `Last-Event-ID` goes on there. Events of type `trimmed` say that what came next
/// went by retention, `dropped` that the follower took nothing for too long, `end` why it is over.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/events", tag = "events",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("partition" = Option<u32>, Query, description = "which partition; a follower without one gets all"),
        ("after" = Option<String>, Query, description = "begin after this id; default 0. A follower begins with what comes from now on unless it says where: with an id of one partition, with 0, or with the id of an event that was followed"),
        ("limit" = Option<usize>, Query, description = "page: at most so many, 1 to 1,000; default 100"),
        ("key" = Option<String>, Query, description = "follower: only events of the lane with this key"),
        ("key_b64" = Option<String>, Query, description = "follower: the key in base64, when it is no UTF-8"),
        ("heartbeat" = Option<String>, Query, description = "follower: how often something is sent when nothing comes, 1s to 1m; default 15s"),
        ("Last-Event-ID" = Option<String>, Header, description = "follower: the last id that was seen; goes before `after`"),
        ("Accept" = Option<String>, Header, description = "`text/event-stream` to follow"),
    ),
    responses((status = 200, content((wire::EventPage = "application/json"), (String = "text/event-stream")))),
)]
pub(super) async fn page(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response> {
    if follow::is_meant(&headers) {
        let info = node.engine().catalogue().stream(&stream).await?;
        let wish = follow_wish::read(&node, &info, query.as_deref(), &headers).await?;
        return follow::answer(&node, &info, wish);
    }
    let query = Query::read(query.as_deref(), &["partition", "after", "limit"])?;
    let info = node.engine().catalogue().stream(&stream).await?;
    let limits = format!("0 to {}", info.settings.partitions - 1);
    let partition = query
        .number("partition", &limits)?
        .ok_or_else(|| Failure::value("query partition", "absent", &limits))?;
    let partition = partition_of(&info, "query partition", partition)?;
    let after = query.number("after", "an id")?.unwrap_or_default();
    let limit = query.number("limit", "1 to 1000")?.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Failure::value("query limit", limit, "1 to 1000"));
    }
    let page = node.engine().looker().events(&stream, partition, EventId(after), limit).await?;
    let next = Some(page.after).filter(|after| *after < page.head).map(|after| after.0);
    let events = page.events.iter().map(convert::event).collect();
    Ok(Json(wire::EventPage { events, head: page.head.0, next }).into_response())
}

/// One event, with its status per processor.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/events/{partition}/{id}", tag = "events",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("partition" = u32, Path, description = "its partition"),
        ("id" = u64, Path, description = "its id"),
    ),
    responses((status = 200, body = wire::Event)),
)]
pub(super) async fn one(
    State(node): State<Node>,
    Path((stream, partition, id)): Path<(String, String, String)>,
) -> Result<Json<wire::Event>> {
    let info = node.engine().catalogue().stream(&stream).await?;
    let number =
        partition.parse().map_err(|_| Failure::value("partition", format!("{partition:?}"), "a number"))?;
    let partition = partition_of(&info, "partition", number)?;
    let id: u64 = id.parse().map_err(|_| Failure::value("id", format!("{id:?}"), "a number"))?;
    let reference = Ref { stream, partition, id: EventId(id) };
    Ok(Json(convert::event(&found(&node, &reference).await?)))
}

/// An event by its name.
pub(super) async fn found(node: &Node, reference: &Ref) -> Result<EventView> {
    match node.engine().looker().event(reference).await {
        Ok(event) => Ok(event),
        Err(LookError::Store(StoreError::NotFound { what })) => {
            Err(Failure::new(Code::EventNotFound, format!("{what} does not exist")))
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn partition_of(info: &StreamInfo, field: &str, number: u32) -> Result<Partition> {
    let partitions = info.settings.partitions;
    if number >= partitions {
        return Err(Failure::value(field, number, format!("0 to {}", partitions - 1)));
    }
    Ok(Partition(number))
}
