//! A job as its submitter holds it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{JobId, Status, Terminal};
use laneway_engine::Engine;
use laneway_engine::job::{By, Job, JobError, JobStatus as EngineStatus, Retried};
use serde::de::DeserializeOwned;

use super::status::JobStatus;
use crate::app::Shared;
use crate::format::{self, FormatError};

/// How long the owner of a job may take to be told.
const APPLIED_WITHIN: Duration = Duration::from_secs(10);

/// A job that was accepted. Cheap to clone; losing it loses nothing, since its [`id`](Self::id) finds it again. How to
/// look at it, cancel and forget it is shown at [`JobStatus`].
///
/// ```
/// use laneway::prelude::*;
/// # #[derive(Job, Serialize, Deserialize)]
/// # #[job(key = "text", output = "String")]
/// # struct Shout { text: String }
/// # async fn shout(Job(job): Job<Shout>) -> Result<String> { Ok(job.text.to_uppercase()) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let app = Laneway::open("memory:").await?;
/// # let shouts = app.stream::<Shout>("shouts");
/// # app.processor("shout", &shouts, shout);
/// # app.start().await?;
/// let id = shouts.submit(&Shout { text: "hello".to_owned() }).await?.id();
/// // Somewhere else, by the id alone:
/// let job = app.job::<String>(id);
/// assert_eq!(job.wait(secs(10)).await?, "HELLO");
/// assert_eq!(job.take().await?, "HELLO"); // lives no longer than ten minutes from here on
/// # app.stop(secs(5)).await;
/// # Ok(()) }
/// ```
pub struct JobHandle<Out> {
    shared: Arc<Shared>,
    id: JobId,
    result: PhantomData<fn() -> Out>,
}

/// Why there is no result, by what to do next.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::WaitError;
/// use laneway::testing::App;
/// # #[derive(Job, Serialize, Deserialize)]
/// # #[job(key = "account", output = "u64")]
/// # struct MakeStatement { account: String }
/// # async fn make(Job(_): Job<MakeStatement>) -> Result<u64> { Err(Error::permanent("no paper")) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<()> {
/// # let app = App::new();
/// # let statements = app.stream::<MakeStatement>("statements");
/// # app.processor("make", &statements, make);
/// # app.start().await?;
/// let job = statements.submit(&MakeStatement { account: "a1".to_owned() }).await?;
/// let told = match job.wait(secs(30)).await {
///     Ok(pages) => format!("{pages} pages"),
///     Err(WaitError::Pending { status, .. }) => format!("come back later, it is {status}"),
///     Err(WaitError::Parked { cause, .. }) => format!("somebody is needed: {cause}"),
///     Err(error) => return Err(error.into()),
/// };
/// assert_eq!(told, "somebody is needed: no paper");
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The time is over: wait again, or come back later.
    #[error("job {id} is still {status}")]
    Pending {
        /// The job.
        id: JobId,
        /// Where it stands.
        status: Status,
    },
    /// Its attempts are used up and its lane stands: somebody must retry or skip it.
    #[error("job {id} is parked: {cause}")]
    Parked {
        /// The job.
        id: JobId,
        /// Why it was given up.
        cause: String,
    },
    /// It ended, and not with a result.
    #[error("job {id} {end}: {error}")]
    Ended {
        /// The job.
        id: JobId,
        /// How it ended.
        end: Terminal,
        /// Why.
        error: String,
    },
    /// Its result is not of the type asked for.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// There is no such job, it is gone, or the store could not say.
    #[error(transparent)]
    Job(#[from] JobError),
}

impl<Out> Clone for JobHandle<Out> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), id: self.id, result: PhantomData }
    }
}

impl<Out> JobHandle<Out> {
    pub(crate) fn new(shared: Arc<Shared>, id: JobId) -> Self {
        Self { shared, id, result: PhantomData }
    }

    /// Its id, in the form of a UUID: enough to find the job again, also from another process.
    pub fn id(&self) -> JobId {
        self.id
    }

    fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Where it stands.
    pub async fn status(&self) -> Result<JobStatus, JobError> {
        Ok(JobStatus::of(&self.engine().jobs().get(self.id).await?.status))
    }

