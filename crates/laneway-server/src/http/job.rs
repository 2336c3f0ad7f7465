//! One job: look, wait, cancel, run again, take, forget.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use laneway::JobId;
use laneway::engine::job::{Job, Retried};
use laneway::engine::lane::Answer;
use laneway_client::wire;

use super::answer::Json;
use super::code::Code;
use super::error::{Failure, Result};
use super::prefer::Wait;
use super::processors::APPLIED_WITHIN;
use super::{job_view, jobs, prefer, under_way};
use crate::node::Node;
use crate::seam;

/// How often somebody who waits for a cancelled job looks, while it is parked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A job as it stands. With `Prefer: wait=N` as it stands when it has ended, is parked, or the time is over.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", tag = "jobs",
    params(
        ("id" = String, Path, description = "its id"),
        ("Prefer" = Option<String>, Header, description = "wait=N: wait so many seconds, at most 60, for the end"),
    ),
    responses((status = 200, body = wire::Job)),
)]
pub(super) async fn get(
    State(node): State<Node>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let (id, wait) = (id_of(&id)?, prefer::wait(&headers)?);
    let job = match wait {
        Some(wait) => wait_for(&node, id, wait.0).await?,
        None => node.engine().jobs().get(id).await?,
    };
    jobs::settled(&node, job, wait).await
}

/// Asks for a job to be cancelled: 202 while it is, 200 with `Prefer: wait=N` when it has ended in time.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/cancel", tag = "jobs",
    params(
        ("id" = String, Path, description = "its id"),
        ("Prefer" = Option<String>, Header, description = "wait=N: wait so many seconds, at most 60, for the end"),
    ),
    responses((status = 202, body = wire::Job, description = "cancelling"), (status = 200, body = wire::Job, description = "ended")),
)]
pub(super) async fn cancel(
    State(node): State<Node>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let (id, wait) = (id_of(&id)?, prefer::wait(&headers)?);
    node.engine().jobs().cancel(id, node.engine().env().token()).await?;
    if let Some(wait) = wait
        && ends_within(&node, id, wait.0).await?
    {
        let job = node.engine().jobs().get(id).await?;
        return jobs::settled(&node, job, Some(wait)).await;
    }
    let mut told = job_view::told(&node, id).await?;
    "cancelling".clone_into(&mut told.status);
    let mut response = (StatusCode::ACCEPTED, Json(told)).into_response();
    response.headers_mut().extend(wait.map(Wait::applied));
    Ok(response)
}

/// Runs a job again: one that has ended as a new job at its lane's end, which names it in `retry_of`; one that is parked or
/// waits for another attempt itself, now, with all its attempts.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/retry", tag = "jobs",
    params(
        ("id" = String, Path, description = "its id"),
        ("Prefer" = Option<String>, Header, description = "wait=N: wait so many seconds, at most 60, for the end"),
        ("Idempotency-Key" = Option<String>, Header, description = "of a job that has ended: the same again is the same new job"),
    ),
    responses(
        (status = 202, body = wire::JobReceipt, description = "accepted; Location says where to look, Retry-After when"),
        (status = 200, body = wire::Job, description = "ended or parked in time"),
    ),
)]
pub(super) async fn retry(
    State(node): State<Node>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    let (id, wait, by) = (id_of(&id)?, prefer::wait(&headers)?, jobs::by(&headers));
    let retried = node.engine().jobs().retry(id, &by).await.map_err(|error| jobs::explained(error, &by))?;
    let receipt = match retried {
        Retried::Again(submitted) => {
            let stream = node.engine().catalogue().stream_of(id.shard().stream).await?.name.clone();
            let receipt = jobs::receipt(&node, &stream, &submitted).await?;
            wire::JobReceipt { retry_of: Some(id.to_string()), ..receipt }
        }
        Retried::Now(filed) => {
            let within = under_way::patience(APPLIED_WITHIN);
            if let Some(Answer::Refused(why)) = node.engine().operator().answer(filed, within).await? {
                return Err(why.into());
            }
            let wire::Job { id, reference, status, .. } = job_view::told(&node, id).await?;
            wire::JobReceipt { id, reference, status, retry_of: None }
        }
    };
    if let Some(wait) = wait {
        let id = id_of(&receipt.id)?;
        let job = wait_for(&node, id, wait.0).await?;
        if job.status.is_settled() {
            return jobs::settled(&node, job, Some(wait)).await;
        }
    }
    Ok(jobs::accepted(receipt, wait))
}

/// Reads the end of a job and lets it be forgotten ten minutes later; until then the same again answers the same.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/take", tag = "jobs",
    params(("id" = String, Path, description = "its id")),
    responses((status = 200, body = wire::Job, description = "its end; keep_until says how long it can be read again")),
)]
pub(super) async fn take(State(node): State<Node>, Path(id): Path<String>) -> Result<Json<wire::Job>> {
    let id = id_of(&id)?;
    node.engine().jobs().take(id).await?;
    Ok(Json(job_view::told(&node, id).await?))
}

/// Forgets a job that has ended; one that is gone already is fine.
#[utoipa::path(
    delete, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = String, Path, description = "its id")),
    responses((status = 204, description = "it is gone")),
)]
pub(super) async fn delete(State(node): State<Node>, Path(id): Path<String>) -> Result<StatusCode> {
    node.engine().jobs().forget(id_of(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a job ends in time. A parked one has not, although nobody who waits for its result is kept waiting.
pub(super) async fn ends_within(node: &Node, id: JobId, wait: Duration) -> Result<bool> {
    let ended = async {
        loop {
            let job = node.engine().jobs().wait(id, LOOK_EVERY).await?;
            if job.status.status().is_terminal() {
                return Ok::<_, Failure>(());
            }
            seam::pass(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        biased;
        ended = seam::within(wait, ended) => Ok(ended.transpose()?.is_some()),
        () = node.stopping() => Ok(false),
        () = under_way::caller_gone() => Ok(false),
    }
}

/// Waits for a job, but not beyond the end of this process, and no longer than the caller does.
pub(super) async fn wait_for(node: &Node, id: JobId, wait: Duration) -> Result<Job> {
    tokio::select! {
        biased;
        job = node.engine().jobs().wait(id, wait) => Ok(job?),
        () = node.stopping() => Ok(node.engine().jobs().get(id).await?),
        () = under_way::caller_gone() => Ok(node.engine().jobs().get(id).await?),
    }
}

pub(super) fn id_of(text: &str) -> Result<JobId> {
    // A text that is no id of ours names no job, as one that was never given does.
    text.parse()
        .map_err(|refusal: laneway::core::Refusal| Failure::new(Code::JobNotFound, refusal.to_string()))
}
