//! Streams: create, change, look at, remove.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use laneway::Partition;
use laneway::core::StreamInfo;
use laneway::core::store::{Query, Rows};
use laneway::engine::log::CatalogueError;
use laneway_client::wire;

use super::code::Code;
use super::error::{Failure, Result};
use super::{body, wire as convert};
use crate::node::Node;

/// Creates a stream, or changes one that is there. What is left out has its default; partitions and mode never change.
#[utoipa::path(
    put, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "its name: letters, digits, '.', '_' and '-'")),
    request_body = wire::StreamSettings,
    responses((status = 201, body = wire::Stream, description = "created"), (status = 200, body = wire::Stream, description = "changed, or as it was")),
)]
pub(super) async fn put(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Stream>)> {
    let asked: wire::StreamSettings = body::object(&headers, body).await?;
    if name.starts_with('_') {
        return Err(Failure::value("stream", format!("{name:?}"), "a name that does not begin with _"));
    }
    let catalogue = node.engine().catalogue();
    catalogue.refresh().await?;
    let there = match catalogue.stream(&name).await {
        Ok(info) => Some(info),
        Err(CatalogueError::NoStream(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let settings = convert::stream_in(&asked, there.as_deref())?;
    if let Some(there) = &there {
        let fixed = |field: &str, asked: String, there: String| {
            let detail = format!("{field} is {asked}, and stream {name:?} has {there}: it cannot be changed");
            Err(Failure::new(Code::StreamConflict, detail))
        };
        if settings.partitions != there.settings.partitions {
            return fixed(
                "partitions",
                settings.partitions.to_string(),
                there.settings.partitions.to_string(),
            );
        }
        if settings.mode != there.settings.mode {
            return fixed("mode", word(settings.mode).to_owned(), word(there.settings.mode).to_owned());
        }
    }
    let info = node.engine().define_stream(&name, settings).await?;
    let status = if there.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(standing(&node, &info).await?)))
}

fn word(mode: laneway::Mode) -> &'static str {
    match mode {
        laneway::Mode::Queue => "queue",
        laneway::Mode::Latest => "latest",
    }
}

/// A stream as it stands: the ends of its partitions, and how far behind its processors are.
#[utoipa::path(
    get, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "its name")),
    responses((status = 200, body = wire::Stream)),
)]
pub(super) async fn get(State(node): State<Node>, Path(name): Path<String>) -> Result<Json<wire::Stream>> {
    node.engine().catalogue().refresh().await?;
    let info = node.engine().catalogue().stream(&name).await?;
    Ok(Json(standing(&node, &info).await?))
}

/// All streams, by name.
#[utoipa::path(get, path = "/v1/streams", tag = "streams", responses((status = 200, body = wire::Streams)))]
pub(super) async fn list(State(node): State<Node>) -> Result<Json<wire::Streams>> {
    let mut items = Vec::new();
    for info in node.engine().catalogue().streams().await? {
        items.push(standing(&node, &info).await?);
    }
    Ok(Json(wire::Streams { items }))
}

async fn standing(node: &Node, info: &StreamInfo) -> Result<wire::Stream> {
    let mut told = convert::stream_out(info);
    let mut lags = vec![0; info.processors.len()];
    for partition in 0..info.settings.partitions {
        let query = Query::Seats(info.shard(Partition(partition)));
        let Rows::Seats(shard, seats) = node.engine().stores().store.query(query).await? else { continue };
        if shard.head.0 > 0 {
            told.heads.push(wire::PartitionHead { partition, head: shard.head.0 });
        }
        for (processor, lag) in info.processors.iter().zip(&mut lags) {
            let seat = seats.iter().find(|seat| seat.processor == processor.id);
            let floor = seat.map_or(0, |seat| seat.progress.window.floor().0);
            *lag += shard.head.0.saturating_sub(floor);
        }
    }
    let processors = info.processors.iter().zip(lags);
    told.processors =
        processors.map(|(info, lag)| wire::StreamProcessor { processor: info.name.clone(), lag }).collect();
    Ok(told)
}

/// Removes a stream with everything in it.
#[utoipa::path(
    delete, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "its name")),
    responses((status = 204, description = "it is gone")),
)]
pub(super) async fn delete(State(node): State<Node>, Path(name): Path<String>) -> Result<StatusCode> {
    if name.starts_with('_') {
        return Err(Failure::value("stream", format!("{name:?}"), "a name that does not begin with _"));
    }
    node.engine().remove_stream(&name, super::processors::DRAIN).await?;
    Ok(StatusCode::NO_CONTENT)
}
