//! A job with everything that is known of it.

use laneway::JobId;
use laneway::engine::job::{Job, JobStatus};
use laneway::engine::observe::JobStanding;
use laneway_client::wire;

use super::error::Result;
use super::wire as convert;
use crate::node::Node;

/// A job as it stands now, with its result.
pub(super) async fn told(node: &Node, id: JobId) -> Result<wire::Job> {
    Ok(job(node.engine().looker().job(id).await?))
}

/// The same of a job that was looked at just before.
pub(super) async fn told_of(node: &Node, looked_at: Job) -> Result<wire::Job> {
    Ok(job(node.engine().looker().standing_of(looked_at).await?))
}

/// A job as it goes over the wire.
pub(super) fn job(standing: JobStanding) -> wire::Job {
    let JobStanding { detail, status: word, attempts, started_at, why } = standing;
    let status = &detail.job.status;
    let convert::Named { key, key_b64 } = convert::named(detail.key.as_ref());
    let keep_until = match status {
        JobStatus::Ended { keep_until, .. } => Some(*keep_until),
        JobStatus::Scheduled { .. } | JobStatus::Pending { .. } => None,
    };
    let why = (!word.is_terminal()).then(|| convert::why(&why));
    let (result, result_b64) = status.result().map(|result| convert::payload(result)).unwrap_or_default();
    wire::Job {
        id: detail.job.id.to_string(),
        reference: detail.reference.as_ref().map(ToString::to_string),
        key,
        key_b64,
        kind: detail.kind.as_ref().and_then(convert::kind),
        status: word.to_string(),
        attempt: attempts,
        created_at: convert::date_of(detail.created_at),
        started_at: started_at.map(convert::date_of),
        finished_at: status.finished_at().map(convert::date_of),
        keep_until: keep_until.map(convert::date_of),
        progress: status.progress().and_then(|words| convert::payload(words).0),
        result,
        result_b64,
        result_left_out: false,
        error: status.error(),
        retry_of: detail.retry_of.map(|id| id.to_string()),
        why,
        stream: detail.stream,
        processor: detail.processor,
    }
}
