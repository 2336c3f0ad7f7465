//! Whether a server takes work.

use serde::{Deserialize, Serialize};

/// What stands behind the answer of `GET /readyz?verbose`.
///
/// ```
/// use laneway_client::wire::Readiness;
///
/// let told = r#"{"ready":true,"store":"answers","durability":"synced","seats_owned":16,"draining":false,"version":"0.1.0"}"#;
/// let readiness: Readiness = serde_json::from_str(told)?;
/// assert_eq!((readiness.ready, readiness.seats_owned), (true, 16));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Readiness {
    /// Whether it takes work.
    pub ready: bool,
    /// `answers`, or why the store does not.
    pub store: String,
    /// What an acknowledged append survives.
    pub durability: String,
    /// Partitions, counted per processor, that this process owns.
    pub seats_owned: usize,
    /// Whether it lets its runs finish and then ends.
    pub draining: bool,
    /// How far the store's time is ahead of the wall clock, when that is more than a minute: the clock has jumped forth and
    /// back. The store's time stands still until the clock has caught up, and dates up to it are due already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<String>,
    /// Version of the server.
    pub version: String,
}
