//! Processors: register one for remote workers or an endpoint, look at all, remove one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use laneway::core::store::{Reset, SeatStatus};
use laneway::engine::lane::{Answer, Filed};
use laneway::engine::log::CatalogueError;
use laneway::engine::observe::StoppedSeat;
use laneway::engine::{ProcessorView, Registration};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::matching::{Wanted, tag};
use super::under_way;
use super::{body, wire as convert};
use crate::duties::Runner;
use crate::handlers::{Target, Web};
use crate::node::{Kind, Node, PULL};

/// How long runs may take to finish when their processor is changed or removed.
pub(super) const DRAIN: Duration = Duration::from_secs(10);

/// How long a request may take to be applied before the answer says that it is not yet.
pub(super) const APPLIED_WITHIN: Duration = Duration::from_secs(10);

/// Registers a processor whose events remote workers claim or an endpoint gets, or changes one that is there.
#[utoipa::path(
    put, path = "/v1/processors/{processor}", tag = "processors",
    params(
        ("processor" = String, Path, description = "its name, unique in the store"),
        ("If-Match" = Option<String>, Header, description = "only if its ETag is one of these; `*`: only if it is there"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if it is not there"),
    ),
    request_body = wire::ProcessorSettings,
    responses(
        (status = 201, body = wire::Processor, description = "registered", headers(("ETag" = String, description = "its version"))),
        (status = 200, body = wire::Processor, description = "changed, or as it was", headers(("ETag" = String, description = "its version"))),
    ),
)]
pub(super) async fn put(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let asked: wire::ProcessorSettings = body::object(&headers, body).await?;
    if asked.stream.is_empty() {
        return Err(Failure::value("stream", "absent", "the name of a stream"));
    }
    let work = Work::asked(&node, &asked)?;
    if name.starts_with('_') {
        return Err(Failure::value("processor", format!("{name:?}"), "a name that does not begin with _"));
    }
    let mut registration = Registration {
        settings: convert::settings_in(&asked)?,
        handler: work.stored(&asked).into(),
        ..Registration::new(&name, &asked.stream)
    };
    let _changing = node.changing().await;
    let there = find(&node, &name).await?;
    Wanted::read(&headers)?.check(&name, there.as_ref().map(version))?;
    // Where it began is history, and stays what it was unless it is said again.
    if let Some(Ok(stored)) = there.as_ref().map(|there| &there.stored)
        && asked.start.is_none()
    {
        registration.settings.start = stored.settings.start;
    }
    let status = match there {
        None => {
            offer(&node, registration, work).await?;
            StatusCode::CREATED
        }
        Some(there) => {
            change(&node, &there, registration, work).await?;
            StatusCode::OK
        }
    };
    let now = find(&node, &name).await?.ok_or_else(|| CatalogueError::NoProcessor(name.clone()))?;
    Ok((status, answer(&node, &now).await?).into_response())
}

async fn answer(node: &Node, view: &ProcessorView) -> Result<Response> {
    Ok(([(ETAG, tag(version(view)))], Json(told(node, view).await?)).into_response())
}

/// A number that is another one after every change, and after the processor was removed and registered again.
fn version(view: &ProcessorView) -> u64 {
    let mut said = DefaultHasher::new();
    view.id.0.hash(&mut said);
    if let Ok(stored) = &view.stored {
        stored.encode().hash(&mut said);
    }
    said.finish()
}

async fn change(node: &Node, there: &ProcessorView, registration: Registration, work: Work) -> Result<()> {
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
    match (Kind::of(&stored.handler), &work) {
        (Kind::Pull, Work::Pull) | (Kind::Endpoint(_), Work::Endpoint(_)) => {}
        (Kind::Pull, Work::Endpoint(_)) => {
            return conflict(format!(
                "remote workers claim from processor {name:?}: it cannot get an endpoint"
            ));
        }
        (Kind::Endpoint(_), Work::Pull) => {
            return conflict(format!("processor {name:?} has an endpoint: no worker can claim from it"));
        }
        (Kind::Other, _) => {
            return conflict(format!(
                "processor {name:?} has a handler of its own: it cannot be changed here"
            ));
        }
    }
    let (began, start) = (stored.settings.start, registration.settings.start);
    if began != start {
        let (began, start) = (convert::start_text(began), convert::start_text(start));
        return conflict(format!(
            "start is {start}, and processor {name:?} began at {began}: POST /v1/processors/{name}/reset begins anew"
        ));
    }
    if !there.runs_here {
        return offer(node, registration, work).await;
    }
    if stored.settings == registration.settings && stored.handler == registration.handler {
        return Ok(());
    }
    match work {
        Work::Pull => node.engine().change_processor(registration, DRAIN).await?,
        Work::Endpoint(web) => node.engine().change_handler(registration, web, DRAIN).await?,
    }
    Ok(())
}

