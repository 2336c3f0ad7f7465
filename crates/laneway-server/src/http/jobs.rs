//! Jobs: submit, look, wait, cancel.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use laneway::core::store::Receipt;
use laneway::engine::job::{By, Job, JobError, Submissions, Submit, Submitted};
use laneway::engine::log::AppendError;
use laneway::{JobId, Mode};
use laneway_client::wire::{self, JobDraft};

use super::answer::Json;
use super::body::Many;
use super::code::Code;
use super::error::{Failure, Result};
use super::{body, job_view, prefer, under_way, wire as convert};
use crate::node::Node;
use crate::seam;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How often somebody who waits for a cancelled job looks, while it is parked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Submits a job, or an array of them. With `Prefer: wait=N` one job is waited for: 200 when it has ended, or is parked,
/// in time. An array is not waited for: its jobs are looked at one by one.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/jobs", tag = "jobs",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("Prefer" = Option<String>, Header, description = "wait=N: wait so many seconds, at most 60, for the end of one job; refused beside an array"),
        ("Idempotency-Key" = Option<String>, Header, description = "the same again with the same body is the same job; one that has ended is answered at once"),
    ),
    request_body(content = JobDraft, description = "one job, or an array of up to 1,000"),
    responses(
        (status = 202, body = wire::JobReceipt, description = "accepted; Location says where to look"),
        (status = 200, body = wire::Job, description = "ended or parked in time"),
        (status = 207, body = wire::JobReceipts, description = "some of an array were not accepted; each says why"),
    ),
)]
pub(super) async fn submit(
    State(node): State<Node>,
    Path(stream): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response> {
    let wait = prefer::wait(&headers)?;
    let idempotency_key = headers.get(IDEMPOTENCY_KEY).map(|value| Bytes::copy_from_slice(value.as_bytes()));
    let by = By { caller: under_way::caller(), idempotency_key };
    let (jobs, many) = body::objects::<JobDraft>(&headers, body).await?;
    if many == Many::Array && wait.is_some() {
        return Err(Failure::value("Prefer", "wait beside an array", "absent: only one job is waited for"));
    }
    Failure::own_stream("stream", &stream)?;
    let mode = node.engine().catalogue().stream(&stream).await?.settings.mode;
    let mut submits = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.into_iter().enumerate() {
        let place = |failure: Failure| match many {
            Many::One => failure,
            Many::Array => Failure { detail: format!("event {index}: {}", failure.detail), ..failure },
        };
        submits.push(submit_of(job, &by, mode).map_err(place)?);
    }
    let explain = |error| match error {
        // A single job has no number that anybody gave it.
        JobError::Append(AppendError::Refused { refusal, .. }) if many == Many::One => refusal.into(),
        error => explained(error, &by),
    };
    if many == Many::Array {
        let submissions = node.engine().jobs().submit_many(&stream, submits, &by).await.map_err(explain)?;
        return Ok(batch(&node, &stream, submissions, explain).await);
    }
    let submit = submits.remove(0);
    let submitted = node.engine().jobs().submit_one(&stream, submit, &by).await.map_err(explain)?;
    // One that was made before may have ended long ago.
    let is_new = matches!(submitted.receipt, Receipt::New { .. } | Receipt::Scheduled { .. });
    if wait.is_some() || !is_new {
        let job = wait_for(&node, submitted.id, wait.unwrap_or_default()).await?;
        if job.status.is_settled() {
            let mut response = Json(job_view::told(&node, job.id).await?).into_response();
            response.headers_mut().extend(wait.map(prefer::applied));
            return Ok(response);
        }
    }
    let location = format!("/v1/jobs/{}", submitted.id);
    let location = HeaderValue::from_str(&location).expect("an id is a header value");
    let told = receipt(&node, &stream, &submitted).await?;
    let mut response = (StatusCode::ACCEPTED, Json(told)).into_response();
    response.headers_mut().insert(LOCATION, location);
    if let Some((name, value)) = wait.map(prefer::applied) {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

fn submit_of(job: JobDraft, by: &By, mode: Mode) -> Result<Submit> {
    let (processor, keep) = (job.processor.clone(), job.keep.clone());
    let keep = keep.as_deref().map(|keep| convert::length("keep", keep)).transpose()?;
    if keep.is_some_and(|keep| keep.is_zero()) {
        return Err(Failure::value("keep", "0", "more than nothing: nobody could read the end of the job"));
    }
    let event = job.into_event();
    if event.object.is_some() {
        return Err(Failure::value("object", "set", "absent in a job: change the object with an event"));
    }
    if event.expect_object_version.is_some() {
        return Err(convert::expects_no_object());
    }
    let draft = convert::draft(event, mode)?;
    if draft.dedup.is_some() && by.idempotency_key.is_some() {
        return Err(Failure::value("dedup_id", "set beside Idempotency-Key", "the only one of the two"));
    }
    Ok(Submit { draft, processor, keep })
}

fn explained(error: JobError, by: &By) -> Failure {
    match error {
        JobError::OtherBody { .. } if by.idempotency_key.is_some() => {
            let detail = "Idempotency-Key was used with another body; the job of that body stands";
            Failure::new(Code::IdempotencyConflict, detail)
        }
        error => error.into(),
    }
}

async fn receipt(node: &Node, stream: &str, submitted: &Submitted) -> Result<wire::JobReceipt> {
    let (id, status) = match &submitted.receipt {
        Receipt::New { id, .. } => (Some(*id), "waiting".to_owned()),
        Receipt::Scheduled { .. } => (None, "scheduled".to_owned()),
        // The job was made before, so it may be anywhere on its way by now.
        Receipt::Duplicate { .. } | Receipt::Stale { .. } => {
            let there = node.engine().jobs().detail(submitted.id).await?;
            (there.reference.map(|there| there.id), there.job.status.status().to_string())
        }
    };
    Ok(wire::JobReceipt {
        id: submitted.id.to_string(),
        reference: id.map(|id| convert::reference(stream, submitted.partition, id)),
        status,
    })
}

async fn batch(
    node: &Node,
    stream: &str,
    submissions: Submissions,
    explain: impl Fn(JobError) -> Failure,
) -> Response {
    let batch = submissions.batch.map(|batch| batch.to_string());
    let mut jobs = Vec::with_capacity(submissions.jobs.len());
    let mut status = StatusCode::ACCEPTED;
    for submitted in submissions.jobs {
        let told = match submitted {
            Ok(submitted) => receipt(node, stream, &submitted).await,
            Err(error) => Err(explain(error)),
        };
        jobs.push(match told {
            Ok(receipt) => wire::BatchedJob::accepted(receipt),
            Err(failure) => {
                status = StatusCode::MULTI_STATUS;
                wire::BatchedJob::refused(failure.problem())
            }
        });
    }
    (status, Json(wire::JobReceipts { batch, jobs })).into_response()
}

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
        Some(wait) => wait_for(&node, id, wait).await?,
        None => node.engine().jobs().get(id).await?,
    };
    let mut response = Json(job_view::told(&node, job.id).await?).into_response();
    if let Some((name, value)) = wait.map(prefer::applied) {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
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
    let jobs = node.engine().jobs();
    jobs.cancel(id, node.engine().env().token()).await?;
    let job = match wait {
        Some(wait) => seam::within(wait, ended(&node, id)).await.transpose()?,
        None => None,
    };
    let has_ended = job.is_some();
    let job = match job {
        Some(job) => job,
        None => jobs.get(id).await?,
    };
    let mut told = job_view::told(&node, job.id).await?;
    let mut status = StatusCode::OK;
    if !has_ended {
        "cancelling".clone_into(&mut told.status);
        status = StatusCode::ACCEPTED;
    }
    let mut response = (status, Json(told)).into_response();
    if let Some((name, value)) = wait.map(prefer::applied) {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// Resolves when a job has ended. A parked one has not, although nobody who waits for its result is kept waiting.
async fn ended(node: &Node, id: JobId) -> Result<Job> {
    loop {
        let job = node.engine().jobs().wait(id, LOOK_EVERY).await?;
        if job.status.status().is_terminal() {
            return Ok(job);
        }
        seam::pass(LOOK_EVERY).await;
    }
}

/// Waits for a job, but not beyond the end of this process.
async fn wait_for(node: &Node, id: JobId, wait: Duration) -> Result<Job> {
    tokio::select! {
        biased;
        job = node.engine().jobs().wait(id, wait) => Ok(job?),
        () = node.stopping() => Ok(node.engine().jobs().get(id).await?),
    }
}

fn id_of(text: &str) -> Result<JobId> {
    // A text that is no id of ours names no job, as one that was never given does.
    text.parse()
        .map_err(|refusal: laneway::core::Refusal| Failure::new(Code::JobNotFound, refusal.to_string()))
}
