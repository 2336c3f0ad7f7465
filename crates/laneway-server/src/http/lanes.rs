//! Lanes: look at one, and steer it.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use laneway::core::store::{Entry, Read, ReadFrom};
use laneway::core::{Key, StreamInfo};
use laneway::engine::lane::{Answer, Filed};
use laneway::engine::observe::{LaneStanding, ProcessorStanding};
use laneway::{EventId, Partition};
use laneway_client::wire;
use std::time::Duration;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::query::Query;
use super::{body, wire as convert};
use crate::node::Node;

/// How long a request may take to be applied before the answer says that it is not yet.
const APPLIED_WITHIN: Duration = Duration::from_secs(10);
/// Who paused a lane, as told to whoever asks why it stands.
const BY: &str = "a call of the HTTP API";

/// One lane: its end, its object, and how it stands for each processor.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/lane", tag = "lanes",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("key" = Option<String>, Query, description = "its key"),
        ("key_b64" = Option<String>, Query, description = "its key in base64, when it is no UTF-8"),
    ),
    responses((status = 200, body = wire::Lane)),
)]
pub(super) async fn one(
    State(node): State<Node>,
    Path(stream): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<wire::Lane>> {
    let query = Query::read(query.as_deref(), &["key", "key_b64"])?;
    let key = convert::key(query.bytes("key"), query.bytes("key_b64"))?;
    let key = key.ok_or_else(|| Failure::value("query key", "absent", "the key of a lane"))?;
    let lane = node.engine().looker().lane(&stream, &key).await?;
    let mut pending = 0;
    for standing in &lane.processors {
        pending = pending.max(pending_of(&node, &stream, &lane, standing).await?);
    }
    let named = convert::named(Some(&key));
    let tail = lane.tail.as_ref();
    let object = tail.and_then(|tail| tail.object.as_ref());
    Ok(Json(wire::Lane {
        key: named.key,
        key_b64: named.key_b64,
        partition: lane.partition.0,
        last_id: tail.map(|tail| tail.id.0),
        last_seq: tail.map_or(0, |tail| tail.seq.0),
        pending,
        generation: tail.and_then(|tail| tail.generation),
        object: object.and_then(|object| convert::payload(&object.bytes).0),
        object_version: object.map(|object| object.version),
        processors: lane.processors.iter().map(|standing| told(&stream, lane.partition, standing)).collect(),
        stream,
    }))
}

fn told(stream: &str, partition: Partition, standing: &ProcessorStanding) -> wire::LaneProcessor {
    let record = standing.record.as_ref();
    let retry_at = record.and_then(|record| match record.block {
        Some(laneway::core::Block::Retry { due, .. }) => Some(convert::date_of(convert::due(due))),
        _ => None,
    });
    let state = standing.state.as_ref();
    wire::LaneProcessor {
        processor: standing.processor.clone(),
        status: convert::status_of(standing).to_owned(),
        head: standing.head.map(|head| convert::reference(stream, partition, head)),
        attempt: record.map_or(0, |record| record.attempts),
        next_attempt_at: retry_at,
        state: state.and_then(|state| convert::payload(&state.bytes).0),
        state_version: state.map(|state| state.version),
        why: convert::why(&standing.why),
    }
}

/// Events from the head of the lane to its end, by their numbers in the lane.
async fn pending_of(
    node: &Node,
    stream: &str,
    lane: &LaneStanding,
    standing: &ProcessorStanding,
) -> Result<u64> {
    let (Some(head), Some(tail)) = (standing.head, &lane.tail) else { return Ok(0) };
    let info = node.engine().catalogue().stream(stream).await?;
    let (shard, from) = (info.shard(lane.partition), ReadFrom::Ids(vec![head]));
    let read = Read { shard, from, limit: 1, bytes: usize::MAX, processor: None, states: false };
    let page = node.engine().stores().store.read(read).await?;
    let seq = page.entries.first().and_then(|entry| match entry {
        Entry::Event(event) => event.seq,
        // Newest wins: all that is not newest counts for nothing.
        Entry::Superseded { .. } => None,
    });
    Ok(seq.map_or(1, |seq| (tail.seq.0 + 1).saturating_sub(seq.0)))
}

/// What an operator asks of a lane.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Pause,
    Resume,
    Retry,
    Skip,
}

