//! Short words for lengths of time, so that examples and settings read well.

use std::time::Duration;

/// So many seconds.
///
/// ```
/// assert_eq!(laneway::secs(2), std::time::Duration::from_secs(2));
/// ```
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// So many minutes.
///
/// ```
/// assert_eq!(laneway::mins(2), laneway::secs(120));
/// ```
pub const fn mins(minutes: u64) -> Duration {
    secs(minutes * 60)
}

/// So many hours.
///
/// ```
/// assert_eq!(laneway::hours(1), laneway::mins(60));
/// ```
pub const fn hours(hours: u64) -> Duration {
    mins(hours * 60)
}

/// So many days of 24 hours.
///
/// ```
/// assert_eq!(laneway::days(7), laneway::hours(168));
/// ```
pub const fn days(days: u64) -> Duration {
    hours(days * 24)
}
