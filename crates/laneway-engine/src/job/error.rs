//! What can go wrong with a job, by what its submitter does next.

use std::sync::Arc;

use laneway_core::{EventId, JobId, Refusal, Status, StoreError};

use crate::lane::OperateError;
use crate::log::{AppendError, CatalogueError};

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
    /// Only a job that has ended, is parked or waits for another attempt can be retried.
    #[error("job {id} is {status}: only one that has ended, is parked or retrying can be retried")]
    NotRetryable {
        /// The job.
        id: JobId,
        /// Where it stands.
        status: Status,
    },
    /// It cannot be run again, because its event went by retention or never joined its lane.
    #[error("job {0} cannot be run again: its event is gone")]
    EventGone(JobId),
    /// The stream has more than one processor, or none, and the job names none.
    #[error("stream {stream:?} has {}: the job must name the one that answers", several(.processors))]
    ProcessorRequired {
        /// The stream.
        stream: String,
        /// The processors it has.
        processors: Vec<String>,
    },
    /// The named processor is not one of the stream's.
    #[error("processor {processor:?} does not process stream {stream:?}")]
    NoSuchProcessor {
        /// The processor.
        processor: String,
        /// The stream.
        stream: String,
    },
    /// The processor that answers the stream's jobs is not registered.
    #[error(
        "processor {responder:?} answers the jobs of stream {stream:?} and is not registered: name another one"
    )]
    NoResponder {
        /// The processor.
        responder: String,
        /// The stream.
        stream: String,
    },
    /// The idempotency key or dedup id was used for another body.
    #[error("the idempotency key was used for another body{}", by_event(.first))]
    OtherBody {
        /// The event that has it; nothing while that is scheduled.
        first: Option<EventId>,
    },
    /// The event was accepted before as another kind of thing, or is stale.
    #[error("no job was made: {0}")]
    NotMade(String),
    /// Something that was asked for is wrong whatever the state: correct it.
    #[error(transparent)]
    Refused(#[from] Refusal),
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

fn several(processors: &[String]) -> String {
    if processors.is_empty() {
        "no processors".to_owned()
    } else {
        format!("processors {}", processors.join(", "))
    }
}

fn by_event(first: &Option<EventId>) -> String {
    first.map_or_else(String::new, |id| format!(" by event {id}"))
}

impl From<OperateError> for JobError {
    fn from(error: OperateError) -> Self {
        match error {
            OperateError::Catalogue(error) => error.into(),
            OperateError::Store(error) => error.into(),
        }
    }
}

impl From<CatalogueError> for JobError {
    fn from(error: CatalogueError) -> Self {
        Self::Append(AppendError::Catalogue(error))
    }
}
