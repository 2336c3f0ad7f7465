//! A second opinion on due times: somebody who looks at the clock on the wall every minute and has a list of hours and
//! minutes. Shares neither the expression's parser nor the search with what it checks.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan};
use proptest::prelude::*;

use super::fixture::{cron, zone};
use crate::upkeep::schedule::Timetable;

const SECOND: SignedDuration = SignedDuration::from_secs(1);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const AROUND: SignedDuration = SignedDuration::from_hours(40);

pub(super) const ZONES: [&str; 10] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "UTC",
    "America/Santiago",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Pacific/Apia",
    "Asia/Pyongyang",
];

/// Hours, minutes and weekdays (from Monday) as lists; none of them is empty.
#[derive(Clone, Debug)]
struct Watch {
    hours: Vec<i8>,
    minutes: Vec<i8>,
    weekdays: Vec<i8>,
}

impl Watch {
    fn expression(&self) -> String {
        let list = |values: &[i8]| values.iter().map(i8::to_string).collect::<Vec<_>>().join(",");
        format!("{} {} * * {}", list(&self.minutes), list(&self.hours), list(&self.weekdays))
    }

    fn matches(&self, wall: DateTime) -> bool {
        self.hours.contains(&wall.hour())
            && self.minutes.contains(&wall.minute())
            && self.weekdays.contains(&wall.weekday().to_monday_one_offset())
    }

    /// Whether the hour before, those between and the one after are all on the list.
    fn runs_through(&self, first: DateTime, last: DateTime) -> bool {
        minutes_of(first - 1.hour(), last + 1.minute()).all(|wall| self.hours.contains(&wall.hour()))
    }

    fn is_due(&self, moment: Timestamp, zone: &TimeZone) -> bool {
        let (before, after) = (zone.to_offset(moment - SECOND), zone.to_offset(moment));
        let wall = after.to_datetime(moment);
        let unchanged = before.to_datetime(moment);
        if unchanged < wall {
            let lost = minutes_of(unchanged, wall).any(|lost| self.matches(lost));
            if lost && !self.runs_through(unchanged, wall) {
                return true;
            }
        }
        let second_showing = match zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Fold { before, after: second } if after == second => {
                Some(SignedDuration::from_secs(i64::from(before.seconds() - second.seconds())))
            }
            _ => None,
        };
        let counts = second_showing.is_none_or(|length| {
            let change = zone.preceding(moment + SECOND).next().unwrap().timestamp();
            let first = after.to_datetime(change);
            self.runs_through(first, first + length)
        });
        counts && self.matches(wall)
    }
}

fn minutes_of(first: DateTime, end: DateTime) -> impl Iterator<Item = DateTime> {
    first.series(1.minute()).take_while(move |wall| *wall < end)
}

fn any_watch() -> impl Strategy<Value = Watch> {
    use proptest::sample::subsequence;
    let range = |first: i8, last: i8| (first..=last).collect::<Vec<i8>>();
    let some_hours = subsequence(range(0, 23), 1..=24);
    let row_of_hours =
        (0i8..20, 1i8..24).prop_map(move |(first, count)| range(first, (first + count).min(23)));
    let hours = prop_oneof![Just(range(0, 23)), Just(range(0, 4)), some_hours, row_of_hours];
    let minutes = prop_oneof![subsequence(range(0, 59), 1..=4), Just(vec![0]), Just(range(0, 59))];
    let weekdays = prop_oneof![Just(range(1, 7)), subsequence(range(1, 7), 1..=7)];
    (hours, minutes, weekdays).prop_map(|(hours, minutes, weekdays)| Watch { hours, minutes, weekdays })
}

proptest! {
    #[test]
    fn due_times_are_those_of_somebody_who_watches_the_clock(
        watch in any_watch(),
        name in proptest::sample::select(ZONES.to_vec()),
        // Between 1990 and 2040, in whole hours.
        hour in 175_320i64..613_620,
    ) {
        let zone = zone(name);
        let moment = Timestamp::from_second(hour * 3600).unwrap();
        // The next change, where there is one: elsewhere nothing happens.
        let middle = zone.following(moment).next().map_or(moment, |change| change.timestamp());
        let (first, end) = (middle - AROUND, middle + AROUND);
        let watched: Vec<Timestamp> =
            std::iter::successors(Some(first), |moment| Some(*moment + MINUTE))
                .take_while(|moment| *moment < end)
                .filter(|moment| watch.is_due(*moment, &zone))
                .collect();

        let timetable = Timetable::new(&cron(&watch.expression(), name)).unwrap();
        let micros = |moment: Timestamp| {
            laneway_core::Timestamp(u64::try_from(moment.as_microsecond()).unwrap())
        };
        let (first, end) = (micros(first), micros(end));
        let watched: Vec<_> = watched.into_iter().map(micros).collect();
        let before = |moment: laneway_core::Timestamp| laneway_core::Timestamp(moment.0 - 1);

        let forwards: Vec<_> = std::iter::successors(timetable.after(before(first)), |due| timetable.after(*due))
            .take_while(|due| *due < end)
            .collect();
        prop_assert_eq!(&forwards, &watched);

        let earlier = |due: &laneway_core::Timestamp| timetable.last_to(before(*due));
        let mut backwards: Vec<_> = std::iter::successors(timetable.last_to(before(end)), earlier)
            .take_while(|due| *due >= first)
            .collect();
        backwards.reverse();
        prop_assert_eq!(&backwards, &watched);
    }
}
