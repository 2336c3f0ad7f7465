//! Lengths of time (`300ms`, `5s`, `7d`) and dates (RFC 3339).

use std::time::Duration;

use laneway::Timestamp;
use laneway::core::{Due, period};

use super::wall;
use crate::http::error::{Failure, Result};

/// A length of time by its text.
pub(crate) fn length(field: &str, text: &str) -> Result<Duration> {
    period::parse(text).ok_or_else(|| Failure::value(field, format!("{text:?}"), period::FORM))
}

/// A moment by its text.
pub(crate) fn date(field: &str, text: &str) -> Result<Timestamp> {
    let parsed: Option<jiff::Timestamp> = text.parse().ok();
    let micros = parsed.and_then(|date| u64::try_from(date.as_microsecond()).ok());
    micros
        .map(Timestamp)
        .ok_or_else(|| Failure::value(field, format!("{text:?}"), "a date such as 2026-11-16T18:00:00Z"))
}

/// A moment as text.
pub(crate) fn date_of(at: Timestamp) -> String {
    let date = i64::try_from(at.0).ok().and_then(|micros| jiff::Timestamp::from_microsecond(micros).ok());
    date.unwrap_or(jiff::Timestamp::MAX).to_string()
}

/// When something is due, as a moment of the wall clock.
pub(crate) fn due(due: Due) -> Timestamp {
    match due {
        Due::Calendar(at) => at,
        Due::Steady(at) => wall::date(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_is_none_is_refused_by_name() {
        assert_eq!(length("keep", "5s").unwrap(), Duration::from_secs(5));
        assert!(length("keep", "soon").unwrap_err().detail.contains("keep is \"soon\""));
    }

    #[test]
    fn dates_come_back_as_they_were() {
        let at = date("run_at", "2026-11-16T18:00:00.5+01:00").unwrap();
        assert_eq!(date_of(at), "2026-11-16T17:00:00.5Z");
        assert!(date("run_at", "tomorrow").unwrap_err().detail.contains("\"tomorrow\""));
    }
}
