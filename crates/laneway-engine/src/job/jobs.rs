//! Submit, look, wait, cancel, take, forget.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::limits::TAKE_GRACE;
use laneway_core::store::{JobEnd, JobState, Jobs as JobsCall, Receipt, Request, RequestOp};
use laneway_core::{
    Block, Due, EventId, JobDraft, JobId, JobNumber, Key, LaneRecord, ProcessorId, Seat, Status, Store,
    StoreError, StreamInfo, Timestamp, TokenId, Topic, Wakeups,
};

use crate::log::{AppendError, Appending, Catalogue, CatalogueError, Producer};
use crate::service::Env;

/// How long the end of a job is kept unless its submitter says otherwise.
const KEEP: Duration = Duration::from_secs(24 * 3_600);
/// How often a waiter looks without being told.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The jobs of a store. Cheap to clone.
#[derive(Clone)]
pub struct Jobs {
    env: Env,
    store: Arc<dyn Store>,
    wakeups: Arc<dyn Wakeups>,
    catalogue: Arc<Catalogue>,
    producer: Producer,
}

/// A job to be.
#[derive(Debug, Clone)]
pub struct Submit {
    /// The event; what it says of a job is set here.
    pub draft: laneway_core::Draft,
    /// Which processor answers. Default: the stream's only one.
    pub processor: Option<String>,
    /// How long its end is kept. Default: a day.
    pub keep: Option<Duration>,
}

/// A job that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// Its id.
    pub id: JobId,
    /// What the store says of its event.
    pub receipt: Receipt,
    /// Its partition.
    pub partition: laneway_core::Partition,
}

/// A job as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Where it stands.
    pub status: JobStatus,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStatus {
    /// Not yet in its lane.
    Scheduled {
        /// When it joins.
        due: Due,
    },
    /// In its lane and not ended.
    Pending {
        /// Its event.
        event: EventId,
        /// Its lane.
        key: Option<Key>,
        /// What is known of its lane, if it is the head of one that is not plain.
        lane: Option<LaneRecord>,
    },
    /// Ended.
    Ended {
        /// How.
        end: Box<JobEnd>,
        /// What the handler returned.
        result: Option<Bytes>,
        /// Until when it can be read.
        keep_until: Timestamp,
    },
}

impl JobStatus {
    /// The one word for it.
    pub fn status(&self) -> Status {
        match self {
            Self::Scheduled { .. } => Status::Scheduled,
            Self::Pending { lane, .. } => match lane.as_ref().and_then(|lane| lane.block.as_ref()) {
                Some(Block::Retry { .. }) => Status::Retrying,
                Some(Block::Parked { .. }) => Status::Parked,
                Some(Block::Running { .. } | Block::Claimed(_)) => Status::Running,
                Some(Block::Hold { .. } | Block::Paused { .. } | Block::Diverting { .. }) | None => {
                    Status::Waiting
                }
            },
            Self::Ended { end, .. } => Status::Ended(end.end),
        }
    }

    /// Whether somebody who waits for the job should be told: it has ended, or it is parked and will not go on by itself.
    pub fn is_settled(&self) -> bool {
        let status = self.status();
        status.is_terminal() || status == Status::Parked
    }
}

/// Why something could not be done with a job.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There never was such a job.
    #[error("job {0} does not exist")]
    Unknown(JobId),
    /// There was; its result was taken, forgotten, or its time is over.
    #[error("job {0} is gone: its result was taken, forgotten or kept long enough")]
    Gone(JobId),
    /// It has ended.
    #[error("job {0} has ended")]
    AlreadyFinished(JobId),
    /// It has not ended.
    #[error("job {0} has not ended")]
    Unfinished(JobId),
    /// The stream has more than one processor, or none, and the job names none.
    #[error("stream {stream:?} has {processors} processors: the job must name the one that answers")]
    ProcessorRequired {
        /// The stream.
        stream: String,
        /// How many it has.
        processors: usize,
    },
    /// The named processor is not one of the stream's.
    #[error("processor {processor:?} does not process stream {stream:?}")]
    NoSuchProcessor {
        /// The processor.
        processor: String,
        /// The stream.
        stream: String,
    },
    /// The event was accepted before as another kind of thing, or is stale.
    #[error("no job was made: {0}")]
    NotMade(String),
    /// A draft is wrong, or the stream is not there.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The store could not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store could not, for one of several.
    #[error(transparent)]
    Shared(#[from] Arc<StoreError>),
}

