//! How far a job is.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// How far a job is, as its handler last said with [`Ctx::progress`](crate::Ctx::progress).
///
/// ```
/// use laneway::Progress;
/// let progress = Progress { done: 3, total: 4, message: "lines".to_owned() };
/// assert_eq!(progress.to_string(), "3 of 4: lines");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// So many are done …
    pub done: u64,
    /// … of so many.
    pub total: u64,
    /// What is being done.
    pub message: String,
}

impl Progress {
    pub(crate) fn to_bytes(&self) -> Bytes {
        serde_json::to_vec(self).map(Bytes::from).expect("two numbers and a text are always JSON")
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {}", self.done, self.total)?;
        if self.message.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.message) }
    }
}
