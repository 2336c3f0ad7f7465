//! Errors, as RFC 9457 has them.

use serde::{Deserialize, Serialize};

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A stable name for this kind of error, as a URI.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time: names the field, the value and the limit.
    pub detail: String,
    /// A stable name for this kind of error, in one word.
    pub code: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}
