//! Look at jobs, wait for them, take and forget their results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use laneway_core::limits::{PAGE_MAX, TAKE_GRACE};
use laneway_core::store::{Jobs as JobsCall, Query, Rows, ScheduledRow};
use laneway_core::{
    Event, EventId, Headers, JobId, JobNumber, ProcessorId, Ref, Refusal, Shard, Store, StoreError,
    StreamInfo, Timestamp, Topic, Wakeups,
};

use super::batch::{BatchId, millis_of};
use super::error::JobError;
use super::headers::{caller_of, retry_of};
use super::status::{Detail, Job, JobStatus, job_of};
use crate::log::{Catalogue, Producer, events_of};
use crate::service::{Env, hint};

/// How often a waiter looks without being told.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The jobs of a store. Cheap to clone.
#[derive(Clone)]
pub struct Jobs {
    pub(super) env: Env,
    pub(super) store: Arc<dyn Store>,
    pub(super) wakeups: Arc<dyn Wakeups>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) producer: Producer,
}

/// Whether results are wanted with the jobs: they may be large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// They are.
    With,
    /// They are not.
    Without,
}

impl Jobs {
    pub(crate) fn new(
        env: Env,
        store: Arc<dyn Store>,
        wakeups: Arc<dyn Wakeups>,
        catalogue: Arc<Catalogue>,
        producer: Producer,
    ) -> Self {
        Self { env, store, wakeups, catalogue, producer }
    }

    /// A job as it stands, with its result if it has ended.
    pub async fn get(&self, id: JobId) -> Result<Job, JobError> {
        self.look(&[id], Results::With).await?.remove(0)
    }

    /// A job with everything that can be told of it.
    pub async fn detail(&self, id: JobId) -> Result<Detail, JobError> {
        self.detail_of(self.get(id).await?).await
    }

    /// Everything that can be told of a job that was looked at before.
    pub(crate) async fn detail_of(&self, job: Job) -> Result<Detail, JobError> {
        let ids = job.status.event().into_iter().collect();
        let event = events_of(&*self.store, job.id.shard(), ids).await?.pop();
        self.told(job, event.as_ref()).await
    }

    /// Jobs with everything that can be told of them, at most 10,000; one answer each, in order.
    pub async fn query(
        &self,
        ids: &[JobId],
        results: Results,
    ) -> Result<Vec<Result<Detail, JobError>>, JobError> {
        let jobs = self.look(ids, results).await?;
        let mut wanted: BTreeMap<Shard, Vec<EventId>> = BTreeMap::new();
        for job in jobs.iter().flatten() {
            if let Some(event) = job.status.event() {
                wanted.entry(job.id.shard()).or_default().push(event);
            }
        }
        let mut events: BTreeMap<(Shard, EventId), Event> = BTreeMap::new();
        for (shard, ids) in wanted {
            let found = events_of(&*self.store, shard, ids).await?;
            events.extend(found.into_iter().map(|event| ((shard, event.id), event)));
        }
        let mut details = Vec::with_capacity(jobs.len());
        for job in jobs {
            let job = match job {
                Ok(job) => job,
                Err(error) => {
                    details.push(Err(error));
                    continue;
                }
            };
            let event = job.status.event().and_then(|event| events.get(&(job.id.shard(), event)));
            details.push(self.told(job, event).await);
        }
        Ok(details)
    }

    /// The jobs of a batch, by partition and number.
    pub async fn query_batch(
        &self,
        batch: &BatchId,
        results: Results,
    ) -> Result<Vec<(JobId, Result<Detail, JobError>)>, JobError> {
        let ids = batch.ids();
        let details = self.query(&ids, results).await?;
        Ok(ids.into_iter().zip(details).collect())
    }

    async fn told(&self, job: Job, event: Option<&Event>) -> Result<Detail, JobError> {
        let shard = job.id.shard();
        let info = self.catalogue.stream_of(shard.stream).await?;
        let reference =
            job.status.event().map(|id| Ref { stream: info.name.clone(), partition: shard.partition, id });
        let created_at = Timestamp(millis_of(job.id) * 1_000);
        let mut detail = Detail {
            stream: info.name.clone(),
            reference,
            key: None,
            kind: None,
            processor: None,
            created_at,
            caller: None,
            retry_of: None,
            job,
        };
        let headers = |detail: &mut Detail, headers: &Headers| {
            detail.caller = caller_of(headers);
            detail.retry_of = retry_of(headers);
        };
        if let Some(event) = event {
            headers(&mut detail, &event.headers);
            (detail.key, detail.kind) = (event.key.clone(), Some(event.kind.clone()));
            detail.processor = event.job.and_then(|mark| processor_name(&info, mark.responder));
        } else if let (JobStatus::Scheduled { .. }, JobNumber::Schedule(ticket)) =
            (&detail.job.status, detail.job.id.number())
            && let Some(row) = self.scheduled(shard, ticket).await?
        {
            headers(&mut detail, &row.draft.headers);
            (detail.key, detail.kind) = (row.draft.key, Some(row.draft.kind));
            detail.processor = row.draft.job.and_then(|job| processor_name(&info, job.responder));
        } else if let JobStatus::Pending { key, .. } = &detail.job.status {
            detail.key = key.clone();
        }
        Ok(detail)
    }

