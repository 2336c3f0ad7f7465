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
    pub fn accepted(JobReceipt { id, reference, status }: JobReceipt) -> Self {
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
    /// In one word.
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
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The job that it runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// Why it does not go on; nothing once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}
