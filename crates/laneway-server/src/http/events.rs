//! Events: append them, read them back.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use laneway::core::store::Receipt;
use laneway::core::{StoreError, StreamInfo};
use laneway::engine::log::{AppendError, Sent};
use laneway::engine::observe::{EventView, LookError};
use laneway::{EventId, Partition, Ref};
use laneway_client::wire::{self, AppendedAs};

use super::answer::Json;
use super::body::Many;
use super::code::Code;
use super::error::{Failure, Result};
use super::query::Query;
use super::{body, wire as convert};
use crate::node::Node;

/// Most events of a page, and how many there are unless it is said.
const PAGE_MAX: usize = 1_000;
const PAGE: usize = 100;

/// Appends one event or an array of them. Those of one partition are appended together or not at all.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/events", tag = "events",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body(content = wire::EventDraft, description = "one event, or an array of up to 1,000"),
    responses(
        (status = 201, body = wire::Appended, description = "all were appended, or had been before"),
        (status = 207, body = wire::Appended, description = "some were not; each says why"),
    ),
)]
pub(super) async fn append(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let (events, many) = body::objects(&headers, body).await?;
    Failure::own_stream("stream", &stream)?;
    let mode = node.engine().catalogue().stream(&stream).await?.settings.mode;
    let appending = convert::appending(events, mode)?;
    let sent = node.engine().producer().append(&stream, appending).await.map_err(|error| match error {
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
    let events: Vec<wire::EventReceipt> = sent.into_iter().map(|sent| receipt(&stream, sent)).collect();
    if let Some(first) = failed.first()
        && all_failed
    {
        let events = (many == Many::Array).then_some(events);
        return Err(Failure { events, ..first.clone() });
    }
    let status = if failed.is_empty() { StatusCode::CREATED } else { StatusCode::MULTI_STATUS };
    let durability = durability.map(|durability| durability.to_string()).unwrap_or_default();
    Ok((status, Json(wire::Appended { events, durability, object_version })).into_response())
}

fn receipt(stream: &str, sent: Sent) -> wire::EventReceipt {
    let mut told = wire::EventReceipt {
        append: AppendedAs::New,
        reference: None,
        partition: sent.partition.0,
        id: None,
        prev: None,
        seq: None,
        timer: None,
        due_at: None,
        newest_generation: None,
        problem: None,
    };
    match sent.receipt {
        Ok(receipt) => place(&mut told, stream, sent.partition, &receipt),
        Err(error) => {
            let conflict = matches!(*error, StoreError::Conflict(_));
            told.append = if conflict { AppendedAs::Conflict } else { AppendedAs::Refused };
            told.problem = Some(Failure::from(&*error).problem());
        }
    }
    told
}

/// Where the event is, or was at its first append.
fn place(told: &mut wire::EventReceipt, stream: &str, partition: Partition, receipt: &Receipt) {
    match receipt {
        Receipt::New { id, prev, seq, .. } => {
            told.reference = Some(convert::reference(stream, partition, *id));
            told.id = Some(id.0);
            told.prev = prev.map(|prev| prev.0);
            told.seq = seq.map(|seq| seq.0);
        }
        Receipt::Duplicate { first } => {
            if let Some(first) = first {
                place(told, stream, partition, first);
            }
            told.append = AppendedAs::Duplicate;
        }
        Receipt::Stale { generation, .. } => {
            told.append = AppendedAs::Stale;
            told.newest_generation = Some(*generation);
        }
        Receipt::Scheduled { ticket, due_at, .. } => {
            told.append = AppendedAs::Scheduled;
            told.timer = Some(*ticket);
            told.due_at = Some(convert::date_of(*due_at));
        }
    }
}

/// Events of one partition after an id, in order, with their status per processor.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/events", tag = "events",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("partition" = u32, Query, description = "which partition"),
        ("after" = Option<u64>, Query, description = "begin after this id; default 0"),
        ("limit" = Option<usize>, Query, description = "at most so many, 1 to 1,000; default 100"),
    ),
    responses((status = 200, body = wire::EventPage)),
)]
pub(super) async fn page(
    State(node): State<Node>,
    Path(stream): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<wire::EventPage>> {
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
    Ok(Json(wire::EventPage { events, head: page.head.0, next }))
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

fn partition_of(info: &StreamInfo, field: &str, number: u32) -> Result<Partition> {
    let partitions = info.settings.partitions;
    if number >= partitions {
        return Err(Failure::value(field, number, format!("0 to {}", partitions - 1)));
    }
    Ok(Partition(number))
}
