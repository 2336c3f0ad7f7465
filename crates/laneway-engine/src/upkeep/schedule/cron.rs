//! A cron expression on the clocks of a zone.
//!
//! Between two changes of its clocks a zone is a fixed distance from UTC, and there the expression means what it says.
//! At a change there are two rules:
//!
//! - A time that is never shown fires once, at the moment the clocks are put forward. A time that is shown twice fires
//!   the first time.
//! - Unless the expression *runs through* the change: it names the hour before, every hour in between and the hour
//!   after. Then it says how often, not when; it fires whenever the clocks show a match, in every real hour, and
//!   nothing is made up for the times that were never shown.
//!
//! The hours decide, not the spelling: cron and croner look for a star or a step, so that `0 */2 * * *` loses a firing
//! each spring and `0 0-23 * * *` is not hourly each autumn.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use laneway_core::Refusal;

use super::pattern::Pattern;
use super::zone::{Change, Zone};

const SECOND: SignedDuration = SignedDuration::from_secs(1);
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A checked expression in a known zone.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    pattern: Pattern,
    zone: Zone,
}

impl Cron {
    pub(super) fn parse(expression: &str, zone: &str) -> Result<Self, Refusal> {
        Ok(Self { pattern: Pattern::parse(expression)?, zone: Zone::parse(zone)? })
    }

    /// The first due time after a moment; none if the calendar ends before.
    pub(super) fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let mut offset = self.zone.offset(moment);
        let mut from = moment;
        let shown = offset.to_datetime(moment).checked_add(SECOND).ok()?;
        let opens = self.zone.change_to(moment).map(|change| self.opens(change));
        let mut wall = self.pattern.first_from(opens.map_or(shown, |opens| opens.max(shown)))?;
        loop {
            let due = offset.to_timestamp(wall).ok()?;
            let Some(change) = self.zone.change_after(from).filter(|change| due >= change.at) else {
                return Some(due);
            };
            if change.is_forward() && wall < change.wall_after() && !self.runs_through(change) {
                return Some(change.at);
            }
            let opens = self.opens(change);
            // Only where times are shown twice can there be an earlier match than the one at hand.
            if wall < opens || opens < change.wall_before() {
                wall = self.pattern.first_from(opens)?;
            }
            offset = change.after;
            from = change.at;
        }
    }

    /// The last due time at or before a moment; none if the calendar begins after.
    pub(super) fn last_to(&self, moment: Timestamp) -> Option<Timestamp> {
        let mut offset = self.zone.offset(moment);
        let mut from = moment;
        let mut wall = self.pattern.last_to(offset.to_datetime(moment))?;
        loop {
            let due = offset.to_timestamp(wall).ok()?;
            let Some(change) = self.zone.change_to(from).filter(|change| wall < self.opens(*change)) else {
                return Some(due);
            };
            if change.is_forward() && wall >= change.wall_before() && !self.runs_through(change) {
                return Some(change.at);
            }
            let closes = change.wall_before().checked_sub(SECOND).ok()?;
            // Where times are shown twice, later ones than the one at hand were shown before it.
            if change.is_back() || wall > closes {
                wall = self.pattern.last_to(closes)?;
            }
            offset = change.before;
            from = change.at.checked_sub(SECOND).ok()?;
        }
    }

    /// The first time on the clocks that counts after a change.
    fn opens(&self, change: Change) -> DateTime {
        if change.is_back() && !self.runs_through(change) {
            change.wall_before()
        } else {
            change.wall_after()
        }
    }

    /// Whether the expression says how often rather than when, as far as this change can tell.
    fn runs_through(&self, change: Change) -> bool {
        let (first, last) = (change.wall_before(), change.wall_after());
        let (first, last) = (first.min(last), first.max(last));
        let full = first.with().minute(0).second(0).subsec_nanosecond(0).build();
        let hours =
            full.and_then(|hour| hour.checked_sub(HOUR)).map(|hour| hour.series(jiff::ToSpan::hour(1)));
        hours.is_ok_and(|hours| {
            hours.take_while(|hour| *hour <= last).all(|hour| self.pattern.names_hour_of(hour))
        })
    }
}
