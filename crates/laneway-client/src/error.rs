//! Why a call did not succeed, by what the caller does next.

use http::StatusCode;

use crate::wire::Problem;

/// Why a call did not succeed.
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
}
