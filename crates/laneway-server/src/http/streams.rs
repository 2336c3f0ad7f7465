//! Streams: create, change, look at, remove.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use laneway::core::{StreamInfo, StreamSettings};
use laneway::engine::log::CatalogueError;
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::matching::{Wanted, tag};
use super::paging::{Page, Paging};
use super::{body, wire as convert};
use crate::node::Node;

/// Creates a stream, or changes one that is there. What is left out has its default; partitions and mode never change.
#[utoipa::path(
    put, path = "/v1/streams/{stream}", tag = "streams",
    params(
        ("stream" = String, Path, description = "its name: letters, digits, '.', '_' and '-'"),
        ("If-Match" = Option<String>, Header, description = "only if its ETag is one of these; `*`: only if it is there"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if it is not there"),
    ),
    request_body = wire::StreamSettings,
    responses(
        (status = 201, body = wire::Stream, description = "created", headers(("ETag" = String, description = "its version"))),
        (status = 200, body = wire::Stream, description = "changed, or as it was", headers(("ETag" = String, description = "its version"))),
    ),
)]
pub(super) async fn put(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let asked: wire::StreamSettings = body::object(&headers, body).await?;
    Failure::own_stream("stream", &name)?;
    let there = find(&node, &name).await?;
    let wanted = Wanted::read(&headers)?;
    wanted.check(&name, there.as_deref().map(|info| info.version))?;
    let settings = convert::stream_in(&asked, there.as_deref())?;
    if let Some(there) = &there {
        check_fixed(there, &settings)?;
    }
    let info = node.engine().define_stream(&name, settings).await.map_err(Failure::from);
    let info = info.map_err(|failure| wanted.raced(failure))?;
    let status = if there.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, standing(&node, &info.name).await?).into_response())
}

async fn find(node: &Node, name: &str) -> Result<Option<Arc<StreamInfo>>> {
    let catalogue = node.engine().catalogue();
    catalogue.refresh().await?;
    match catalogue.stream(name).await {
        Ok(info) => Ok(Some(info)),
        Err(CatalogueError::NoStream(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Refuses to change what never changes.
fn check_fixed(there: &StreamInfo, settings: &StreamSettings) -> Result<()> {
    let fixed = |field: &str, asked: String, stays: String| {
        let name = &there.name;
        let detail = format!("{field} is {asked}, and stream {name:?} has {stays}: it cannot be changed");
        Err(Failure::new(Code::StreamConflict, detail))
    };
    let (asked, stays) = (settings.partitions, there.settings.partitions);
    if asked != stays {
        return fixed("partitions", asked.to_string(), stays.to_string());
    }
    if settings.mode != there.settings.mode {
        return fixed("mode", word(settings.mode).to_owned(), word(there.settings.mode).to_owned());
    }
    Ok(())
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
    responses((status = 200, body = wire::Stream, headers(("ETag" = String, description = "its version")))),
)]
pub(super) async fn get(State(node): State<Node>, Path(name): Path<String>) -> Result<Standing> {
    standing(&node, &name).await
}

/// Streams, by name.
#[utoipa::path(
    get, path = "/v1/streams", tag = "streams",
    params(
        ("limit" = Option<usize>, Query, description = "at most so many, 1 to 1,000; default 100"),
        ("cursor" = Option<String>, Query, description = "the `next` of the page before"),
    ),
    responses((status = 200, body = wire::Streams)),
)]
pub(super) async fn list(State(node): State<Node>, uri: Uri) -> Result<Page<wire::Streams>> {
    let paging = Paging::read(&uri, &[])?;
    let after: Option<String> = paging.place()?;
    let streams = node.engine().catalogue().streams().await?;
    let mut left = streams.iter().filter(|info| after.as_ref().is_none_or(|after| info.name > *after));
    let mut items = Vec::new();
    for info in left.by_ref().take(paging.limit) {
        items.push(standing(&node, &info.name).await?.stream);
    }
    let last = items.last().filter(|_| left.next().is_some()).map(|last| paging.cursor(&last.name));
    let next = last.clone();
    Ok(paging.answer(wire::Streams { items, next }, last.as_deref()))
}

async fn standing(node: &Node, name: &str) -> Result<Standing> {
    let standing = node.engine().looker().stream(name).await?;
    Ok(Standing { tag: tag(standing.info.version), stream: convert::stream_out(&standing) })
}

/// A stream and its ETag.
pub(super) struct Standing {
    tag: String,
    stream: wire::Stream,
}

impl IntoResponse for Standing {
    fn into_response(self) -> Response {
        ([(ETAG, self.tag)], Json(self.stream)).into_response()
    }
}

/// Removes a stream with everything in it.
#[utoipa::path(
    delete, path = "/v1/streams/{stream}", tag = "streams",
    params(
        ("stream" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "only if its ETag is one of these"),
    ),
    responses((status = 204, description = "it is gone")),
)]
pub(super) async fn delete(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode> {
    Failure::own_stream("stream", &name)?;
    // Its processors go with it.
    let _changing = node.changing().await;
    let there = find(&node, &name).await?.ok_or_else(|| CatalogueError::NoStream(name.clone()))?;
    Wanted::read(&headers)?.check(&name, Some(there.version))?;
    node.engine().remove_stream(&name, super::processors::DRAIN).await?;
    Ok(StatusCode::NO_CONTENT)
}
