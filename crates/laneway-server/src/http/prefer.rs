//! `Prefer: wait=N` (RFC 7240): how long an answer may take in order to say more.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::error::{Failure, Result};

const PREFER: HeaderName = HeaderName::from_static("prefer");
/// Says which preference was heeded.
pub(super) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
/// Longest wait in seconds; a longer one is cut to it, and the answer says so.
const WAIT_SECS_MAX: u64 = 60;

/// How long an answer may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wait(pub(super) Duration);

/// The wait that is asked for, as far as it is granted.
pub(super) fn wait(headers: &HeaderMap) -> Result<Option<Wait>> {
    for value in headers.get_all(PREFER) {
        let text = String::from_utf8_lossy(value.as_bytes());
        for preference in text.split(',') {
            let Some((name, given)) = preference.split_once('=') else { continue };
            if name.trim().eq_ignore_ascii_case("wait") {
                let given = given.trim().trim_matches('"');
                let seconds: u64 = given.parse().map_err(|_| {
                    Failure::value("Prefer: wait", format!("{given:?}"), "a number of seconds")
                })?;
                return Ok(Some(Wait(Duration::from_secs(seconds.min(WAIT_SECS_MAX)))));
            }
        }
    }
    Ok(None)
}

impl Wait {
    /// The header that says which wait was heeded.
    pub(super) fn applied(self) -> (HeaderName, HeaderValue) {
        let text = format!("wait={}", self.0.as_secs());
        (PREFERENCE_APPLIED, HeaderValue::from_str(&text).expect("digits are a header value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_found_among_other_preferences_and_bounded() {
        let wait_of = |text: &'static str| {
            wait(&HeaderMap::from_iter([(PREFER, HeaderValue::from_static(text))]))
                .map(|wait| wait.map(|wait| wait.0))
                .map_err(|failure| failure.detail)
        };
        assert_eq!(wait_of("respond-async, wait=10"), Ok(Some(Duration::from_secs(10))));
        assert_eq!(wait_of("Wait=\"3\""), Ok(Some(Duration::from_secs(3))));
        assert_eq!(wait_of("wait=4000"), Ok(Some(Duration::from_secs(60))));
        assert_eq!(wait_of("respond-async"), Ok(None));
        assert!(wait_of("wait=soon").unwrap_err().contains("\"soon\""));
    }
}
