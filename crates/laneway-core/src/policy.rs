//! What becomes of failures, as far as an event itself may say: reserved headers override its processor's policy.
//!
//! They are checked when the event is appended, and read only when one of its runs fails, so that they cost nothing on
//! the usual way.

use std::time::Duration;

use crate::error::Refusal;
use crate::event::Headers;
use crate::limits;
use crate::period;

/// Header: attempts at this event, the first included.
pub const MAX_ATTEMPTS: &str = "laneway-max-attempts";
/// Header: wait after the first failed attempt.
pub const BACKOFF: &str = "laneway-backoff";
/// Header: longest wait.
pub const BACKOFF_MAX: &str = "laneway-backoff-max";
/// Header: what happens after the last attempt.
pub const ON_FAILURE: &str = "laneway-on-failure";
/// Header: how long a run of this event may take.
pub const TIMEOUT: &str = "laneway-timeout";

/// All of them.
pub const HEADERS: [&str; 5] = [MAX_ATTEMPTS, BACKOFF, BACKOFF_MAX, ON_FAILURE, TIMEOUT];

/// Longest wait or run that an event may ask for: a mistyped unit is noticed.
const PERIOD_MAX: Duration = limits::RETRY_AFTER_MAX;

/// What happens to an event that is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// It stays the head of its lane, which stops until somebody decides.
    #[default]
    Park,
    /// It is kept aside and the lane goes on.
    DeadLetter,
    /// It and all later events of its lane are kept aside until redriven.
    DeadLetterLane,
    /// The processor stops on this partition.
    Halt,
    /// It ends failed; the lane goes on.
    Drop,
}

impl OnFailure {
    /// All of them, with their words.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Park, "park"),
        (Self::DeadLetter, "dead_letter"),
        (Self::DeadLetterLane, "dead_letter_lane"),
        (Self::Halt, "halt"),
        (Self::Drop, "drop"),
    ];

    /// The one of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(found, _)| *found)
    }
}

/// What an event says about its own failures; what it leaves out its processor says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Attempts, the first included.
    pub max_attempts: Option<u32>,
    /// Wait after the first failed attempt.
    pub backoff: Option<Duration>,
    /// Longest wait.
    pub backoff_max: Option<Duration>,
    /// What happens after the last attempt.
    pub on_failure: Option<OnFailure>,
    /// How long a run may take.
    pub timeout: Option<Duration>,
}

impl Overrides {
    /// What the headers of an event say.
    ///
    /// ```
    /// use laneway_core::{Headers, policy::Overrides};
    /// let headers = Headers::new([("laneway-max-attempts", "3"), ("laneway-backoff", "2m")]).unwrap();
    /// let overrides = Overrides::of(&headers).unwrap();
    /// assert_eq!((overrides.max_attempts, overrides.timeout), (Some(3), None));
    /// let wrong = Headers::new([("laneway-timeout", "soon")]).unwrap();
    /// assert!(Overrides::of(&wrong).unwrap_err().to_string().starts_with("laneway-timeout is soon, must be"));
    /// ```
    ///
    /// # Errors
    /// Names the header, its value and what it must be.
    pub fn of(headers: &Headers) -> Result<Self, Refusal> {
        let mut said = Self::default();
        // The first of a name counts, as everywhere.
        for (name, value) in headers.iter().filter(|(name, _)| name.starts_with("laneway-")) {
            match name {
                MAX_ATTEMPTS => said.max_attempts = said.max_attempts.or(Some(attempts(value)?)),
                BACKOFF => said.backoff = said.backoff.or(Some(length(BACKOFF, value)?)),
                BACKOFF_MAX => said.backoff_max = said.backoff_max.or(Some(length(BACKOFF_MAX, value)?)),
                ON_FAILURE => said.on_failure = said.on_failure.or(Some(on_failure(value)?)),
                TIMEOUT => said.timeout = said.timeout.or(Some(timeout(value)?)),
                _ => {}
            }
        }
        if let (Some(backoff), Some(max)) = (said.backoff, said.backoff_max)
            && backoff > max
        {
            return Err(Refusal::new(
                BACKOFF,
                format!("{backoff:?}"),
                format!("at most {BACKOFF_MAX}, {max:?}"),
            ));
        }
        Ok(said)
    }
}

fn attempts(value: &[u8]) -> Result<u32, Refusal> {
    let number = text(value).parse().ok().filter(|number| (1..=limits::ATTEMPTS_MAX).contains(number));
    number.ok_or_else(|| {
        let limit = format!("a number from 1 to {}: it counts the first attempt", limits::ATTEMPTS_MAX);
        Refusal::new(MAX_ATTEMPTS, text(value), limit)
    })
}

fn on_failure(value: &[u8]) -> Result<OnFailure, Refusal> {
    OnFailure::parse(&text(value)).ok_or_else(|| {
        let words: Vec<&str> = OnFailure::ALL.iter().map(|(_, word)| *word).collect();
        Refusal::new(ON_FAILURE, text(value), format!("one of {}", words.join(", ")))
    })
}

fn timeout(value: &[u8]) -> Result<Duration, Refusal> {
    let length = length(TIMEOUT, value)?;
    if length.is_zero() {
        return Err(Refusal::new(
            TIMEOUT,
            text(value),
            "more than nothing (leave it out for the processor's)",
        ));
    }
    Ok(length)
}

fn length(field: &'static str, value: &[u8]) -> Result<Duration, Refusal> {
    let length = period::parse(&text(value)).ok_or_else(|| Refusal::new(field, text(value), period::FORM))?;
    if length > PERIOD_MAX {
        return Err(Refusal::new(field, text(value), "at most 366d"));
    }
    Ok(length)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str) -> Result<Overrides, String> {
        let headers = Headers::new([(name, value)]).expect("few headers");
        Overrides::of(&headers).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn headers_that_make_sense_are_read() {
        assert_eq!(check("laneway-max-attempts", "3").map(|said| said.max_attempts), Ok(Some(3)));
        assert_eq!(check("laneway-backoff", "0s").map(|said| said.backoff), Ok(Some(Duration::ZERO)));
        let drop = check("laneway-on-failure", "drop").map(|said| said.on_failure);
        assert_eq!(drop, Ok(Some(OnFailure::Drop)));
        assert_eq!(check("other", "x"), Ok(Overrides::default()));
    }

    #[test]
    fn wrong_values_are_refused_by_field_value_and_limit() {
        for (name, value) in [
            ("laneway-max-attempts", "0"),
            ("laneway-max-attempts", "1000001"),
            ("laneway-max-attempts", "4294967295"),
            ("laneway-max-attempts", "many"),
            ("laneway-backoff", "5"),
            ("laneway-backoff-max", "367d"),
            ("laneway-on-failure", "retry"),
            ("laneway-timeout", "0s"),
        ] {
            let refusal = check(name, value).expect_err("it is wrong");
            assert!(refusal.starts_with(&format!("{name} is {value}, must be ")), "{refusal}");
        }
        let both =
            Headers::new([("laneway-backoff", "2m"), ("laneway-backoff-max", "1m")]).expect("few headers");
        assert!(Overrides::of(&both).is_err());
    }
}
