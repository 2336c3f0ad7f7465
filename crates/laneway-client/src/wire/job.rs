//! Jobs: the answer to a submission, and a job as it stands.

use serde::{Deserialize, Serialize};

use super::lane::Why;
use super::payload::{Json, present};
use super::problem::Problem;

/// A job that was accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobReceipt {
    /// Its id: enough to find it again.
    pub id: String,
    /// The one name of its event; nothing while it is scheduled.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Where it stands.
    pub status: String,
    /// The job that it runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
}

/// Jobs that were submitted together.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobReceipts {
    /// Names all that were accepted; nothing if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// One entry each, in order.
    pub jobs: Vec<BatchedJob>,
}

/// What a submission is answered with: as it was asked, one receipt or those of an array.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum JobsAccepted {
    /// Of one job.
    One(JobReceipt),
    /// Of an array.
    Many(JobReceipts),
}

/// What became of one job of several.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchedJob {
    /// Its id, if it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The one name of its event.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why it was not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

impl BatchedJob {
    /// One that was accepted.
    pub fn accepted(JobReceipt { id, reference, status, retry_of: _ }: JobReceipt) -> Self {
        Self { id: Some(id), reference, status: Some(status), problem: None }
    }

    /// One that was not.
    pub fn refused(problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }
}

/// A job as it stands.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The one name of its event; nothing while it is scheduled.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Its stream.
    pub stream: String,
    /// Its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its lane, when the key is no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_b64: Option<String>,
    /// Its type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The processor that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// In one word: `scheduled`, `waiting`, `running`, `retrying` or `parked`; `cancelling` while a cancel is on its way;
    /// or how it ended: `done`, `failed`, `skipped`, `superseded`, `cancelled` or `expired`.
    pub status: String,
    /// Attempts so far, the one that runs included.
    pub attempt: u32,
    /// When it was accepted.
    pub created_at: String,
    /// When its last run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// Until when its end can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_until: Option<String>,
    /// How far its handler says it is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub progress: Option<Json>,
    /// What its handler returned.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub result: Option<Json>,
    /// What its handler returned, when it is no JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_b64: Option<String>,
    /// It has a result that would have made the answer too long: read it with `GET /v1/jobs/{id}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result_left_out: bool,
    /// What went wrong last, with its causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The job that it runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// Why it does not go on; nothing once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

/// Jobs that fit a filter.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Jobs {
    /// One entry each, without results. May be fewer than asked for, or none, although there is a next page.
    pub items: Vec<Job>,
    /// The cursor of the next page; nothing when this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// It was gathered from what moves meanwhile: a job that waits or runs may be missing or shown twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// Which jobs are listed. What is absent does not matter.
///
/// ```no_run
/// use laneway_client::Client;
/// use laneway_client::wire::JobFilter;
///
/// # async fn example(client: Client) -> Result<(), laneway_client::ClientError> {
/// let mut parked = JobFilter { status: Some("parked".to_owned()), ..JobFilter::default() };
/// loop {
///     let page = client.jobs(&parked).await?;
///     for job in page.items {
///         println!("{} {}", job.id, job.error.unwrap_or_default());
///     }
///     let Some(next) = page.next else { break };
///     parked.cursor = Some(next);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Of this stream.
    pub stream: Option<String>,
    /// In this status.
    pub status: Option<String>,
    /// Of the lane with this key.
    pub key: Option<Vec<u8>>,
    /// Of this type, with `*` for any ending.
    pub kind: Option<String>,
    /// Of this batch, as a submission answered it.
    pub batch: Option<String>,
    /// Accepted at this date or later.
    pub since: Option<String>,
    /// Where to go on: what the page before said, with the same filter.
    pub cursor: Option<String>,
    /// How many at most, 1 to 1,000. Default 100.
    pub limit: Option<usize>,
}

/// Which jobs are meant: by their ids, or by the batch they were submitted in. Up to 1,000.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct JobsNamed {
    /// Their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Or the batch, as the submission answered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Query only: adds results, up to 16 MiB of them. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub results: bool,
}

/// Jobs that were asked for; one entry each, in order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedJobs {
    /// One entry each: those of a batch by partition and number.
    pub items: Vec<NamedJob>,
}

/// One job of several that were asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedJob {
    /// Its id.
    pub id: String,
    /// The job as it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Box<Job>>,
    /// Why there is none, such as `job_gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// What became of the wish to cancel jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelledJobs {
    /// Those that were asked to stop.
    pub count: u64,
    /// One entry each: those of a batch by partition and number.
    pub items: Vec<CancelledJob>,
}

/// What became of the wish to cancel one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CancelledJob {
    /// Its id.
    pub id: String,
    /// Whether it was asked to stop.
    pub accepted: bool,
    /// `cancelling`, or how it ended if that was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Why not: `already_finished`, `job_not_found` or `job_gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