/// What is to run the events.
enum Work {
    Pull,
    Endpoint(Arc<Web>),
}

impl Work {
    fn asked(node: &Node, asked: &wire::ProcessorSettings) -> Result<Self> {
        let url = match (&asked.http, asked.pull) {
            (None, true) => return Ok(Self::Pull),
            (Some(_), true) => {
                return Err(Failure::value("http", "set beside pull", "the only one of the two"));
            }
            (None, false) => {
                return Err(Failure::value(
                    "pull",
                    "false",
                    "true, or http set: one of them runs the events",
                ));
            }
            (Some(url), false) => url,
        };
        let Some(rules) = node.webhooks() else {
            let limit = "absent: this server signs no calls (webhook.secret is not set)";
            return Err(Failure::value("http", "set", limit));
        };
        let target = Target::parse(url, rules).map_err(|wrong| {
            Failure::new(Code::InvalidValue, format!("http {:?}: {wrong}", Target::shown(url)))
        })?;
        Ok(Self::Endpoint(Arc::new(Web::guarded(target, Arc::clone(rules)))))
    }

    /// What the store keeps of it.
    fn stored(&self, asked: &wire::ProcessorSettings) -> Vec<u8> {
        match self {
            Self::Pull => PULL.into(),
            Self::Endpoint(_) => Kind::endpoint(asked.http.as_deref().unwrap_or_default()),
        }
    }
}

/// Runs it here, unless that is for other processes: then it is only written down.
async fn offer(node: &Node, registration: Registration, work: Work) -> Result<()> {
    let runner = match work {
        Work::Pull => Runner::Workers,
        Work::Endpoint(_) => Runner::Handler,
    };
    if !node.duties().runs(&registration.name, runner) {
        return Ok(node.engine().register(&registration).await?);
    }
    match work {
        Work::Pull => drop(node.engine().process_at_desk_as(registration).await?),
        Work::Endpoint(web) => node.engine().process_as(registration, web).await?,
    }
    Ok(())
}

async fn find(node: &Node, name: &str) -> Result<Option<ProcessorView>> {
    Ok(node.engine().processors().await?.into_iter().find(|view| view.name == name))
}

async fn told(node: &Node, view: &ProcessorView) -> Result<wire::Processor> {
    let stored = view.stored.as_ref().ok();
    // What begins with another word was written by a command of this program; nothing, by a program of yours.
    let word = stored.map(|stored| String::from_utf8_lossy(&stored.handler).into_owned()).unwrap_or_default();
    let handler = word.split(':').next().filter(|word| !word.is_empty()).unwrap_or("code").to_owned();
    let stopped = node.engine().looker().stopped(&view.name).await?;
    Ok(wire::Processor {
        name: view.name.clone(),
        stream: view.stream.clone(),
        handler,
        running: view.runs_here,
        stopped: stopped.into_iter().map(|seat| stopped_out(&view.stream, seat)).collect(),
        settings: stored
            .map(|stored| convert::settings_out(&view.stream, runs_at(&stored.handler), &stored.settings)),
    })
}

fn runs_at(stored: &[u8]) -> convert::RunsAt {
    match Kind::of(stored) {
        Kind::Pull => convert::RunsAt::Workers,
        Kind::Endpoint(url) => convert::RunsAt::Endpoint(Target::shown(&url)),
        Kind::Other => convert::RunsAt::Process,
    }
}

fn stopped_out(stream: &str, seat: StoppedSeat) -> wire::Stopped {
    let StoppedSeat { partition, status, paused, failed } = seat;
    let (head, cause) = failed.unzip();
    wire::Stopped {
        partition: partition.0,
        status: if status == SeatStatus::Halted { "halted" } else { "paused" }.to_owned(),
        reference: head.map(|head| convert::reference(stream, partition, head)),
        cause: cause.map(|cause| String::from_utf8_lossy(&cause).into_owned()),
        by: paused.as_ref().map(|paused| String::from_utf8_lossy(&paused.by).into_owned()),
        since: paused.map(|paused| convert::date_of(paused.at)),
    }
}

