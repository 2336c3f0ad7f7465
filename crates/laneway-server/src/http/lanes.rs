//! Lanes: look at one, and steer it.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use laneway::core::store::{Entry, Read, ReadFrom, RequestOp, SeatStatus};
use laneway::core::{LaneName, Seat, Shard, StreamInfo};
use laneway::engine::lane::Answer;
use laneway::engine::observe::{LaneStanding, ProcessorStanding, Why};
use laneway::{EventId, Partition, Ref};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::processors::{APPLIED_WITHIN, BY};
use super::query::Query;
use super::{body, wire as convert};
use crate::node::Node;

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
    // No key is empty: who writes none means an event without one.
    let given = |name: &str| query.bytes(name).filter(|value| !value.is_empty());
    let key = convert::key(given("key"), given("key_b64"))?.ok_or_else(|| {
        let limit = format!(
            "the key of a lane; an event without a key is a lane of its own: GET /v1/streams/{stream}/events/PARTITION/ID"
        );
        Failure::value("query key", "absent or empty", limit)
    })?;
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
    node.engine().catalogue().refresh().await?;
    let info = node.engine().catalogue().stream(stream).await?;
    let meant = meant(node, &info, &asked).await?;
    let processor = processor_of(&info, asked.processor.as_deref())?;
    let op = op(node, stream, &processor, &meant, wish).await?;
    let (_, id) = node.engine().catalogue().processor(&processor).await?;
    let (seat, token) = (Seat { shard: meant.shard, processor: id }, node.engine().env().token());
    let operator = node.engine().operator();
    let filed = operator.file(seat, token, op).await?;
    let applied = match operator.answer(filed, APPLIED_WITHIN).await? {
        Some(Answer::Refused(why)) => return Err(why.into()),
        Some(Answer::Applied | Answer::Already) => true,
        None => false,
    };
    let status = if applied { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(wire::Count { count: 1, applied })))
}

/// The lane that somebody means.
struct Meant {
    shard: Shard,
    lane: LaneName,
    /// The event by which it was named.
    event: Option<EventId>,
}

async fn meant(node: &Node, info: &StreamInfo, asked: &wire::LaneRequest) -> Result<Meant> {
    let key = convert::key(asked.key.as_ref().map(AsRef::as_ref), asked.key_b64.as_ref().map(AsRef::as_ref))?;
    match (key, &asked.reference) {
        (Some(_), Some(_)) => Err(Failure::value("ref", "set beside a key", "the only one of the two")),
        (Some(key), None) => {
            let shard = info.shard(key.partition(info.settings.partitions));
            Ok(Meant { shard, lane: LaneName::Key(key), event: None })
        }
        (None, Some(text)) => {
            let reference: Ref = text.parse()?;
            if reference.stream != info.name {
                return Err(Failure::value(
                    "ref",
                    format!("{text:?}"),
                    format!("an event of stream {:?}", info.name),
                ));
            }
            let event = super::events::found(node, &reference).await?.event;
            let lane = event.key.map_or(LaneName::Event(event.id), LaneName::Key);
            Ok(Meant { shard: info.shard(reference.partition), lane, event: Some(event.id) })
        }
        (None, None) => Err(Failure::value(
            "key",
            "absent",
            "the key of a lane, or ref the name of an event: an event without a key is a lane of its own",
        )),
    }
}

async fn op(node: &Node, stream: &str, processor: &str, meant: &Meant, wish: Wish) -> Result<RequestOp> {
    let lane = meant.lane.clone();
    Ok(match wish {
        Wish::Pause => RequestOp::Pause { lane: Some(lane), by: BY.into() },
        Wish::Resume => {
            let is_paused = |standing: &ProcessorStanding| matches!(standing.why, Why::LanePaused { .. });
            let standing = standing(node, stream, processor, meant).await?;
            if !standing.as_ref().is_some_and(is_paused) {
                check_runs(standing.as_ref(), processor, meant)?;
            }
            RequestOp::Resume { lane: Some(lane) }
        }
        Wish::Retry => {
            let (standing, id) = head_of(node, stream, processor, meant).await?;
            check_runs(standing.as_ref(), processor, meant)?;
            RequestOp::Retry { lane, id }
        }
        Wish::Skip => RequestOp::Skip { lane, id: head_of(node, stream, processor, meant).await?.1 },
    })
}

/// Nothing that is let go moves while the whole processor stands.
fn check_runs(standing: Option<&ProcessorStanding>, processor: &str, meant: &Meant) -> Result<()> {
    let how = match standing.map(|standing| standing.status) {
        Some(SeatStatus::Halted) => "halted by a failure",
        Some(SeatStatus::Paused) => "paused",
        Some(SeatStatus::Run) | None => return Ok(()),
    };
    let partition = meant.shard.partition;
    let detail = format!(
        "processor {processor:?} is {how} on partition {partition}: POST /v1/processors/{processor}/resume lets it \
         go on, with the lanes that stood with it"
    );
    Err(Failure::new(Code::ProcessorStopped, detail))
}

async fn standing(
    node: &Node,
    stream: &str,
    processor: &str,
    meant: &Meant,
) -> Result<Option<ProcessorStanding>> {
    let lane = node.engine().looker().lane_of(stream, meant.shard.partition, &meant.lane).await?;
    Ok(lane.processors.into_iter().find(|standing| standing.processor == processor))
}

/// The event that is meant: if another comes first by then, nothing happens to it.
async fn head_of(
    node: &Node,
    stream: &str,
    processor: &str,
    meant: &Meant,
) -> Result<(Option<ProcessorStanding>, EventId)> {
    let standing = standing(node, stream, processor, meant).await?;
    let head = meant.event.or(standing.as_ref().and_then(|standing| standing.head));
    match head {
        Some(head) if standing.as_ref().is_some_and(|standing| standing.head.is_some()) => {
            Ok((standing, head))
        }
        _ => {
            let detail = format!("nothing waits in lane {} of processor {processor:?}", meant.lane);
            Err(Failure::new(Code::NothingWaits, detail))
        }
    }
}

/// The processor that is meant: the one that is named, or the only one.
pub(super) fn processor_of(info: &StreamInfo, named: Option<&str>) -> Result<String> {
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
