//! Zones: how far their clocks are from UTC, and when that changes.
//!
//! The rules come from the database that is built in, not from the machine's: two nodes of one version then find the
//! same due times, a container without a database has one too, and nothing here reads a file.

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use laneway_core::Refusal;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// A known time zone.
#[derive(Clone, Debug)]
pub(super) struct Zone(TimeZone);

/// A moment at which the clocks of a zone are put forward, back, or (when only the name of the time changes) not at
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The first moment of the new time.
    pub(super) at: Timestamp,
    /// Distance from UTC until then.
    pub(super) before: Offset,
    /// Distance from UTC from then on.
    pub(super) after: Offset,
}

impl Zone {
    /// Looks a zone up by its IANA name.
    pub(super) fn parse(name: &str) -> Result<Self, Refusal> {
        let known = ZONES.get(name).ok().filter(|zone| !zone.is_unknown());
        let limit = "an IANA time zone such as UTC, Europe/Berlin or America/New_York";
        known.map(Self).ok_or_else(|| Refusal::new("zone", format!("{name:?}"), limit))
    }

    /// Distance from UTC at a moment.
    pub(super) fn offset(&self, moment: Timestamp) -> Offset {
        self.0.to_offset(moment)
    }

    /// The first change after a moment.
    pub(super) fn change_after(&self, moment: Timestamp) -> Option<Change> {
        self.0.following(moment).next().map(|found| self.change(found.timestamp()))
    }

    /// The last change at or before a moment.
    pub(super) fn change_to(&self, moment: Timestamp) -> Option<Change> {
        // The library looks strictly before; changes happen at whole seconds.
        let later = moment.saturating_add(SECOND).ok()?;
        self.0
            .preceding(later)
            .map(|found| found.timestamp())
            .find(|at| *at <= moment)
            .map(|at| self.change(at))
    }

    fn change(&self, at: Timestamp) -> Change {
        let just_before = at.saturating_sub(SECOND).unwrap_or(at);
        Change { at, before: self.offset(just_before), after: self.offset(at) }
    }
}

impl Change {
    /// What the clocks would have shown at that moment, had nobody touched them.
    pub(super) fn wall_before(self) -> DateTime {
        self.before.to_datetime(self.at)
    }

    /// What the clocks show at that moment.
    pub(super) fn wall_after(self) -> DateTime {
        self.after.to_datetime(self.at)
    }

    /// Whether the clocks are put forward: the times in between are never shown.
    pub(super) fn is_forward(self) -> bool {
        self.after > self.before
    }

    /// Whether the clocks are put back: the times in between are shown twice.
    pub(super) fn is_back(self) -> bool {
        self.after < self.before
    }
}
