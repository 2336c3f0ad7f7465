//! Many jobs: list them by a filter, look at them or cancel them by their ids or batch.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::future::join_all;
use laneway::JobId;
use laneway::core::limits::RESULT_BYTES_MAX;
use laneway::engine::job::{BatchId, ListJobs};
use laneway_client::wire;

use super::answer::Json;
use super::error::{Failure, Result};
use super::job::{ends_within, id_of};
use super::paging::{Page, Paging};
use super::prefer::Wait;
use super::{body, job_view, prefer, wire as convert};
use crate::node::Node;

/// Results of one answer, all together; the one that goes beyond it is the last.
const RESULTS_BYTES_MAX: usize = RESULT_BYTES_MAX;

/// Jobs by stream, partition and place: what is scheduled, what waits, then what has ended, the oldest first in each. There is
/// no order by time over partitions. Without results.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "jobs",
    params(
        ("stream" = Option<String>, Query, description = "only of this stream"),
        ("status" = Option<String>, Query, description = "only in this status, such as parked or done"),
        ("key" = Option<String>, Query, description = "only of the lane with this key"),
        ("key_b64" = Option<String>, Query, description = "the key in base64, when it is no UTF-8"),
        ("type" = Option<String>, Query, description = "only of this type, with * for any ending"),
        ("batch" = Option<String>, Query, description = "only of this batch, as its submission answered it"),
        ("since" = Option<String>, Query, description = "only accepted at this date or later"),
        ("cursor" = Option<String>, Query, description = "where to go on: what the page before said, with the same filter"),
        ("limit" = Option<usize>, Query, description = "at most so many, 1 to 1,000; default 100"),
    ),
    responses((status = 200, body = wire::Jobs, description = "a page; Link says where the next one is")),
)]
pub(super) async fn list(State(node): State<Node>, uri: Uri) -> Result<Page<wire::Jobs>> {
    let filters = ["stream", "status", "key", "key_b64", "type", "batch", "since"];
    let paging = Paging::read(&uri, &filters)?;
    let filter = &paging.filter;
    let wanted = ListJobs {
        stream: filter.text("stream"),
        key: convert::key(filter.bytes("key"), filter.bytes("key_b64"))?,
        kind: filter.text("type"),
        status: filter.text("status").map(|text| text.parse()).transpose()?,
        since: filter.text("since").map(|text| convert::date("since", &text)).transpose()?,
        batch: filter.text("batch").map(|text| text.parse::<BatchId>()).transpose()?,
        cursor: paging.place()?,
        limit: paging.limit,
    };
    node.engine().catalogue().refresh().await?;
    let listed = node.engine().looker().list_jobs(&wanted).await?;
    let next = listed.next.map(|next| paging.cursor(&next));
    let items = listed.items.into_iter().map(job_view::job).collect();
    Ok(paging.answer(wire::Jobs { items, next: next.clone(), partial: listed.partial }, next.as_deref()))
}

