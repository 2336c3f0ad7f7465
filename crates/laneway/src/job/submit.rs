//! A job on its way.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use laneway_engine::job::{BatchId, By, JobError, Submit};

use super::handle::JobHandle;
use crate::record::{JobRecord, Record};
use crate::stream::{Options, SendError, Stream, options};

/// A job on its way: options first, then `.await`.
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Job, Serialize, Deserialize)]
/// # #[job(key = "account", output = "u64")]
/// # struct MakeStatement { account: String }
/// # async fn make(Job(_): Job<MakeStatement>) -> Result<u64> { Ok(7) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let app = Laneway::open("memory:").await?;
/// # let statements = app.stream::<MakeStatement>("statements");
/// # app.processor("make", &statements, make);
/// # app.start().await?;
/// let ask = MakeStatement { account: "a1".to_owned() };
/// let job = statements.submit(&ask).idempotency_key("a1/2026-10").keep(hours(1)).await?;
/// // Asked again, for instance after a lost answer: the same job.
/// assert_eq!(statements.submit(&ask).idempotency_key("a1/2026-10").await?.id(), job.id());
/// assert_eq!(job.wait(secs(10)).await?, 7);
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
#[must_use = "nothing is submitted before it is awaited"]
#[derive(Debug)]
pub struct Submitting<'a, T, Out> {
    stream: &'a Stream<T>,
    options: Options,
    processor: Option<String>,
    keep: Option<Duration>,
    by: By,
    result: PhantomData<fn() -> Out>,
}

/// Why no job was made, by what to do next.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::testing::App;
/// use laneway::{JobError, SubmitError};
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # async fn book(Event(payment): Event<Payment>) -> Result<i64> { Ok(payment.cents) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// let app = App::new();
/// let payments = app.stream::<Payment>("payments");
/// app.processor("book", &payments, book);
/// app.processor("audit", &payments, book);
/// app.start().await?;
/// let payment = Payment { account: "a1".to_owned(), cents: 5 };
/// let which = payments.submit_as::<i64>(&payment).await.unwrap_err();
/// assert!(matches!(which, SubmitError::Job(JobError::ProcessorRequired { .. })), "two could answer");
/// let job = payments.submit_as::<i64>(&payment).processor("book").await?;
/// assert_eq!(job.wait(secs(10)).await?, 5);
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Its event was not appended.
    #[error(transparent)]
    Send(#[from] SendError),
    /// It names no processor that could answer, or is no job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Of many, some were accepted and some were not: submit again under the same idempotency key.
    #[error("some of the jobs were not accepted: {source}")]
    Partly {
        /// Those that were.
        batch: BatchId,
        /// Why the first of the others was not.
        source: Box<JobError>,
    },
}

impl<'a, T: Record, Out> Submitting<'a, T, Out> {
    pub(crate) fn plain(stream: &'a Stream<T>, record: &T) -> Self {
        let options = Options::new(record);
        Self { stream, options, processor: None, keep: None, by: By::default(), result: PhantomData }
    }

    options!();

    /// Names the submission: the same again is the same job, also while it runs, as long as the stream remembers it
    /// ([`Stream::dedup_window`](crate::Stream::dedup_window)). Another body is a conflict. It counts per caller and lane.
    pub fn idempotency_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.by.idempotency_key = Some(bytes::Bytes::from(key.into()));
        self
    }

    /// Which processor answers. Default: as the record says, or the stream's only one.
    pub fn processor(self, name: impl Into<String>) -> Self {
        Self { processor: Some(name.into()), ..self }
    }

    /// How long the result can be read. Default: as the record says, or else the stream ([`Stream::keep_done`]).
    pub fn keep(self, length: Duration) -> Self {
        Self { keep: Some(length), ..self }
    }

    /// On whose behalf; its handler reads it with [`Ctx::caller`](crate::Ctx::caller).
    pub fn caller(mut self, caller: impl Into<String>) -> Self {
        self.by.caller = Some(caller.into());
        self
    }

    async fn submit(self) -> Result<JobHandle<Out>, SubmitError> {
        let submit = Submit { draft: self.options.into_draft()?, processor: self.processor, keep: self.keep };
        self.stream.define().await?;
        let shared = self.stream.shared();
        let submitted = shared.engine.jobs().submit_one(self.stream.name(), submit, &self.by).await?;
        Ok(JobHandle::new(Arc::clone(shared), submitted.id))
    }
}

impl<'a, T: JobRecord> Submitting<'a, T, T::Output> {
    pub(crate) fn job(stream: &'a Stream<T>, record: &T) -> Self {
        let processor = T::PROCESSOR.map(str::to_owned);
        Self { processor, keep: T::KEEP, ..Self::plain(stream, record) }
    }
}

impl<'a, T: Record, Out: 'a> IntoFuture for Submitting<'a, T, Out> {
    type Output = Result<JobHandle<Out>, SubmitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.submit())
    }
}