    async fn scheduled(&self, shard: Shard, ticket: u64) -> Result<Option<ScheduledRow>, StoreError> {
        match self.store.query(Query::Scheduled(shard, ticket.saturating_sub(1), 1)).await? {
            Rows::Scheduled(rows) => Ok(rows.into_iter().find(|row| row.ticket == ticket)),
            _ => Err(StoreError::Corrupt {
                what: "the store answered another list than the schedule".to_owned(),
            }),
        }
    }

    /// Jobs as they stand; one answer each, in order.
    pub(super) async fn look(
        &self,
        ids: &[JobId],
        results: Results,
    ) -> Result<Vec<Result<Job, JobError>>, JobError> {
        Refusal::check_max("ids", ids.len(), PAGE_MAX)?;
        let mut parts: BTreeMap<Shard, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            parts.entry(id.shard()).or_default().push(place);
        }
        let mut jobs: Vec<Option<Result<Job, JobError>>> = ids.iter().map(|_| None).collect();
        for (shard, places) in parts {
            let numbers = places.iter().map(|place| ids[*place].number()).collect();
            let get = JobsCall::Get { shard, numbers, results: results == Results::With };
            match self.store.jobs(get).await {
                Ok(views) => {
                    for (place, view) in places.into_iter().zip(views) {
                        jobs[place] = Some(job_of(ids[place], view));
                    }
                }
                Err(StoreError::NotFound { .. }) => {
                    for place in places {
                        jobs[place] = Some(Err(self.not_found(ids[place]).await?));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(jobs.into_iter().zip(ids).map(|(job, id)| job.unwrap_or(Err(JobError::Unknown(*id)))).collect())
    }

    /// A job of a stream that was removed is gone; one of a stream or partition that never was is unknown.
    pub(super) async fn not_found(&self, id: JobId) -> Result<JobError, StoreError> {
        let Rows::Store(store) = self.store.query(Query::Store).await? else {
            return Err(StoreError::Corrupt {
                what: "the store answered something else than itself".to_owned(),
            });
        };
        let stream = id.shard().stream;
        let is_there = self.catalogue.stream_of(stream).await.is_ok();
        let was_there = stream.0 > 0 && stream <= store.streams && !is_there;
        Ok(if was_there { JobError::Gone(id) } else { JobError::Unknown(id) })
    }

    /// Waits until a job has ended or is parked, at most for so long; answers how it stands then.
    pub async fn wait(&self, id: JobId, within: Duration) -> Result<Job, JobError> {
        let until = self.env.now().steady.after(within);
        let ended = |seen| Box::pin(hint(&self.env, &*self.wakeups, Topic::Job(id), seen));
        let mut word = ended(0);
        // A store that has forgotten what was announced answers the first wait at once. That is no word of this job's end,
        // so it must not cost a look; whatever comes after this point is heard.
        if let Some(point) = (&mut word).now_or_never() {
            word = ended(point);
        }
        loop {
            let job = self.get(id).await?;
            let now = self.env.now().steady;
            if job.status.is_settled() || now >= until {
                return Ok(job);
            }
            let look = until.min(now.after(LOOK_EVERY));
            tokio::select! {
                biased;
                point = &mut word => word = ended(point),
                () = self.env.sleep_until(look) => {}
            }
        }
    }

    /// Reads the result of an ended job and lets it live no longer than the grace.
    pub async fn take(&self, id: JobId) -> Result<Job, JobError> {
        let call = JobsCall::Take { shard: id.shard(), number: id.number(), grace: TAKE_GRACE };
        match self.store.jobs(call).await {
            Err(StoreError::Conflict(_)) => Err(JobError::Unfinished(id)),
            Err(StoreError::NotFound { .. }) => Err(self.not_found(id).await?),
            views => job_of(id, views?.into_iter().next().ok_or(JobError::Unknown(id))?),
        }
    }

    /// Forgets an ended job at once; one that is gone already is fine.
    pub async fn forget(&self, id: JobId) -> Result<(), JobError> {
        match self.store.jobs(JobsCall::Forget { shard: id.shard(), number: id.number() }).await {
            Err(StoreError::Conflict(_)) => Err(JobError::Unfinished(id)),
            Err(StoreError::NotFound { .. }) => match self.not_found(id).await? {
                JobError::Gone(_) => Ok(()),
                other => Err(other),
            },
            views => match job_of(id, views?.into_iter().next().ok_or(JobError::Unknown(id))?) {
                Err(JobError::Unknown(_)) => Err(JobError::Unknown(id)),
                Ok(_) | Err(_) => Ok(()),
            },
        }
    }
}

pub(super) fn processor_name(info: &StreamInfo, id: ProcessorId) -> Option<String> {
    info.processors.iter().find(|processor| processor.id == id).map(|processor| processor.name.clone())
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Jobs").finish_non_exhaustive()
    }
}
