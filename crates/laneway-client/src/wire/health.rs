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
    /// Why the wall clock is not trusted, while it is not: it jumped, or the machine has booted. Nothing is deleted by its age until
    /// it has settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// How far log time is ahead of the time of day, when that is more than a minute: a wrong clock was believed for a while. New
    /// events carry that time until the clock has caught up; dates and lives do not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ahead: Option<String>,
    /// Processors that keep the store from deleting old files, one line per partition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
    /// Version of the server.
    pub version: String,
}
