//! What a handler answers, and how a push ends.

use std::fmt;
use std::time::Duration;

use crate::table::{ItemId, Version};

/// What a handler answers for one run.
///
/// ```
/// use laneway_lanes::Outcome;
/// let parsed: Outcome<u32, _> = "17".parse::<u32>().into();
/// assert_eq!(parsed, Outcome::Done(17));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<R, E> {
    /// Done, with a value for the ticket.
    Done(R),
    /// Run it again after this wait. It keeps its place at the head of its lane; once the attempts are used up it
    /// ends failed with this error.
    Retry {
        /// How long to wait.
        after: Duration,
        /// What went wrong this time.
        error: E,
    },
    /// Failed for good; the lane goes on with the next push.
    Fail(E),
}

impl<R, E> From<Result<R, E>> for Outcome<R, E> {
    /// An error is final; answer [`Outcome::Retry`] for another attempt.
    fn from(result: Result<R, E>) -> Self {
        match result {
            Ok(value) => Self::Done(value),
            Err(error) => Self::Fail(error),
        }
    }
}

/// How a push ended. Every accepted push ends exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End<R, E> {
    /// The handler was done, with this value.
    Done(R),
    /// The handler failed, panicked or ran out of time.
    Failed(Failure<E>),
    /// Latest mode: a newer push of its key took its place, or had already done its version.
    Superseded {
        /// The push that won; its ticket has this number.
        by: ItemId,
    },
    /// Latest mode: it was older than what its key had already accepted.
    Stale {
        /// The newest accepted version.
        newest: Version,
    },
    /// It was cancelled, or the executor was shut down before it could run.
    Cancelled,
    /// It was not started within its time to live.
    Expired,
}

impl<R, E> End<R, E> {
    /// The handler's value, if it was done.
    pub fn done(self) -> Option<R> {
        match self {
            Self::Done(value) => Some(value),
            _ => None,
        }
    }
}

/// A failed push: why, and after how many attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure<E> {
    /// Why the last attempt failed.
    pub cause: Cause<E>,
    /// Attempts made, the last included.
    pub attempts: u32,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause<E> {
    /// The handler said so.
    Handler(E),
    /// The handler panicked with this message.
    Panicked(String),
    /// The handler took longer than this and was dropped.
    TimedOut(Duration),
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Handler(error) => write!(formatter, "{error}")?,
            Cause::Panicked(message) => write!(formatter, "handler panicked: {message}")?,
            Cause::TimedOut(limit) => write!(formatter, "handler took longer than {limit:?}")?,
        }
        write!(formatter, " (attempt {})", self.attempts)
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for Failure<E> {}
