//! Many jobs at once.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use laneway_core::{Draft, JobId};
use laneway_engine::job::{BatchId, By, JobError, Submit};
use serde::de::DeserializeOwned;

use super::handle::{JobHandle, WaitError};
use super::submit::SubmitError;
use crate::app::Shared;
use crate::record::{JobRecord, Record};
use crate::stream::{SendError, Stream, drafts_of};

/// Many jobs on their way, in order: options first, then `.await`. At most 10,000, and at most 1,000 of one partition.
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Job, Serialize, Deserialize)]
/// # #[job(key = "account", output = "usize")]
/// # struct MakeStatement { account: String }
/// # async fn make(Job(job): Job<MakeStatement>) -> Result<usize> { Ok(job.account.len()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let app = Laneway::open("memory:").await?;
/// # let statements = app.stream::<MakeStatement>("statements");
/// # app.processor("make", &statements, make);
/// # app.start().await?;
/// let asks: Vec<_> = ["ann", "robert"].map(|name| MakeStatement { account: name.to_owned() }).into();
/// let batch = statements.submit_many(&asks).idempotency_key("statements/2026-10").await?;
/// // Somewhere else, by the text of its id alone:
/// let id = batch.id().to_string();
/// let mut lines = Vec::new();
/// for job in app.batch::<usize>(id.parse()?).wait(secs(10)).await {
///     lines.push(job?);
/// }
/// lines.sort();
/// assert_eq!(lines, [3, 6]);
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
#[must_use = "nothing is submitted before it is awaited"]
#[derive(Debug)]
pub struct SubmittingMany<'a, T, Out> {
    stream: &'a Stream<T>,
    drafts: Result<Vec<Draft>, SendError>,
    processor: Option<String>,
    keep: Option<Duration>,
    by: By,
    result: PhantomData<fn() -> Out>,
}

/// Jobs that were submitted together. Cheap to clone; its [`id`](Self::id) finds all of them again.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// # #[derive(Job, Serialize, Deserialize)]
/// # #[job(key = "account", output = "usize")]
/// # struct MakeStatement { account: String }
/// # async fn make(Job(job): Job<MakeStatement>) -> Result<usize> { Ok(job.account.len()) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// # let statements = app.stream::<MakeStatement>("statements");
/// # app.processor("make", &statements, make);
/// # app.start().await?;
/// let asks = ["ann", "robert", "jo"].map(|name| MakeStatement { account: name.to_owned() });
/// let batch = statements.submit_many(&asks).await?;
/// // Where it was submitted, results come in the order of the records.
/// for (ask, pages) in asks.iter().zip(batch.wait(secs(10)).await) {
///     assert_eq!(pages?, ask.account.len());
/// }
/// // Elsewhere its id finds all of them, for instance to give up on what has not ended.
/// let found = app.batch::<usize>(batch.id().clone());
/// found.cancel().await?;
/// assert_eq!(found.jobs().len(), 3);
/// # Ok(()) }
/// ```
pub struct JobBatch<Out> {
    shared: Arc<Shared>,
    id: BatchId,
    /// Its jobs in the order of their records, where that is known: the id does not keep it.
    given: Option<Arc<[JobId]>>,
    result: PhantomData<fn() -> Out>,
}

