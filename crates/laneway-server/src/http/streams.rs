//! Streams: create, change, look at, remove.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use laneway::engine::log::CatalogueError;
use laneway_client::wire;

use super::answer::Json;
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
    Failure::own_stream("stream", &name)?;
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
    Ok((status, Json(standing(&node, &info.name).await?)))
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
    Ok(Json(standing(&node, &name).await?))
}

/// All streams, by name.
#[utoipa::path(get, path = "/v1/streams", tag = "streams", responses((status = 200, body = wire::Streams)))]
pub(super) async fn list(State(node): State<Node>) -> Result<Json<wire::Streams>> {
    let mut items = Vec::new();
    for info in node.engine().catalogue().streams().await? {
        items.push(standing(&node, &info.name).await?);
    }
    Ok(Json(wire::Streams { items }))
}

async fn standing(node: &Node, name: &str) -> Result<wire::Stream> {
    Ok(convert::stream_out(&node.engine().looker().stream(name).await?))
}

/// Removes a stream with everything in it.
#[utoipa::path(
    delete, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "its name")),
    responses((status = 204, description = "it is gone")),
)]
pub(super) async fn delete(State(node): State<Node>, Path(name): Path<String>) -> Result<StatusCode> {
    Failure::own_stream("stream", &name)?;
    node.engine().remove_stream(&name, super::processors::DRAIN).await?;
    Ok(StatusCode::NO_CONTENT)
}