/// A processor as it stands.
#[utoipa::path(
    get, path = "/v1/processors/{processor}", tag = "processors",
    params(("processor" = String, Path, description = "its name")),
    responses((status = 200, body = wire::Processor, headers(("ETag" = String, description = "its version")))),
)]
pub(super) async fn get(State(node): State<Node>, Path(name): Path<String>) -> Result<Response> {
    let view = find(&node, &name).await?.ok_or(CatalogueError::NoProcessor(name))?;
    answer(&node, &view).await
}

/// All processors, by name.
#[utoipa::path(get, path = "/v1/processors", tag = "processors", responses((status = 200, body = wire::Processors)))]
pub(super) async fn list(State(node): State<Node>) -> Result<Json<wire::Processors>> {
    let mut items = Vec::new();
    for view in node.engine().processors().await? {
        items.push(told(&node, &view).await?);
    }
    Ok(Json(wire::Processors { items }))
}

/// Removes a processor with its progress, lane states and dead letters.
#[utoipa::path(
    delete, path = "/v1/processors/{processor}", tag = "processors",
    params(
        ("processor" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "only if its ETag is one of these; `*`: only if it is there"),
    ),
    responses((status = 204, description = "it is gone")),
)]
pub(super) async fn delete(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode> {
    let _changing = node.changing().await;
    Wanted::read(&headers)?.check(&name, find(&node, &name).await?.as_ref().map(version))?;
    node.engine().remove_processor(&name, DRAIN).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stops a processor on all its partitions; what runs goes on.
#[utoipa::path(
    post, path = "/v1/processors/{processor}/pause", tag = "processors",
    params(("processor" = String, Path, description = "its name")),
    request_body(content = Option<Nothing>, description = "none, or an empty object"),
    responses((status = 200, body = wire::Count), (status = 202, body = wire::Count, description = "it has its effect once the processor runs")),
)]
pub(super) async fn pause(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Count>)> {
    let Nothing {} = body::object(&headers, body).await?;
    applied(&node, node.engine().operator().pause(&name, &under_way::by()).await?).await
}

/// Lets a paused or halted processor go on; what halted it is tried again, with all its attempts.
#[utoipa::path(
    post, path = "/v1/processors/{processor}/resume", tag = "processors",
    params(("processor" = String, Path, description = "its name")),
    request_body(content = Option<Nothing>, description = "none, or an empty object"),
    responses((status = 200, body = wire::Count), (status = 202, body = wire::Count, description = "it has its effect once the processor runs")),
)]
pub(super) async fn resume(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Count>)> {
    let Nothing {} = body::object(&headers, body).await?;
    applied(&node, node.engine().operator().resume(&name).await?).await
}

/// Begins a processor anew: its progress, held-up lanes and dead letters go, and what is behind the start runs again.
#[utoipa::path(
    post, path = "/v1/processors/{processor}/reset", tag = "processors",
    params(("processor" = String, Path, description = "its name")),
    request_body = wire::Reset,
    responses((status = 200, body = wire::Count), (status = 202, body = wire::Count, description = "it has its effect once the processor runs")),
)]
pub(super) async fn reset(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<wire::Count>)> {
    let asked: wire::Reset = body::object(&headers, body).await?;
    let start = asked.start.as_ref().ok_or_else(|| {
        Failure::value(
            "start",
            "absent",
            "\"beginning\", \"end\", an id, or a date such as 2026-11-16T18:00:00Z",
        )
    })?;
    let reset = Reset {
        start: convert::start_in(start)?,
        clear_states: asked.state == wire::ResetState::Clear,
        quiet: asked.emit == wire::ResetEmit::Off,
    };
    applied(&node, node.engine().operator().reset(&name, reset).await?).await
}

/// A body without anything in it.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Waits for the owners of all partitions.
async fn applied(node: &Node, filed: Vec<Filed>) -> Result<(StatusCode, Json<wire::Count>)> {
    let count = filed.len() as u64;
    let within = under_way::patience(APPLIED_WITHIN);
    let answers = filed.into_iter().map(|filed| node.engine().operator().answer(filed, within));
    let mut applied = true;
    for answer in futures::future::try_join_all(answers).await? {
        match answer {
            Some(Answer::Applied | Answer::Already) => {}
            Some(Answer::Refused(why)) => return Err(why.into()),
            None => applied = false,
        }
    }
    let status = if applied { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(wire::Count { count, applied })))
}