impl From<CatalogueError> for JobError {
    fn from(error: CatalogueError) -> Self {
        Self::Append(AppendError::Catalogue(error))
    }
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

    /// Submits jobs to a stream; one answer each, in order.
    ///
    /// # Errors
    /// When one of them could never be accepted: then none was.
    pub async fn submit(
        &self,
        stream: &str,
        jobs: Vec<Submit>,
    ) -> Result<Vec<Result<Submitted, JobError>>, JobError> {
        let info = self.catalogue.stream(stream).await?;
        let mut drafts = Vec::with_capacity(jobs.len());
        for job in jobs {
            let responder = self.responder(&info, job.processor.as_deref()).await?;
            let mut draft = job.draft;
            draft.job = Some(JobDraft { responder, keep: job.keep.unwrap_or(KEEP) });
            drafts.push(draft);
        }
        let sent = self.producer.append(stream, Appending { drafts, object: None }).await?;
        Ok(sent.into_iter().map(|sent| submitted(sent.partition, sent.receipt?)).collect())
    }

    async fn responder(&self, info: &Arc<StreamInfo>, name: Option<&str>) -> Result<ProcessorId, JobError> {
        let find = |info: &StreamInfo| match name {
            Some(name) => {
                info.processors.iter().find(|processor| processor.name == name).map(|found| found.id)
            }
            None if info.processors.len() == 1 => Some(info.processors[0].id),
            None => None,
        };
        if let Some(found) = find(info) {
            return Ok(found);
        }
        // It may have been registered since.
        self.catalogue.refresh().await?;
        let info = self.catalogue.stream(&info.name).await?;
        find(&info).ok_or_else(|| match name {
            Some(processor) => {
                JobError::NoSuchProcessor { processor: processor.to_owned(), stream: info.name.clone() }
            }
            None => {
                JobError::ProcessorRequired { stream: info.name.clone(), processors: info.processors.len() }
            }
        })
    }

    /// A job as it stands, with its result if it has ended.
    pub async fn get(&self, id: JobId) -> Result<Job, JobError> {
        let call = JobsCall::Get { shard: id.shard(), numbers: vec![id.number()], results: true };
        let views = match self.store.jobs(call).await {
            Err(StoreError::NotFound { .. }) => return Err(JobError::Unknown(id)),
            views => views?,
        };
        view_of(id, views)
    }

    /// Waits until a job has ended or is parked, at most for so long; answers how it stands then.
    pub async fn wait(&self, id: JobId, within: Duration) -> Result<Job, JobError> {
        let until = self.env.now().steady.after(within);
        let mut seen = 0;
        loop {
            let job = self.get(id).await?;
            let now = self.env.now().steady;
            if job.status.is_settled() || now >= until {
                return Ok(job);
            }
            let look = until.min(now.after(LOOK_EVERY));
            tokio::select! {
                biased;
                point = self.wakeups.wait(Topic::Job(id), seen) => seen = point.unwrap_or(seen),
                () = self.env.sleep_until(look) => {}
            }
        }
    }

