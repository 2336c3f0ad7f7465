//! Lanes: look at one.

use axum::extract::{Path, RawQuery, State};
use laneway::Partition;
use laneway::core::StreamInfo;
use laneway::core::store::{Entry, Read, ReadFrom};
use laneway::engine::observe::{LaneStanding, ProcessorStanding};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::query::Query;
use super::wire as convert;
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