/// Jobs by their ids or batch, as they stand; one that there is not says why.
#[utoipa::path(
    post, path = "/v1/jobs/query", tag = "jobs",
    request_body = wire::JobsNamed,
    responses((status = 200, body = wire::NamedJobs, description = "one entry each, in order")),
)]
pub(super) async fn query(
    State(node): State<Node>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<wire::NamedJobs>> {
    let asked: wire::JobsNamed = body::object(&headers, body).await?;
    let named = Named::read(&asked)?;
    let mut found = node.engine().looker().jobs(&named.known()).await?.into_iter();
    let mut room = RESULTS_BYTES_MAX;
    let mut items = Vec::with_capacity(named.0.len());
    for (text, id) in named.0 {
        let job = match id {
            Ok(_) => found.next().expect("one answer each").map_err(Failure::from).map(job_view::job),
            Err(failure) => Err(failure),
        };
        let mut item = wire::NamedJob { id: text, job: None, problem: None };
        match job {
            Ok(mut job) => {
                if asked.results {
                    add_result(&node, &mut job, &mut room).await?;
                }
                item.job = Some(Box::new(job));
            }
            Err(failure) => item.problem = Some(failure.problem()),
        }
        items.push(item);
    }
    Ok(Json(wire::NamedJobs { items }))
}

/// Adds what a handler returned, as long as there is room for it.
async fn add_result(node: &Node, job: &mut wire::Job, room: &mut usize) -> Result<()> {
    if job.finished_at.is_none() {
        return Ok(());
    }
    if *room == 0 {
        job.result_left_out = true;
        return Ok(());
    }
    let ended = match node.engine().jobs().get(id_of(&job.id)?).await {
        // Its time was over at this very moment.
        Err(laneway::engine::job::JobError::Gone(_)) => return Ok(()),
        ended => ended?,
    };
    if let Some(result) = ended.status.result() {
        *room = room.saturating_sub(result.len());
        (job.result, job.result_b64) = convert::payload(result);
    }
    Ok(())
}

/// Asks for jobs to be cancelled, by their ids or batch: 202 while they are, 200 with `Prefer: wait=N` when all have ended
/// in time. Those of a lane are asked to stop from the last one on, so that none is started by the end of another.
#[utoipa::path(
    post, path = "/v1/jobs/cancel", tag = "jobs",
    params(("Prefer" = Option<String>, Header, description = "wait=N: wait so many seconds, at most 60, for their ends")),
    request_body = wire::JobsNamed,
    responses(
        (status = 202, body = wire::CancelledJobs, description = "cancelling"),
        (status = 200, body = wire::CancelledJobs, description = "all have ended, or had before"),
    ),
)]
pub(super) async fn cancel(State(node): State<Node>, headers: HeaderMap, body: Body) -> Result<Response> {
    let wait = prefer::wait(&headers)?;
    let asked: wire::JobsNamed = body::object(&headers, body).await?;
    if asked.results {
        return Err(Failure::value("results", "true", "absent: only a query answers results"));
    }
    let named = Named::read(&asked)?;
    let mut cancelled = node.engine().jobs().cancel_many(&named.known()).await.into_iter();
    let items = named.0.into_iter().map(|(text, id)| {
        let id =
            id.and_then(|id| cancelled.next().expect("one answer each").map(|()| id).map_err(Failure::from));
        (text, id)
    });
    let items: Vec<_> = items.collect();
    let wait_each = wait.unwrap_or_default().0;
    let items = join_all(items.into_iter().map(|(text, id)| cancelled_job(&node, text, id, wait_each))).await;
    let open = items.iter().any(|item| item.status.as_deref() == Some(CANCELLING));
    let count = items.iter().filter(|item| item.accepted).count() as u64;
    let status = if open { StatusCode::ACCEPTED } else { StatusCode::OK };
    let mut response = (status, Json(wire::CancelledJobs { count, items })).into_response();
    response.headers_mut().extend(wait.map(Wait::applied));
    Ok(response)
}

/// The word for a job that was asked to stop and has not ended.
const CANCELLING: &str = "cancelling";

async fn cancelled_job(node: &Node, text: String, id: Result<JobId>, wait: Duration) -> wire::CancelledJob {
    let accepted = id.is_ok();
    let word = match id {
        Ok(id) => after_cancel(node, id, wait).await,
        Err(failure) => Err(failure),
    };
    let (status, failure) = match word {
        Ok(word) => (Some(word), None),
        Err(failure) => (None, Some(failure)),
    };
    let (code, detail) = failure.map(|failure| (failure.code.name().to_owned(), failure.detail)).unzip();
    wire::CancelledJob { id: text, accepted, status, code, detail }
}

/// The word for a job that was asked to stop, when it has ended or the time is over.
async fn after_cancel(node: &Node, id: JobId, wait: Duration) -> Result<String> {
    if wait.is_zero() || !ends_within(node, id, wait).await? {
        return Ok(CANCELLING.to_owned());
    }
    Ok(node.engine().jobs().get(id).await?.status.status().to_string())
}

/// Jobs that somebody has named: each text, and the id it is.
struct Named(Vec<(String, Result<JobId>)>);

impl Named {
    fn read(asked: &wire::JobsNamed) -> Result<Self> {
        let max = body::EVENTS_MAX;
        let ids: Vec<(String, Result<JobId>)> = match (&asked.batch, asked.ids.is_empty()) {
            (Some(_), false) => {
                return Err(Failure::value("batch", "set beside ids", "the only one of the two"));
            }
            (None, true) => {
                return Err(Failure::value("ids", "absent", format!("1 to {max} ids, or batch set")));
            }
            (Some(batch), true) => {
                let ids = batch.parse::<BatchId>()?.ids();
                ids.into_iter().map(|id| (id.to_string(), Ok(id))).collect()
            }
            (None, false) => asked.ids.iter().map(|text| (text.clone(), id_of(text))).collect(),
        };
        if ids.len() > max {
            return Err(Failure::value("ids", format!("{} ids", ids.len()), format!("1 to {max}")));
        }
        Ok(Self(ids))
    }

    /// Those that are ids at all.
    fn known(&self) -> Vec<JobId> {
        self.0.iter().filter_map(|(_, id)| id.as_ref().ok().copied()).collect()
    }
}
