//! Schedules: create, change, look at, fire, remove.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use laneway::core::store::Receipt;
use laneway::engine::upkeep::{Expect, Fire, ScheduleError, ScheduleStanding};
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::matching::{Wanted, tag};
use super::processors::Nothing;
use super::{body, wire as convert};
use crate::node::Node;

/// Due times that are told.
const NEXT: usize = 3;

/// Creates a schedule, or changes one that is there. A new time table begins now: nothing that lies behind it is made up
/// for.
#[utoipa::path(
    put, path = "/v1/schedules/{schedule}", tag = "schedules",
    params(
        ("schedule" = String, Path, description = "its name: letters, digits, '.', '_' and '-'"),
        ("If-Match" = Option<String>, Header, description = "only if its ETag is one of these; `*`: only if it is there"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if it is not there"),
    ),
    request_body = wire::ScheduleSettings,
    responses(
        (status = 201, body = wire::Schedule, description = "created", headers(("ETag" = String, description = "its version"))),
        (status = 200, body = wire::Schedule, description = "changed, or as it was", headers(("ETag" = String, description = "its version"))),
    ),
)]
pub(super) async fn put(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let asked: wire::ScheduleSettings = body::object(&headers, body).await?;
    if asked.stream.is_empty() {
        return Err(Failure::value("stream", "absent", "the name of a stream"));
    }
    Failure::own_stream("stream", &asked.stream)?;
    let wanted = Wanted::read(&headers)?;
    let there = match node.engine().schedules().standing(&name, 0).await {
        Ok(standing) => Some(standing.version),
        Err(ScheduleError::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    wanted.check(&name, there)?;
    node.engine().catalogue().refresh().await?;
    let mode = node.engine().catalogue().stream(&asked.stream).await?.settings.mode;
    let schedule = convert::schedule_in(&name, asked, mode)?;
    // Whoever asks for nothing overwrites what is there, whoever else was faster.
    let expect = if wanted.is_any() { Expect::Anything } else { Expect::Version(there) };
    node.engine().schedules().put_if(schedule, expect).await?;
    let status = if there.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, answer(node.engine().schedules().standing(&name, NEXT).await?)).into_response())
}

fn answer(standing: ScheduleStanding) -> Response {
    let etag = tag(standing.version);
    ([(ETAG, etag)], Json(convert::schedule_out(standing))).into_response()
}

/// A schedule as it stands, with the next three times it is due and the last one.
#[utoipa::path(
    get, path = "/v1/schedules/{schedule}", tag = "schedules",
    params(("schedule" = String, Path, description = "its name")),
    responses((status = 200, body = wire::Schedule, headers(("ETag" = String, description = "its version")))),
)]
pub(super) async fn get(State(node): State<Node>, Path(name): Path<String>) -> Result<Response> {
    Ok(answer(node.engine().schedules().standing(&name, NEXT).await?))
}

/// All schedules, by name.
#[utoipa::path(get, path = "/v1/schedules", tag = "schedules", responses((status = 200, body = wire::Schedules)))]
pub(super) async fn list(State(node): State<Node>) -> Result<Json<wire::Schedules>> {
    let standings = node.engine().schedules().standings(NEXT).await?;
    Ok(Json(wire::Schedules { items: standings.into_iter().map(convert::schedule_out).collect() }))
}

/// Removes a schedule; what it fired stays.
#[utoipa::path(
    delete, path = "/v1/schedules/{schedule}", tag = "schedules",
    params(
        ("schedule" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "only if its ETag is one of these; `*`: only if it is there"),
    ),
    responses((status = 204, description = "it is gone")),
)]
pub(super) async fn delete(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode> {
    let standing = node.engine().schedules().standing(&name, 0).await?;
    Wanted::read(&headers)?.check(&name, Some(standing.version))?;
    node.engine().schedules().remove(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Fires a schedule now, besides its time table.
#[utoipa::path(
    post, path = "/v1/schedules/{schedule}/run", tag = "schedules",
    params(("schedule" = String, Path, description = "its name")),
    request_body(content = Option<Nothing>, description = "none, or an empty object"),
    responses((status = 202, body = wire::ScheduleRun, description = "appended; of a job Location says where to look")),
)]
pub(super) async fn run(
    State(node): State<Node>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let Nothing {} = body::object(&headers, body).await?;
    let stream = node.engine().schedules().get(&name).await?.firing.stream;
    let Fire { receipt, partition } = node.engine().schedules().run(&name).await?;
    let Receipt::New { id, job, .. } = receipt else {
        let detail = format!("schedule {name:?} sent what its stream did not take as new: {receipt:?}");
        return Err(Failure::new(Code::StaleGeneration, detail));
    };
    let job = job.map(|job| job.to_string());
    let location = job.as_ref().and_then(|job| HeaderValue::from_str(&format!("/v1/jobs/{job}")).ok());
    let run = wire::ScheduleRun { reference: convert::reference(&stream, partition, id), job };
    let mut response = (StatusCode::ACCEPTED, Json(run)).into_response();
    response.headers_mut().extend(location.map(|location| (LOCATION, location)));
    Ok(response)
}
