//! Processors: register one for remote workers, look at all, remove one.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use laneway::engine::log::CatalogueError;
use laneway::engine::{ProcessorView, Registration};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::{body, wire as convert};
use crate::node::{Node, PULL};

/// How long runs may take to finish when their processor is changed or removed.
pub(super) const DRAIN: Duration = Duration::from_secs(10);

/// Registers a processor whose events remote workers claim, or changes one that is there.
#[utoipa::path(
    put, path = "/v1/processors/{processor}", tag = "processors",
    params(("processor" = String, Path, description = "its name, unique in the store")),
    request_body = wire::ProcessorSettings,
    responses((status = 201, body = wire::Processor, description = "registered"), (status = 200, body = wire::Processor, description = "changed, or as it was")),
)]
pub(super) async fn put(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Processor>)> {
    let asked: wire::ProcessorSettings = body::object(&headers, body).await?;
    if asked.stream.is_empty() {
        return Err(Failure::value("stream", "absent", "the name of a stream"));
    }
    if !asked.pull {
        return Err(Failure::value(
            "pull",
            "false",
            "true: over HTTP only processors for remote workers are registered",
        ));
    }
    if name.starts_with('_') {
        return Err(Failure::value("processor", format!("{name:?}"), "a name that does not begin with _"));
    }
    let registration = Registration {
        settings: convert::settings_in(&asked)?,
        handler: PULL.into(),
        ..Registration::new(&name, &asked.stream)
    };
    let status = match find(&node, &name).await? {
        None => {
            node.engine().process_at_desk_as(registration).await?;
            StatusCode::CREATED
        }
        Some(there) => {
            change(&node, &there, registration).await?;
            StatusCode::OK
        }
    };
    let now = find(&node, &name).await?.ok_or_else(|| CatalogueError::NoProcessor(name.clone()))?;
    Ok((status, Json(told(&now))))
}

async fn change(node: &Node, there: &ProcessorView, registration: Registration) -> Result<()> {
    let conflict = |detail: String| Err(Failure::new(Code::ProcessorConflict, detail));
    let name = &there.name;
    if there.stream != registration.stream {
        let detail = format!(
            "processor {name:?} processes stream {:?}: it cannot be changed to {:?}",
            there.stream, registration.stream
        );
        return conflict(detail);
    }
    let stored =
        there.stored.as_ref().map_err(|error| Failure::new(Code::ProcessorConflict, error.to_string()))?;
    if stored.handler != PULL {
        return conflict(format!("processor {name:?} has a handler of its own: no worker can claim from it"));
    }
    // Where it began is history.
    let mut as_it_was = stored.settings.clone();
    as_it_was.start = registration.settings.start;
    if !there.runs_here {
        node.engine().process_at_desk_as(registration).await?;
    } else if as_it_was != registration.settings {
        node.engine().change_processor(registration, DRAIN).await?;
    }
    Ok(())
}

async fn find(node: &Node, name: &str) -> Result<Option<ProcessorView>> {
    Ok(node.engine().processors().await?.into_iter().find(|view| view.name == name))
}

fn told(view: &ProcessorView) -> wire::Processor {
    let stored = view.stored.as_ref().ok();
    let pull = stored.is_some_and(|stored| stored.handler == PULL);
    // What begins with another word was written by a command of this program; nothing, by a program of yours.
    let word = stored.map(|stored| String::from_utf8_lossy(&stored.handler).into_owned()).unwrap_or_default();
    let handler = word.split(':').next().filter(|word| !word.is_empty()).unwrap_or("code").to_owned();
    wire::Processor {
        name: view.name.clone(),
        stream: view.stream.clone(),
        handler,
        running: view.runs_here,
        settings: stored.map(|stored| convert::settings_out(&view.stream, pull, &stored.settings)),
    }
}

/// A processor as it stands.
#[utoipa::path(
    get, path = "/v1/processors/{processor}", tag = "processors",
    params(("processor" = String, Path, description = "its name")),
    responses((status = 200, body = wire::Processor)),
)]
pub(super) async fn get(State(node): State<Node>, Path(name): Path<String>) -> Result<Json<wire::Processor>> {
    let view = find(&node, &name).await?.ok_or(CatalogueError::NoProcessor(name))?;
    Ok(Json(told(&view)))
}

/// All processors, by name.
#[utoipa::path(get, path = "/v1/processors", tag = "processors", responses((status = 200, body = wire::Processors)))]
pub(super) async fn list(State(node): State<Node>) -> Result<Json<wire::Processors>> {
    let items = node.engine().processors().await?.iter().map(told).collect();
    Ok(Json(wire::Processors { items }))
}

/// Removes a processor with its progress, lane states and dead letters.
#[utoipa::path(
    delete, path = "/v1/processors/{processor}", tag = "processors",
    params(("processor" = String, Path, description = "its name")),
    responses((status = 204, description = "it is gone")),
)]
pub(super) async fn delete(State(node): State<Node>, Path(name): Path<String>) -> Result<StatusCode> {
    node.engine().remove_processor(&name, DRAIN).await?;
    Ok(StatusCode::NO_CONTENT)
}
