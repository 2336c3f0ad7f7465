//! Cancel jobs and run them again.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use laneway_core::limits::{JOB_KEEP_MAX, PRIORITY_MAX};
use laneway_core::store::{Jobs as JobsCall, Request, RequestOp};
use laneway_core::{
    Draft, EventId, JobId, JobNumber, LaneName, ProcessorId, Seat, Shard, Status, StoreError, TokenId, Topic,
};

use super::error::JobError;
use super::headers::{self, caller_of};
use super::jobs::{Jobs, Results, processor_name};
use super::status::JobStatus;
use super::submit::{By, Submitted};
use crate::lane::Filed;
use crate::log::events_of;

/// What a retry came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retried {
    /// The job had ended: this new one runs the same at its lane's end.
    Again(Submitted),
    /// The job waits for another attempt or is parked: its owner was asked to run it now, and does so when it has
    /// applied this request; until then the job stands as it was.
    Now(Filed),
}

impl Jobs {
    /// Asks for a job to be cancelled. It ends when its owner says so; see [`wait`](Self::wait).
    ///
    /// # Errors
    /// When it has ended already.
    pub async fn cancel(&self, id: JobId, token: TokenId) -> Result<(), JobError> {
        let shard = id.shard();
        let event = match self.state(id).await? {
            JobStatus::Ended { .. } => return Err(JobError::AlreadyFinished(id)),
            JobStatus::Pending { event, .. } => event,
            JobStatus::Scheduled { .. } => {
                let JobNumber::Schedule(ticket) = id.number() else { return Err(JobError::Unknown(id)) };
                match self.store.jobs(JobsCall::CancelScheduled { shard, ticket }).await {
                    Ok(_) => return Ok(()),
                    // It joined its lane meanwhile.
                    Err(StoreError::Conflict(_)) => match self.state(id).await? {
                        JobStatus::Pending { event, .. } => event,
                        _ => return Err(JobError::AlreadyFinished(id)),
                    },
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let processor = self.responder_of(id, event).await?;
        self.ask(Seat { shard, processor }, token, RequestOp::Cancel { id: event }).await.map(|_| ())
    }

    /// Asks for many jobs to be cancelled; one answer each, in order. Those of a batch are
    /// [`BatchId::ids`](super::BatchId::ids).
    ///
    /// Within a partition the last one is asked for first: otherwise the end of one would let the next of its lane
    /// start before its own request is read. Carried to its end if the caller drops it.
    pub async fn cancel_many(&self, ids: &[JobId]) -> Vec<Result<(), JobError>> {
        let (jobs, ids) = (self.clone(), ids.to_vec());
        self.env.finish(async move { jobs.cancel_each(&ids).await }).await
    }

    async fn cancel_each(&self, ids: &[JobId]) -> Vec<Result<(), JobError>> {
        let mut parts: BTreeMap<Shard, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            parts.entry(id.shard()).or_default().push(place);
        }
        let cancels = parts.into_values().map(|mut places| async move {
            places.sort_unstable_by_key(|place| Reverse(ids[*place].number()));
            let mut answers = Vec::with_capacity(places.len());
            for place in places {
                answers.push((place, self.cancel(ids[place], self.env.token()).await));
            }
            answers
        });
        let mut answers: Vec<_> = join_all(cancels).await.into_iter().flatten().collect();
        answers.sort_unstable_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// Runs a job again: one that has ended as a new job at its lane's end, which names it in `retry_of`; one that is
    /// parked or waits for another attempt itself, now.
    ///
    /// # Errors
    /// When it waits or runs, or when its event is gone.
    pub async fn retry(&self, id: JobId, by: &By) -> Result<Retried, JobError> {
        let status = self.state(id).await?;
        match (status.status(), &status) {
            (Status::Ended(_), _) => self.submit_again(id, &status, by).await.map(Retried::Again),
            (Status::Parked | Status::Retrying, JobStatus::Pending { event, key, .. }) => {
                let seat = Seat { shard: id.shard(), processor: self.responder_of(id, *event).await? };
                let lane = key.clone().map_or(LaneName::Event(*event), LaneName::Key);
                let filed = self.ask(seat, self.env.token(), RequestOp::Retry { lane, id: *event }).await?;
                Ok(Retried::Now(filed))
            }
            (status, _) => Err(JobError::NotRetryable { id, status }),
        }
    }

    async fn submit_again(&self, id: JobId, status: &JobStatus, by: &By) -> Result<Submitted, JobError> {
        let shard = id.shard();
        let event = status.event().ok_or(JobError::EventGone(id))?;
        let event = events_of(&*self.store, shard, vec![event]).await?.into_iter().next();
        let event = event.ok_or(JobError::EventGone(id))?;
        let mark = event.job.ok_or(JobError::EventGone(id))?;
        let info = self.catalogue.stream_of(shard.stream).await?;
        if processor_name(&info, mark.responder).is_none() {
            let processor = format!("number {}", mark.responder);
            return Err(JobError::NoSuchProcessor { processor, stream: info.name.clone() });
        }
        let by = By { caller: by.caller.clone().or_else(|| caller_of(&event.headers)), ..by.clone() };
        by.check()?;
        let mut draft = Draft::new(event.key, event.kind, event.data);
        draft.headers = headers::without_reserved(&event.headers);
        // Of latest mode too: what is not its lane's newest any more is stale.
        (draft.generation, draft.incarnation) = (event.generation, event.incarnation);
        (draft.delete, draft.priority) = (event.delete, event.priority.min(PRIORITY_MAX));
        draft.ttl = event.expires_at.map(|at| Duration::from_micros(at.0.saturating_sub(event.time.0)));
        // One that was submitted before there was a limit is kept as long as may be.
        let keep = mark.keep.min(JOB_KEEP_MAX);
        let draft = self.made(draft, mark.responder, keep, &by, None, Some(id))?;
        let submitted = self.append(&info.name, vec![draft]).await?.into_iter().next();
        submitted.unwrap_or_else(|| Err(JobError::NotMade("the store answered nothing".to_owned())))
    }

    async fn state(&self, id: JobId) -> Result<JobStatus, JobError> {
        Ok(self.look(&[id], Results::Without).await?.remove(0)?.status)
    }

    async fn ask(&self, seat: Seat, token: TokenId, op: RequestOp) -> Result<Filed, JobError> {
        let accepted = self.store.request(Request { seat, token, op }).await?;
        self.wakeups.announce(Topic::Seat(seat)).await?;
        Ok(Filed { seat, number: accepted.number, token, repeated: accepted.repeated })
    }

    async fn responder_of(&self, id: JobId, event: EventId) -> Result<ProcessorId, JobError> {
        let event = events_of(&*self.store, id.shard(), vec![event]).await?.into_iter().next();
        event.and_then(|event| event.job).map(|mark| mark.responder).ok_or(JobError::Unknown(id))
    }
}
