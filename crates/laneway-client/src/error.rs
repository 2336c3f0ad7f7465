//! Why a call did not succeed, by what the caller does next.

use std::time::Duration;

use http::StatusCode;

use crate::wire::Problem;

/// Why a call did not succeed.
///
/// ```no_run
/// # use laneway_client::{Client, ClientError};
/// # async fn example(client: Client) -> Result<(), ClientError> {
/// match client.job("0199e0f2-0000-7000-8000-000000000001", None).await {
///     Ok(job) => println!("{}", job.status),
///     Err(error) if error.code() == Some("job_gone") => println!("kept long enough"),
///     Err(error) => return Err(error),
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address can be none: correct it.
    #[error("server url {url:?}: {wrong}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        wrong: &'static str,
    },
    /// What was given to be trusted cannot be: correct it.
    #[error("certificates to trust: {wrong}")]
    Certificate {
        /// What is wrong with it.
        wrong: String,
    },
    /// The value of a header cannot be sent: correct it.
    #[error("header {name}: the value has bytes that no header can have")]
    Header {
        /// Which.
        name: http::HeaderName,
        /// What is wrong with its value.
        #[source]
        source: http::header::InvalidHeaderValue,
    },
    /// The path can be none: correct it.
    #[error("path {path:?} cannot be sent")]
    Path {
        /// What was given.
        path: String,
        /// What is wrong with it.
        #[source]
        source: http::Error,
    },
    /// The answer took too long: the call may or may not have happened.
    #[error("no answer from {url} within {after:?}")]
    TimedOut {
        /// Where to.
        url: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// Nobody answered: the call may or may not have happened.
    #[error("no answer from {url}")]
    Unreachable {
        /// Where to.
        url: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server refused, and says why.
    #[error("{}: {}", .0.code, .0.detail)]
    Problem(Box<Problem>),
    /// The answer is not one of ours: something else listens there.
    #[error("answer {status} is not one of a Laneway server")]
    Foreign {
        /// Its status.
        status: StatusCode,
        /// What is wrong with its body.
        #[source]
        source: serde_json::Error,
    },
    /// What was to be sent cannot be written as JSON.
    #[error("the request cannot be written as JSON")]
    Encode(#[from] serde_json::Error),
}

impl ClientError {
    /// The stable code of the server's refusal, if it is one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Problem(problem) => Some(&problem.code),
            _ => None,
        }
    }

    /// Whether the same call may succeed later: nobody answered, or the server says so.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::Unreachable { .. } => true,
            Self::Problem(problem) => problem.retryable,
            Self::Url { .. }
            | Self::Certificate { .. }
            | Self::Header { .. }
            | Self::Path { .. }
            | Self::Foreign { .. }
            | Self::Encode(_) => false,
        }
    }
}