/// Stops a lane; what runs goes on.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/pause", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::Count), (status = 202, body = wire::Count, description = "it has its effect once the processor runs")),
)]
pub(super) async fn pause(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Count>)> {
    ask(&node, &stream, Wish::Pause, body::object(&headers, body).await?).await
}

/// Lets a paused, parked or diverting lane go on.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/resume", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::Count), (status = 202, body = wire::Count, description = "it has its effect once the processor runs")),
)]
pub(super) async fn resume(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Count>)> {
    ask(&node, &stream, Wish::Resume, body::object(&headers, body).await?).await
}

/// Tries the head of a lane again now; a parked one gets all its attempts again.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/retry", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::Count), (status = 202, body = wire::Count, description = "it has its effect once the processor runs")),
)]
pub(super) async fn retry(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Count>)> {
    ask(&node, &stream, Wish::Retry, body::object(&headers, body).await?).await
}

/// Passes the head of a lane over: it ends skipped, and the lane goes on behind it.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/lanes/skip", tag = "lanes",
    params(("stream" = String, Path, description = "the stream's name")),
    request_body = wire::LaneRequest,
    responses((status = 200, body = wire::Count), (status = 202, body = wire::Count, description = "it has its effect once the processor runs")),
)]
pub(super) async fn skip(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Count>)> {
    ask(&node, &stream, Wish::Skip, body::object(&headers, body).await?).await
}

async fn ask(
    node: &Node,
    stream: &str,
    wish: Wish,
    asked: wire::LaneRequest,
) -> Result<(StatusCode, Json<wire::Count>)> {
    let key = convert::key(asked.key.as_ref().map(AsRef::as_ref), asked.key_b64.as_ref().map(AsRef::as_ref))?;
    let key = key.ok_or_else(|| Failure::value("key", "absent", "the key of a lane"))?;
    node.engine().catalogue().refresh().await?;
    let info = node.engine().catalogue().stream(stream).await?;
    let processor = processor_of(&info, asked.processor.as_deref())?;
    let filed = file(node, stream, &processor, &key, wish).await?;
    let applied = match node.engine().operator().answer(filed, APPLIED_WITHIN).await? {
        Some(Answer::Refused(why)) => return Err(why.into()),
        Some(Answer::Applied | Answer::Already) => true,
        None => false,
    };
    let status = if applied { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(wire::Count { count: 1, applied })))
}

async fn file(node: &Node, stream: &str, processor: &str, key: &Key, wish: Wish) -> Result<Filed> {
    let operator = node.engine().operator();
    Ok(match wish {
        Wish::Pause => operator.pause_lane(processor, key, BY).await?,
        Wish::Resume => operator.resume_lane(processor, key).await?,
        Wish::Retry => operator.retry(processor, key, head_of(node, stream, processor, key).await?).await?,
        Wish::Skip => operator.skip(processor, key, head_of(node, stream, processor, key).await?).await?,
    })
}

/// The event that is meant: if another comes first by then, nothing happens to it.
async fn head_of(node: &Node, stream: &str, processor: &str, key: &Key) -> Result<EventId> {
    let lane = node.engine().looker().lane(stream, key).await?;
    let standing = lane.processors.into_iter().find(|standing| standing.processor == processor);
    standing.and_then(|standing| standing.head).ok_or_else(|| {
        Failure::new(Code::NothingWaits, format!("nothing waits in lane {key} of processor {processor:?}"))
    })
}

/// The processor that is meant: the one that is named, or the only one.
fn processor_of(info: &StreamInfo, named: Option<&str>) -> Result<String> {
    let names: Vec<&str> = info.processors.iter().map(|processor| processor.name.as_str()).collect();
    match (named, &names[..]) {
        (Some(named), _) if names.contains(&named) => Ok(named.to_owned()),
        (Some(named), _) => {
            let detail = format!(
                "processor {named:?} does not process stream {:?}; those that do: {}",
                info.name,
                names.join(", ")
            );
            Err(Failure::new(Code::ProcessorNotFound, detail))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Failure::no_processor(&info.name)),
        (None, _) => {
            let detail =
                format!("stream {:?} has processors {}: name one of them", info.name, names.join(", "));
            Err(Failure::new(Code::ProcessorRequired, detail))
        }
    }
}
