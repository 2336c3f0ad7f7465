//! Jobs as they stand here and now: what the store has of them, and what only the node that runs them knows.

use laneway_core::{JobId, Status, Timestamp};

use super::facts::{LookError, Looker, Standing};
use super::why::Why;
use crate::job::{Detail, Job, JobError, JobStatus, ListJobs, Results, Word};

/// A job as it stands, with what only the node that runs it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStanding {
    /// What the store has of it.
    pub detail: Detail,
    /// In one word.
    pub status: Status,
    /// Attempts so far, the one that runs included.
    pub attempts: u32,
    /// When its last run began, if it is known.
    pub started_at: Option<Timestamp>,
    /// Why it does not go on.
    pub why: Why,
}

/// A page of jobs as they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingJobs {
    /// The jobs, without their results.
    pub items: Vec<JobStanding>,
    /// The cursor of the next page; nothing when this is the last.
    pub next: Option<String>,
    /// It was gathered from what moves meanwhile: a job that waits or runs may be missing or shown twice.
    pub partial: bool,
}

impl Looker {
    /// A job with everything that can be told of it, here and now.
    pub async fn job(&self, id: JobId) -> Result<JobStanding, LookError> {
        self.standing_of(self.jobs.get(id).await?).await
    }

    /// The same of a job that was looked at just before, such as one that was waited for.
    pub async fn standing_of(&self, job: Job) -> Result<JobStanding, LookError> {
        self.standing_job(self.jobs.detail_of(job).await?).await
    }

    /// Jobs with everything that can be told of them but their results, at most 10,000; one answer each, in order.
    pub async fn jobs(&self, ids: &[JobId]) -> Result<Vec<Result<JobStanding, JobError>>, LookError> {
        let mut standing = Vec::with_capacity(ids.len());
        for detail in self.jobs.query(ids, Results::Without).await? {
            standing.push(match detail {
                Ok(detail) => Ok(self.standing_job(detail).await?),
                Err(error) => Err(error),
            });
        }
        Ok(standing)
    }

    /// Lists jobs as [`Jobs::list`](crate::job::Jobs::list) does, each in the status it has here and now: one that runs
    /// is found as running from its start on. A page may be shorter than asked for and still have a next one.
    pub async fn list_jobs(&self, wanted: &ListJobs) -> Result<StandingJobs, LookError> {
        let listed = self.jobs.list_by(wanted, Word::Owners).await?;
        let mut items = Vec::with_capacity(listed.items.len());
        for detail in listed.items {
            let job = self.standing_job(detail).await?;
            if wanted.status.is_none_or(|status| status == job.status) {
                items.push(job);
            }
        }
        Ok(StandingJobs { items, next: listed.next, partial: listed.partial })
    }

    async fn standing_job(&self, detail: Detail) -> Result<JobStanding, LookError> {
        let Standing { why, status, runs } = self.stands(&detail.job).await?;
        let stored = &detail.job.status;
        let attempts = match (&runs, stored) {
            (Some(runs), _) => runs.attempt,
            // A record that says of itself that it runs, and does not.
            (None, JobStatus::Pending { lane: Some(record), .. }) if status != Status::Running => {
                record.attempts
            }
            (None, _) => stored.attempts(),
        };
        let since = runs.map(|runs| runs.since).filter(|since| since.0 > 0);
        let started_at = match status {
            Status::Running => since.or(stored.started_at()),
            Status::Ended(_) => stored.started_at(),
            _ => None,
        };
        Ok(JobStanding { status, attempts, started_at, why, detail })
    }
}