    /// The one reason why it does not go on, in words.
    pub async fn why(&self) -> Result<String, laneway_engine::observe::LookError> {
        Ok(self.engine().looker().why_job(self.id).await?.to_string())
    }

    /// Asks for it to end. What waits ends at once; what runs is told, and dropped if it does not stop. A job that ends
    /// meanwhile has ended: [`wait`](Self::wait) tells which.
    pub async fn cancel(&self) -> Result<(), JobError> {
        self.engine().jobs().cancel(self.id, self.engine().env().token()).await
    }

    /// Runs it again: one that has ended as a new job at the end of its lane, whose handle is answered; one that is
    /// parked or waits for another attempt itself, now.
    ///
    /// ```
    /// use laneway::prelude::*;
    /// # use std::sync::atomic::{AtomicBool, Ordering};
    /// # #[derive(Job, Serialize, Deserialize)]
    /// # #[job(key = "account", output = "u64")]
    /// # struct MakeStatement { account: String }
    /// # struct Printer(AtomicBool);
    /// # async fn make(Job(_): Job<MakeStatement>, State(printer): State<Printer>) -> Result<u64> {
    /// #     if printer.0.swap(true, Ordering::Relaxed) { Ok(7) } else { Err(Error::permanent("no paper")) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let app = Laneway::open("memory:").await?.state(Printer(AtomicBool::new(false)));
    /// # let statements = app.stream::<MakeStatement>("statements");
    /// # app.processor("make", &statements, make);
    /// # app.start().await?;
    /// let job = statements.submit(&MakeStatement { account: "a1".to_owned() }).await?;
    /// assert!(job.wait(secs(10)).await.is_err(), "it is parked: there is no paper");
    /// // Somebody brings paper.
    /// let again = job.retry().await?;
    /// assert_eq!(again.id(), job.id(), "it had not ended");
    /// assert_eq!(again.wait(secs(10)).await?, 7);
    /// # app.stop(secs(5)).await;
    /// # Ok(()) }
    /// ```
    pub async fn retry(&self) -> Result<Self, JobError> {
        let id = match self.engine().jobs().retry(self.id, &By::default()).await? {
            Retried::Again(submitted) => submitted.id,
            Retried::Now(filed) => {
                // Until then it is parked, and a wait would say so at once. Without an owner the request is kept.
                self.engine().operator().wait(&[filed], APPLIED_WITHIN).await?;
                self.id
            }
        };
        Ok(Self::new(Arc::clone(&self.shared), id))
    }

    /// Forgets an ended job at once.
    pub async fn forget(&self) -> Result<(), JobError> {
        self.engine().jobs().forget(self.id).await
    }
}

impl<Out: DeserializeOwned> JobHandle<Out> {
    /// Waits for the result. Comes back early when the job ends without one, or is parked and will not go on by itself.
    pub async fn wait(&self, within: Duration) -> Result<Out, WaitError> {
        result_of(self.engine().jobs().wait(self.id, within).await?)
    }

    /// Reads the result and lets it live no longer than ten minutes; within these the answer can be repeated.
    pub async fn take(&self) -> Result<Out, WaitError> {
        result_of(self.engine().jobs().take(self.id).await?)
    }
}

fn result_of<Out: DeserializeOwned>(job: Job) -> Result<Out, WaitError> {
    let (id, told) = (job.id, JobStatus::of(&job.status));
    let error = told.error.unwrap_or_default();
    match (told.status, job.status) {
        (Status::Ended(Terminal::Done), EngineStatus::Ended { result, .. }) => {
            Ok(format::decode("the job's result", result.as_deref().unwrap_or(b"null"))?)
        }
        (Status::Ended(end), _) => Err(WaitError::Ended { id, end, error }),
        (Status::Parked, _) => Err(WaitError::Parked { id, cause: error }),
        (status, _) => Err(WaitError::Pending { id, status }),
    }
}

impl<Out> std::fmt::Debug for JobHandle<Out> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("JobHandle").field(&self.id.to_string()).finish()
    }
}
