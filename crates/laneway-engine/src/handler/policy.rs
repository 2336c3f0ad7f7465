//! The failure policy: what becomes of an event whose run failed.
//!
//! Pure: chance is passed in.

use std::borrow::Cow;
use std::time::Duration;

use laneway_core::Headers;
pub use laneway_core::OnFailure;
use laneway_core::limits::RETRY_AFTER_MAX;
use laneway_core::policy::Overrides;

use super::types::{Failure, Retry};

/// How a processor treats failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Attempts at one event, the first included. One that was in a batch that failed as a whole, by a panic or by its time,
    /// has at least two, the second alone. Default: 5.
    pub max_attempts: u32,
    /// Wait after the first failed attempt; doubles with each. Default: 1 s.
    pub backoff: Duration,
    /// Longest wait. Default: 5 min.
    pub backoff_max: Duration,
    /// What happens after the last attempt. Default: park.
    pub on_failure: OnFailure,
    /// Crashes of the process with the event running, after which it is parked. Default: 3.
    pub crashes_max: u32,
}

/// What the policy says about one failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Another attempt after this time.
    RetryAfter(Duration),
    /// No other attempt.
    GiveUp(OnFailure),
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(300),
            on_failure: OnFailure::Park,
            crashes_max: 3,
        }
    }
}

/// What an event says about its own failures. They were checked when it was appended; what cannot be read now was
/// written by a newer Laneway and counts as not said.
pub(crate) fn said_by(headers: &Headers) -> Overrides {
    if headers.is_empty() { Overrides::default() } else { Overrides::of(headers).unwrap_or_default() }
}

impl Policy {
    /// The policy for an event with these headers.
    pub(crate) fn for_event(&self, headers: &Headers) -> Cow<'_, Self> {
        let said = said_by(headers);
        if said == Overrides::default() {
            return Cow::Borrowed(self);
        }
        let backoff_max = said.backoff_max.unwrap_or(self.backoff_max);
        Cow::Owned(Self {
            max_attempts: said.max_attempts.unwrap_or(self.max_attempts),
            backoff: said.backoff.unwrap_or(self.backoff),
            // An event that asks for a longer first wait than its processor's longest means it.
            backoff_max: backoff_max.max(said.backoff.unwrap_or_default()),
            on_failure: said.on_failure.unwrap_or(self.on_failure),
            crashes_max: self.crashes_max,
        })
    }

    /// Decides after a failed attempt. `attempts` counts it; `chance` is between 0 and 1.
    pub fn decide(&self, attempts: u32, failure: &Failure, chance: f64) -> Decision {
        let used_up = attempts >= self.max_attempts && failure.retry != Retry::Alone;
        if failure.retry == Retry::Never || used_up {
            return Decision::GiveUp(self.on_failure);
        }
        Decision::RetryAfter(match failure.retry {
            // A handler in this process cannot be refused: it waits as long as anybody may.
            Retry::After(wait) => wait.min(RETRY_AFTER_MAX),
            Retry::ByPolicy | Retry::Alone | Retry::Never | Retry::NotRun => {
                self.wait_after(attempts, chance)
            }
        })
    }

    /// Between half and all of the doubled wait, so that lanes that failed together do not come back together.
    fn wait_after(&self, attempts: u32, chance: f64) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        let whole = self.backoff.saturating_mul(1 << doublings).min(self.backoff_max);
        whole.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attempts: u32, retry: Retry, chance: f64, expected: Decision) {
        let policy = Policy { on_failure: OnFailure::DeadLetter, ..Policy::default() };
        let failure = Failure { error: "boom".to_owned(), retry };
        assert_eq!(policy.decide(attempts, &failure, chance), expected, "attempt {attempts}, {retry:?}");
    }

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread_by_chance() {
        let after = |seconds| Decision::RetryAfter(Duration::from_secs_f64(seconds));
        check(1, Retry::ByPolicy, 1.0, after(1.0));
        check(1, Retry::ByPolicy, 0.0, after(0.5));
        check(3, Retry::ByPolicy, 1.0, after(4.0));
        let patient = Policy { max_attempts: 100, ..Policy::default() };
        assert_eq!(patient.wait_after(60, 1.0), patient.backoff_max);
    }

    #[test]
    fn the_handler_may_say_when_but_not_more_often_than_allowed() {
        check(4, Retry::After(Duration::from_secs(9)), 0.0, Decision::RetryAfter(Duration::from_secs(9)));
        check(4, Retry::After(Duration::MAX), 0.0, Decision::RetryAfter(RETRY_AFTER_MAX));
        check(5, Retry::After(Duration::from_secs(9)), 0.0, Decision::GiveUp(OnFailure::DeadLetter));
    }

    #[test]
    fn headers_of_an_event_override_its_processors_policy_one_by_one() {
        let policy = Policy::default();
        let headers = Headers::new([("laneway-max-attempts", "2"), ("laneway-backoff", "10m")]).expect("few");
        let own = policy.for_event(&headers);
        assert_eq!((own.max_attempts, own.on_failure), (2, OnFailure::Park));
        assert_eq!(own.wait_after(1, 1.0), Duration::from_secs(600));
        let plain = Headers::new([("trace", "1")]).expect("few");
        assert!(matches!(policy.for_event(&plain), Cow::Borrowed(_)));
    }

    #[test]
    fn what_failed_among_others_is_not_given_up() {
        check(5, Retry::Alone, 1.0, Decision::RetryAfter(Duration::from_secs(16)));
    }

    #[test]
    fn a_permanent_error_is_given_up_at_once() {
        check(1, Retry::Never, 0.0, Decision::GiveUp(OnFailure::DeadLetter));
    }
}
