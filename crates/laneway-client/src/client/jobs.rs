//! Jobs: submit, look, wait, cancel, run again, take and forget.

use std::time::Duration;

use http::header::HeaderName;
use http::{Method, StatusCode};

use super::{Answer, Client, dedup_id, escaped, with_query};
use crate::error::ClientError;
use crate::wire::{
    CancelledJobs, Job, JobDraft, JobFilter, JobReceipt, JobReceipts, Jobs, JobsNamed, NamedJob, NamedJobs,
};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What came of a submission: the job if it has ended in time, else its receipt.
///
/// ```no_run
/// use std::time::Duration;
/// use laneway_client::wire::{JobDraft, json};
/// use laneway_client::{Client, Submission};
///
/// # async fn example(client: Client) -> Result<(), laneway_client::ClientError> {
/// let job = JobDraft { key: Some("ann".to_owned()), data: Some(json(&42)?), ..JobDraft::default() };
/// match client.submit("orders", &job, Some(Duration::from_secs(10)), None).await? {
///     Submission::Settled(job) => println!("{}: {:?}", job.status, job.result),
///     Submission::Accepted(receipt) => println!("look again: {}", receipt.id),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub enum Submission {
    /// It was accepted.
    Accepted(JobReceipt),
    /// It has ended, or is parked, within the time given.
    Settled(Box<Job>),
}

impl Client {
    /// Submits a job; waits for its end for so long, if at all. With an idempotency key the same body again is the same
    /// job; without one and without a `dedup_id` it gets the latter.
    pub async fn submit(
        &self,
        stream: &str,
        job: &JobDraft,
        wait: Option<Duration>,
        idempotency_key: Option<&str>,
    ) -> Result<Submission, ClientError> {
        let path = format!("/v1/streams/{}/jobs", escaped(stream));
        let wait = wait.map(preferred);
        let headers = [(PREFER, wait.as_deref()), (IDEMPOTENCY_KEY, idempotency_key)];
        let headers: Vec<_> = headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let body = match idempotency_key {
            Some(_) => serde_json::to_vec(job)?,
            None => serde_json::to_vec(&with_id(job))?,
        };
        self.send_once_done(&path, &headers, &body).await?.submission()
    }

    /// Submits jobs together; the answers are in their order. Those without a `dedup_id` get one.
    pub async fn submit_many(&self, stream: &str, jobs: &[JobDraft]) -> Result<JobReceipts, ClientError> {
        let body = serde_json::to_vec(&jobs.iter().map(with_id).collect::<Vec<_>>())?;
        self.send_once_done(&format!("/v1/streams/{}/jobs", escaped(stream)), &[], &body).await?.read()
    }

    /// A job as it stands, or as it stands when it has ended or this time is over.
    pub async fn job(&self, id: &str, wait: Option<Duration>) -> Result<Job, ClientError> {
        self.preferring(Method::GET, &format!("/v1/jobs/{}", escaped(id)), wait, None).await?.read()
    }

    /// Asks for a job to be cancelled; waits for its end for so long, if at all.
    pub async fn cancel(&self, id: &str, wait: Option<Duration>) -> Result<Job, ClientError> {
        self.preferring(Method::POST, &format!("/v1/jobs/{}/cancel", escaped(id)), wait, None).await?.read()
    }

    /// Jobs that fit a filter, a page at a time.
    pub async fn jobs(&self, filter: &JobFilter) -> Result<Jobs, ClientError> {
        let limit = filter.limit.map(|limit| limit.to_string());
        let texts = [
            ("stream", filter.stream.as_deref().map(str::as_bytes)),
            ("status", filter.status.as_deref().map(str::as_bytes)),
            ("key", filter.key.as_deref()),
            ("type", filter.kind.as_deref().map(str::as_bytes)),
            ("batch", filter.batch.as_deref().map(str::as_bytes)),
            ("since", filter.since.as_deref().map(str::as_bytes)),
            ("cursor", filter.cursor.as_deref().map(str::as_bytes)),
            ("limit", limit.as_deref().map(str::as_bytes)),
        ];
        self.call(Method::GET, &with_query("/v1/jobs", texts)).await
    }

    /// Jobs by their ids or batch, as they stand.
    pub async fn query_jobs(&self, named: &JobsNamed) -> Result<Vec<NamedJob>, ClientError> {
        Ok(self.call_with::<NamedJobs>(Method::POST, "/v1/jobs/query", named).await?.items)
    }

    /// Asks for jobs to be cancelled, by their ids or batch; waits for their ends for so long, if at all.
    pub async fn cancel_jobs(
        &self,
        named: &JobsNamed,
        wait: Option<Duration>,
    ) -> Result<CancelledJobs, ClientError> {
        let body = Some(serde_json::to_vec(named)?);
        self.preferring(Method::POST, "/v1/jobs/cancel", wait, body).await?.read()
    }

    /// Runs a job again: one that has ended as a new job, which names it in `retry_of`; one that is parked or waits for
    /// another attempt itself, now. Waits for its end for so long, if at all.
    pub async fn retry_job(&self, id: &str, wait: Option<Duration>) -> Result<Submission, ClientError> {
        let path = format!("/v1/jobs/{}/retry", escaped(id));
        self.preferring(Method::POST, &path, wait, None).await?.submission()
    }

    /// Reads the end of a job and lets it be forgotten ten minutes later.
    pub async fn take_job(&self, id: &str) -> Result<Job, ClientError> {
        self.call(Method::POST, &format!("/v1/jobs/{}/take", escaped(id))).await
    }

    /// Forgets a job that has ended; one that is gone already is fine.
    pub async fn delete_job(&self, id: &str) -> Result<(), ClientError> {
        let path = format!("/v1/jobs/{}", escaped(id));
        self.send(Method::DELETE, &path, &[], None).await?.succeeded().map(drop)
    }

    async fn preferring(
        &self,
        method: Method,
        path: &str,
        wait: Option<Duration>,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, ClientError> {
        let wait = wait.map(preferred);
        let headers: Vec<_> = wait.iter().map(|wait| (PREFER, wait.as_str())).collect();
        self.send(method, path, &headers, body).await
    }
}

impl Answer {
    /// The job if it was waited for and has ended, else its receipt.
    fn submission(self) -> Result<Submission, ClientError> {
        let answer = self.succeeded()?;
        if answer.status == StatusCode::OK {
            return Ok(Submission::Settled(answer.read()?));
        }
        Ok(Submission::Accepted(answer.read()?))
    }
}

fn with_id(job: &JobDraft) -> JobDraft {
    JobDraft { dedup_id: job.dedup_id.clone().or_else(|| Some(dedup_id())), ..job.clone() }
}

/// The preference for a wait: whole seconds, and never less than was asked for.
fn preferred(wait: Duration) -> String {
    format!("wait={}", wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_never_shorter_than_asked_for() {
        assert_eq!(preferred(Duration::from_millis(500)), "wait=1");
        assert_eq!(preferred(Duration::from_secs(3)), "wait=3");
    }
}