    /// Asks for a job to be cancelled. It ends when its owner says so; see [`wait`](Self::wait).
    ///
    /// # Errors
    /// When it has ended already.
    pub async fn cancel(&self, id: JobId, token: TokenId) -> Result<(), JobError> {
        let shard = id.shard();
        let event = match self.get(id).await?.status {
            JobStatus::Ended { .. } => return Err(JobError::AlreadyFinished(id)),
            JobStatus::Pending { event, .. } => event,
            JobStatus::Scheduled { .. } => {
                let JobNumber::Schedule(ticket) = id.number() else { return Err(JobError::Unknown(id)) };
                match self.store.jobs(JobsCall::CancelScheduled { shard, ticket }).await {
                    Ok(_) => return Ok(()),
                    // It joined its lane meanwhile.
                    Err(StoreError::Conflict(_)) => match self.get(id).await?.status {
                        JobStatus::Pending { event, .. } => event,
                        _ => return Err(JobError::AlreadyFinished(id)),
                    },
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let processor = self.responder_of(id, event).await?;
        let seat = Seat { shard, processor };
        self.store.request(Request { seat, token, op: RequestOp::Cancel { id: event } }).await?;
        self.wakeups.announce(Topic::Seat(seat)).await?;
        Ok(())
    }

    async fn responder_of(&self, id: JobId, event: EventId) -> Result<ProcessorId, JobError> {
        let read = laneway_core::store::Read {
            shard: id.shard(),
            from: laneway_core::store::ReadFrom::Ids(vec![event]),
            limit: 1,
            bytes: usize::MAX,
            processor: None,
            states: false,
        };
        let page = self.store.read(read).await?;
        let mark = page.entries.first().and_then(|entry| match entry {
            laneway_core::store::Entry::Event(event) => event.job,
            laneway_core::store::Entry::Superseded { job, .. } => *job,
        });
        mark.map(|mark| mark.responder).ok_or(JobError::Unknown(id))
    }

    /// Reads the result of an ended job and lets it live no longer than the grace.
    pub async fn take(&self, id: JobId) -> Result<Job, JobError> {
        let call = JobsCall::Take { shard: id.shard(), number: id.number(), grace: TAKE_GRACE };
        match self.store.jobs(call).await {
            Err(StoreError::Conflict(_)) => Err(JobError::Unfinished(id)),
            Err(StoreError::NotFound { .. }) => Err(JobError::Unknown(id)),
            views => view_of(id, views?),
        }
    }

    /// Forgets an ended job at once; one that is gone already is fine.
    pub async fn forget(&self, id: JobId) -> Result<(), JobError> {
        match self.store.jobs(JobsCall::Forget { shard: id.shard(), number: id.number() }).await {
            Err(StoreError::Conflict(_)) => Err(JobError::Unfinished(id)),
            Err(StoreError::NotFound { .. }) => Err(JobError::Unknown(id)),
            views => views.map(|_| ()).map_err(Into::into),
        }
    }
}

fn submitted(partition: laneway_core::Partition, receipt: Receipt) -> Result<Submitted, JobError> {
    let id = match &receipt {
        Receipt::New { job, .. } | Receipt::Scheduled { job, .. } => *job,
        Receipt::Duplicate { first: Some(first) } => match &**first {
            Receipt::New { job, .. } | Receipt::Scheduled { job, .. } => *job,
            _ => None,
        },
        Receipt::Duplicate { first: None } => None,
        Receipt::Stale { newest, generation } => {
            let reason = format!("event {newest} has generation {generation}, which is newer");
            return Err(JobError::NotMade(reason));
        }
    };
    let id =
        id.ok_or_else(|| JobError::NotMade("the event was appended before, and not as a job".to_owned()))?;
    Ok(Submitted { id, receipt, partition })
}

fn view_of(id: JobId, views: Vec<laneway_core::store::JobView>) -> Result<Job, JobError> {
    let view = views.into_iter().next().ok_or(JobError::Unknown(id))?;
    let status = match view.state {
        JobState::Unknown => return Err(JobError::Unknown(id)),
        JobState::Gone => return Err(JobError::Gone(id)),
        JobState::Scheduled { due } => JobStatus::Scheduled { due },
        JobState::Pending { id, key, lane } => JobStatus::Pending { event: id, key, lane },
        JobState::Ended { end, result, keep_until } => JobStatus::Ended { end, result, keep_until },
    };
    Ok(Job { id, status })
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Jobs").finish_non_exhaustive()
    }
}
