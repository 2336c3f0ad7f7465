//! Jobs: submit one or many.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use laneway::Mode;
use laneway::core::Refusal;
use laneway::core::limits::JOB_KEEP_MAX;
use laneway::core::store::Receipt;
use laneway::engine::job::{By, Job, JobError, Submissions, Submit, Submitted};
use laneway::engine::log::AppendError;
use laneway_client::wire::{self, JobDraft};

use super::answer::Json;
use super::body::Many;
use super::code::Code;
use super::error::{Failure, Result};
use super::job::wait_for;
use super::prefer::Wait;
use super::{body, job_view, prefer, under_way, wire as convert};
use crate::node::Node;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Seconds after which it is worth looking for the end of a job.
const LOOK_AFTER_SECS: u32 = 1;

/// Submits a job, or an array of them. With `Prefer: wait=N` one job is waited for: 200 when it has ended, or is parked,
/// in time. An array is not waited for: its jobs are looked at one by one.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/jobs", tag = "jobs",
    params(
        ("stream" = String, Path, description = "the stream's name"),
        ("Prefer" = Option<String>, Header, description = "wait=N: wait so many seconds, at most 60, for the end of one job; refused beside an array"),
        ("Idempotency-Key" = Option<String>, Header, description = "the same again with the same body is the same job; one that has ended is answered at once"),
    ),
    request_body(content = wire::JobsBody, description = "one job, or an array of up to 1,000"),
    responses(
        (status = 202, body = wire::JobsAccepted, description = "accepted; Location says where to look, Retry-After when; an array is answered with its batch and a receipt each"),
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
    let by = by(&headers);
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
        let job = wait_for(&node, submitted.id, wait.unwrap_or_default().0).await?;
        if job.status.is_settled() {
            return settled(&node, job, wait).await;
        }
    }
    Ok(accepted(receipt(&node, &stream, &submitted).await?, wait))
}

/// Who asks, and under which name of its own.
pub(super) fn by(headers: &HeaderMap) -> By {
    let idempotency_key = headers.get(IDEMPOTENCY_KEY).map(|value| Bytes::copy_from_slice(value.as_bytes()));
    By { caller: under_way::caller(), idempotency_key }
}

/// A job has ended, or is parked, in time.
pub(super) async fn settled(node: &Node, job: Job, wait: Option<Wait>) -> Result<Response> {
    let mut response = Json(job_view::told_of(node, job).await?).into_response();
    response.headers_mut().extend(wait.map(Wait::applied));
    Ok(response)
}

/// A job was accepted, and is to be looked for.
pub(super) fn accepted(receipt: wire::JobReceipt, wait: Option<Wait>) -> Response {
    let location =
        HeaderValue::from_str(&format!("/v1/jobs/{}", receipt.id)).expect("an id is a header value");
    let mut response = (StatusCode::ACCEPTED, Json(receipt)).into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(RETRY_AFTER, HeaderValue::from(LOOK_AFTER_SECS));
    headers.extend(wait.map(Wait::applied));
    response
}

fn submit_of(job: JobDraft, by: &By, mode: Mode) -> Result<Submit> {
    let (processor, keep) = (job.processor.clone(), job.keep.clone());
    let keep = keep.as_deref().map(|keep| convert::length("keep", keep)).transpose()?;
    if keep.is_some_and(|keep| keep.is_zero()) {
        return Err(Failure::value("keep", "0", "more than nothing: nobody could read the end of the job"));
    }
    if let Some(keep) = keep {
        Refusal::check_longest("keep", keep, JOB_KEEP_MAX)?;
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

pub(super) fn explained(error: JobError, by: &By) -> Failure {
    match error {
        JobError::OtherBody { .. } if by.idempotency_key.is_some() => {
            let detail = "Idempotency-Key was used with another body; the job of that body stands";
            Failure::new(Code::IdempotencyConflict, detail)
        }
        error => error.into(),
    }
}

pub(super) async fn receipt(node: &Node, stream: &str, submitted: &Submitted) -> Result<wire::JobReceipt> {
    let (id, status) = match &submitted.receipt {
        Receipt::New { id, .. } => (Some(*id), "waiting".to_owned()),
        Receipt::Scheduled { .. } => (None, "scheduled".to_owned()),
        // The job was made before, so it may be anywhere on its way by now.
        Receipt::Duplicate { .. } | Receipt::Stale { .. } => {
            let there = node.engine().looker().job(submitted.id).await?;
            (there.detail.reference.map(|there| there.id), there.status.to_string())
        }
    };
    Ok(wire::JobReceipt {
        id: submitted.id.to_string(),
        reference: id.map(|id| convert::reference(stream, submitted.partition, id)),
        status,
        retry_of: None,
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
