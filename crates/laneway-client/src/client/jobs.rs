//! Jobs.

use std::time::Duration;

use http::header::HeaderName;
use http::{Method, StatusCode};

use super::{Client, dedup_id, escaped};
use crate::error::ClientError;
use crate::wire::{Job, JobDraft, JobReceipt, JobReceipts};

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
        let answer = self.send_once_done(&path, &headers, &body).await?.succeeded()?;
        if answer.status == StatusCode::OK {
            return Ok(Submission::Settled(answer.read()?));
        }
        Ok(Submission::Accepted(answer.read()?))
    }

    /// Submits jobs together; the answers are in their order. Those without a `dedup_id` get one.
    pub async fn submit_many(&self, stream: &str, jobs: &[JobDraft]) -> Result<JobReceipts, ClientError> {
        let body = serde_json::to_vec(&jobs.iter().map(with_id).collect::<Vec<_>>())?;
        self.send_once_done(&format!("/v1/streams/{}/jobs", escaped(stream)), &[], &body).await?.read()
    }

    /// A job as it stands, or as it stands when it has ended or this time is over.
    pub async fn job(&self, id: &str, wait: Option<Duration>) -> Result<Job, ClientError> {
        let wait = wait.map(preferred);
        let headers: Vec<_> = wait.iter().map(|wait| (PREFER, wait.as_str())).collect();
        self.send(Method::GET, &format!("/v1/jobs/{}", escaped(id)), &headers, None).await?.read()
    }

    /// Asks for a job to be cancelled; waits for its end for so long, if at all.
    pub async fn cancel(&self, id: &str, wait: Option<Duration>) -> Result<Job, ClientError> {
        let wait = wait.map(preferred);
        let headers: Vec<_> = wait.iter().map(|wait| (PREFER, wait.as_str())).collect();
        self.send(Method::POST, &format!("/v1/jobs/{}/cancel", escaped(id)), &headers, None).await?.read()
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