impl<'a, T: Record, Out> SubmittingMany<'a, T, Out> {
    pub(crate) fn plain<'r>(stream: &'a Stream<T>, records: impl IntoIterator<Item = &'r T>) -> Self {
        Self {
            stream,
            drafts: drafts_of(records),
            processor: None,
            keep: None,
            by: By::default(),
            result: PhantomData,
        }
    }

    /// Which processor answers. Default: as the record says, or the stream's only one.
    pub fn processor(self, name: impl Into<String>) -> Self {
        Self { processor: Some(name.into()), ..self }
    }

    /// How long the results can be read. Default: as the record says, or else the stream ([`Stream::keep_done`]).
    pub fn keep(self, length: Duration) -> Self {
        Self { keep: Some(length), ..self }
    }

    /// Names the submission: the same again are the same jobs as long as the stream remembers it
    /// ([`Stream::dedup_window`](crate::Stream::dedup_window)), and another body is a conflict.
    pub fn idempotency_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.by.idempotency_key = Some(bytes::Bytes::from(key.into()));
        self
    }

    /// On whose behalf; handlers read it with [`Ctx::caller`](crate::Ctx::caller).
    pub fn caller(mut self, caller: impl Into<String>) -> Self {
        self.by.caller = Some(caller.into());
        self
    }

    async fn submit(self) -> Result<JobBatch<Out>, SubmitError> {
        let (processor, keep) = (self.processor, self.keep);
        let job = |draft| Submit { draft, processor: processor.clone(), keep };
        let jobs: Vec<Submit> = self.drafts?.into_iter().map(job).collect();
        self.stream.define().await?;
        let shared = self.stream.shared();
        let submitted = shared.engine.jobs().submit_many(self.stream.name(), jobs, &self.by).await?;
        let mut given = Vec::with_capacity(submitted.jobs.len());
        let mut refused = None;
        for job in submitted.jobs {
            match job {
                Ok(job) => given.push(job.id),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match (refused, submitted.batch) {
            (None, Some(batch)) => {
                let given = Some(Arc::from(given));
                Ok(JobBatch { given, ..JobBatch::new(Arc::clone(shared), batch) })
            }
            (None, None) => Err(SubmitError::Job(JobError::NotMade("there were no records".to_owned()))),
            (Some(error), None) => Err(error.into()),
            (Some(error), Some(batch)) => Err(SubmitError::Partly { batch, source: Box::new(error) }),
        }
    }
}

impl<'a, T: JobRecord> SubmittingMany<'a, T, T::Output> {
    pub(crate) fn jobs<'r>(stream: &'a Stream<T>, records: impl IntoIterator<Item = &'r T>) -> Self {
        let processor = T::PROCESSOR.map(str::to_owned);
        Self { processor, keep: T::KEEP, ..Self::plain(stream, records) }
    }
}

impl<'a, T: Record, Out: 'a> IntoFuture for SubmittingMany<'a, T, Out> {
    type Output = Result<JobBatch<Out>, SubmitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.submit())
    }
}

impl<Out> Clone for JobBatch<Out> {
    fn clone(&self) -> Self {
        let given = self.given.clone();
        Self { given, ..Self::new(Arc::clone(&self.shared), self.id.clone()) }
    }
}

impl<Out> JobBatch<Out> {
    pub(crate) fn new(shared: Arc<Shared>, id: BatchId) -> Self {
        Self { shared, id, given: None, result: PhantomData }
    }

    /// Its id: a text that finds all its jobs again, also from another process.
    pub fn id(&self) -> &BatchId {
        &self.id
    }

    /// Its jobs: in the order of their records where they were submitted, by partition and number where the batch was
    /// found again by its id.
    pub fn jobs(&self) -> Vec<JobHandle<Out>> {
        let ids = self.given.as_ref().map_or_else(|| self.id.ids(), |given| given.to_vec());
        ids.into_iter().map(|id| JobHandle::new(Arc::clone(&self.shared), id)).collect()
    }

    /// Asks for all of them to end; those that have ended already stay as they are.
    pub async fn cancel(&self) -> Result<(), JobError> {
        for answer in self.shared.engine.jobs().cancel_many(&self.id.ids()).await {
            match answer {
                Ok(()) | Err(JobError::AlreadyFinished(_) | JobError::Gone(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<Out: DeserializeOwned> JobBatch<Out> {
    /// Waits for all results, in the order of [`jobs`](Self::jobs).
    pub async fn wait(&self, within: Duration) -> Vec<Result<Out, WaitError>> {
        let jobs = self.jobs();
        join_all(jobs.iter().map(|job| job.wait(within))).await
    }
}

impl<Out> std::fmt::Debug for JobBatch<Out> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("JobBatch").field(&self.id.to_string()).finish()
    }
}
