//! Times as people write them, and specs in one line.

use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use laneway_core::Timestamp;

use crate::upkeep::schedule::{CatchUp, Firing, Overlap, Schedule, Spec};

/// A moment such as `2026-03-29T03:00+02:00`.
pub(super) fn at(text: &str) -> Timestamp {
    let moment: jiff::Timestamp = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    Timestamp(u64::try_from(moment.as_microsecond()).unwrap())
}

/// The same moment as the clocks of a zone show it; seconds only where there are some.
pub(super) fn shown(moment: Timestamp, zone: &TimeZone) -> String {
    let moment = calendar(moment).to_zoned(zone.clone());
    let form = if moment.second() == 0 { "%Y-%m-%dT%H:%M%:z" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    moment.strftime(form).to_string()
}

pub(super) fn calendar(moment: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(i64::try_from(moment.0).unwrap()).unwrap()
}

pub(super) fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

pub(super) fn cron(expression: &str, zone: &str) -> Spec {
    Spec::Cron { expression: expression.into(), zone: zone.into() }
}

pub(super) fn every(seconds: u64, anchor: &str) -> Spec {
    Spec::Every { length: Duration::from_secs(seconds), anchor: at(anchor) }
}

pub(super) fn schedule(spec: Spec) -> Schedule {
    Schedule {
        name: "nightly".into(),
        spec,
        overlap: Overlap::Queue,
        catch_up: CatchUp::Last,
        paused: false,
        since: at("2026-01-01T00:00Z"),
        firing: Firing::new("reports"),
    }
}
