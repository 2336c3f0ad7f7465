//! The due times of a checked spec, forwards and backwards.
//!
//! Does not know which of them were fired: see `plan.rs`.

use std::time::Duration;

use laneway_core::limits::DELAY_MAX;
use laneway_core::{Refusal, Timestamp};

use super::cron::Cron;
use super::definition::Spec;

/// Shortest interval: finer beats belong into the handler, not into the log.
const LENGTH_MIN: Duration = Duration::from_secs(1);
const MICROS_PER_SECOND: u64 = 1_000_000;

/// A checked spec. Cheap to ask, so keep it with the schedule instead of making it anew for every plan.
#[derive(Clone, Debug)]
pub struct Timetable(Beat);

#[derive(Clone, Debug)]
enum Beat {
    Every { length_micros: u64, anchor: Timestamp },
    Cron(Box<Cron>),
}

impl Timetable {
    /// Checks a spec.
    ///
    /// # Errors
    /// A refusal that names the field, its value and what it must be: an interval out of bounds, an expression that is
    /// none or has no date that exists, an unknown zone.
    pub fn new(spec: &Spec) -> Result<Self, Refusal> {
        match spec {
            Spec::Every { length, anchor } => {
                if !(LENGTH_MIN..=DELAY_MAX).contains(length) {
                    return Err(Refusal::new("every", format!("{length:?}"), "1 second to 10 years"));
                }
                let length_micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
                Ok(Self(Beat::Every { length_micros, anchor: *anchor }))
            }
            Spec::Cron { expression, zone } => Ok(Self(Beat::Cron(Box::new(Cron::parse(expression, zone)?)))),
        }
    }

    /// The first due time after a moment; none if the calendar ends before.
    pub fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Beat::Every { anchor, .. } if moment < *anchor => Some(*anchor),
            Beat::Every { length_micros, anchor } => {
                let beats = (moment.0 - anchor.0) / length_micros + 1;
                beats.checked_mul(*length_micros)?.checked_add(anchor.0).map(Timestamp)
            }
            Beat::Cron(cron) => from_calendar(cron.after(to_calendar(moment))?),
        }
    }

    /// The last due time at or before a moment; none if there is none after 1970.
    pub fn last_to(&self, moment: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Beat::Every { length_micros, anchor } => {
                let since = moment.0.checked_sub(anchor.0)?;
                Some(Timestamp(moment.0 - since % length_micros))
            }
            Beat::Cron(cron) => from_calendar(cron.last_to(to_calendar(moment))?),
        }
    }
}

/// The whole second of a moment, which is all that cron can tell apart; beyond the calendar's end, that end.
fn to_calendar(moment: Timestamp) -> jiff::Timestamp {
    let seconds = i64::try_from(moment.0 / MICROS_PER_SECOND).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX)
}

fn from_calendar(moment: jiff::Timestamp) -> Option<Timestamp> {
    u64::try_from(moment.as_microsecond()).ok().map(Timestamp)
}
