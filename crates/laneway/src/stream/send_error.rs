//! Why something was not sent.

use std::sync::Arc;

use laneway_core::{Conflict, FullReason, Refusal, StoreError};
use laneway_engine::DefineError;
use laneway_engine::log::{AppendError, CatalogueError};

use crate::format::FormatError;

/// Why an event was not appended, by what to do next.
///
/// ```
/// use laneway::prelude::*;
/// use laneway::SendError;
/// # #[derive(Record, Serialize, Deserialize)]
/// # #[record(key = "account")]
/// # struct Payment { account: String, cents: i64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let app = Laneway::open("memory:").await?;
/// let payments = app.stream::<Payment>("payments");
/// let payment = Payment { account: "a1".to_owned(), cents: 5 };
/// let first = payments.send(&payment).expect_prev(None).await?;
/// // Somebody else was faster: read again and decide.
/// let late = payments.send(&payment).expect_prev(None).await;
/// assert!(matches!(late, Err(SendError::Conflict(_))));
/// // Now it knows what came before.
/// payments.send(&payment).expect_prev(first.id).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Something about the event is wrong whatever the state of the stream: correct it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The record cannot be serialised: correct it.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// An expectation does not hold: read again and decide.
    #[error("{0}")]
    Conflict(Conflict),
    /// There is no room: try again later.
    #[error("{0}")]
    Full(FullReason),
    /// One of many records is wrong, and nothing was sent: correct that one.
    #[error("record {index}: {source}")]
    OneOf {
        /// Which, from 0.
        index: usize,
        /// What is wrong with it.
        source: Box<SendError>,
    },
    /// Something before it in the same call was not appended, so it was not tried: send it again after that.
    #[error("not tried, because an event before it was not appended")]
    Behind,
    /// The stream could not be created as declared.
    #[error(transparent)]
    Define(#[from] DefineError),
    /// The store could not.
    #[error(transparent)]
    Store(Arc<StoreError>),
}

impl SendError {
    /// The same, of one of many records.
    pub(super) fn of(self, index: usize) -> Self {
        Self::OneOf { index, source: Box::new(self) }
    }

    /// What an append says of many records.
    pub(super) fn of_many(error: AppendError) -> Self {
        match error {
            AppendError::Refused { index, refusal } => Self::Refused(refusal).of(index),
            error => error.into(),
        }
    }
}

impl From<Arc<StoreError>> for SendError {
    fn from(error: Arc<StoreError>) -> Self {
        match &*error {
            // Every event has an answer of its own, so there is no need to say which one it was.
            StoreError::Conflict(conflict) => Self::Conflict(Conflict { index: None, ..conflict.clone() }),
            StoreError::Full(reason) => Self::Full(reason.clone()),
            StoreError::Refused(refusal) => Self::Refused(refusal.clone()),
            _ => Self::Store(error),
        }
    }
}

impl From<AppendError> for SendError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Refused { refusal, .. } => Self::Refused(refusal),
            AppendError::Catalogue(CatalogueError::Store(error)) => Arc::new(error).into(),
            AppendError::Catalogue(error) => Self::Define(error.into()),
        }
    }
}
