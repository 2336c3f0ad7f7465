//! Why a handler did not do its work, and what that says about another attempt.
//!
//! The errors of our own calls are enums of their own ([`SendError`](crate::SendError),
//! [`WaitError`](crate::WaitError), …); all of them turn into this one, so that `?` works in a handler and in `main`.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use laneway_engine::handler::{Failure, Retry, panic_words};

/// What handlers answer, and what `main` may answer too: every error turns into [`Error`] with `?`.
///
/// ```
/// use laneway::Result;
///
/// fn total(lines: &str) -> Result<i64> {
///     let mut total = 0;
///     for line in lines.lines() {
///         total += line.parse::<i64>()?;
///     }
///     Ok(total)
/// }
/// assert_eq!(total("5\n7").unwrap(), 12);
/// assert!(total("five").is_err());
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a handler did not do its work.
///
/// Every error turns into it with `?`, and then the processor's policy decides about another attempt. A handler that
/// knows better says so:
///
/// ```
/// use laneway::{Error, Result, RetryExt};
/// use std::time::Duration;
///
/// fn parse(amount: &str) -> Result<u64> {
///     // The same text will never parse: no attempt is wasted on it.
///     amount.parse::<u64>().permanent()
/// }
///
/// fn charge(bank_is_open: bool) -> Result<()> {
///     if !bank_is_open {
///         return Err(Error::new("the bank is closed").retry_after(Duration::from_secs(3_600)));
///     }
///     Ok(())
/// }
///
/// assert!(parse("ten").unwrap_err().is_permanent());
/// assert_eq!(charge(false).unwrap_err().to_string(), "the bank is closed");
/// ```
pub struct Error {
    cause: Box<dyn StdError + Send + Sync>,
    retry: Retry,
}

impl Error {
    /// An error from words or from another error; the policy decides about another attempt.
    pub fn new(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: cause.into(), retry: Retry::ByPolicy }
    }

    /// An error that another attempt would only repeat: the event is given up at once.
    pub fn permanent(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { cause: cause.into(), retry: Retry::Never }
    }

    /// The same, with the next attempt no sooner than this, if the policy allows another one at all.
    pub fn retry_after(self, wait: Duration) -> Self {
        Self { retry: Retry::After(wait), ..self }
    }

    /// Whether the event is given up at once.
    pub fn is_permanent(&self) -> bool {
        self.retry == Retry::Never
    }

    /// A handler panicked: it is not known with which of its events, so none is given up before it has failed alone.
    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        Self { retry: Retry::Alone, ..Self::new(panic_words(panic)) }
    }

    /// The same about a single event, which it can only have been.
    pub(crate) fn of_one(self) -> Self {
        let retry = if self.retry == Retry::Alone { Retry::ByPolicy } else { self.retry };
        Self { retry, ..self }
    }

    pub(crate) fn into_failure(self) -> Failure {
        Failure { error: self.to_string(), retry: self.retry }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for Error {
    /// The whole chain of causes in one line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(formatter)?;
        let mut next = self.cause.source();
        while let Some(cause) = next {
            write!(formatter, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    /// As [`Display`](fmt::Display), since this is what a `main` that returns it prints.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Says at the place where something went wrong whether another attempt may help.
///
/// ```
/// use laneway::{Result, RetryExt};
/// use std::time::Duration;
///
/// async fn call_the_bank() -> std::io::Result<()> {
///     Err(std::io::Error::other("busy"))
/// }
///
/// async fn handler() -> Result<()> {
///     call_the_bank().await.retry_after(Duration::from_secs(2))
/// }
/// ```
pub trait RetryExt<T> {
    /// Not sooner than after this time.
    fn retry_after(self, wait: Duration) -> Result<T>;

    /// Never.
    fn permanent(self) -> Result<T>;
}

impl<T, E: Into<Error>> RetryExt<T> for Result<T, E> {
    fn retry_after(self, wait: Duration) -> Result<T> {
        self.map_err(|error| error.into().retry_after(wait))
    }

    fn permanent(self) -> Result<T> {
        self.map_err(|error| Error { retry: Retry::Never, ..error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot charge")]
    struct Outer(#[source] fmt::Error);

    #[test]
    fn the_whole_chain_is_told_in_one_line() {
        let error: Error = Outer(fmt::Error).into();
        let inner = fmt::Error.to_string();
        assert_eq!(error.to_string(), format!("cannot charge: {inner}"));
        assert_eq!(error.into_failure().retry, Retry::ByPolicy);
    }

    #[test]
    fn what_is_said_last_about_another_attempt_counts() {
        let wait = Duration::from_secs(5);
        let soft = Err::<(), _>(Outer(fmt::Error)).permanent().retry_after(wait);
        assert_eq!(soft.unwrap_err().into_failure().retry, Retry::After(wait));
        assert!(Error::permanent("no").is_permanent());
    }
}
