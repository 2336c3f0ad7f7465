//! Due times as tables: zones whose clocks change, and the edges of the calendar.

use laneway_core::Timestamp;

use super::fixture::{at, cron, every, shown, zone};
use crate::upkeep::schedule::{Spec, Timetable};

/// The due times after a moment, forwards and then backwards again.
fn check_spec(spec: &Spec, zone_name: &str, from: &str, expected: &[&str]) {
    let (timetable, zone) = (Timetable::new(spec).unwrap(), zone(zone_name));
    let next = |due: &Timestamp| timetable.after(*due);
    let forwards: Vec<Timestamp> =
        std::iter::successors(next(&at(from)), next).take(expected.len()).collect();
    let texts: Vec<String> = forwards.iter().map(|due| shown(*due, &zone)).collect();
    assert_eq!(texts, expected, "{spec:?} after {from}");

    let last = *forwards.last().unwrap();
    let earlier = |due: &Timestamp| timetable.last_to(Timestamp(due.0 - 1));
    let mut backwards: Vec<Timestamp> =
        std::iter::successors(timetable.last_to(last), earlier).take(expected.len()).collect();
    backwards.reverse();
    assert_eq!(backwards, forwards, "{spec:?} backwards");
}

fn check(expression: &str, zone: &str, from: &str, expected: &[&str]) {
    check_spec(&cron(expression, zone), zone, from, expected);
}

#[test]
fn a_time_that_is_never_shown_fires_when_the_clocks_go_forward() {
    let berlin = |expression, expected: &[&str]| {
        check(expression, "Europe/Berlin", "2026-03-28T12:00+01:00", expected);
    };
    berlin("30 2 * * *", &["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]);
    berlin("0 2 * * *", &["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]);
    berlin("59 59 2 * * *", &["2026-03-29T03:00+02:00", "2026-03-30T02:59:59+02:00"]);
    berlin("0 3 * * *", &["2026-03-29T03:00+02:00", "2026-03-30T03:00+02:00"]);
    berlin("30 2 29 3 *", &["2026-03-29T03:00+02:00", "2027-03-29T02:30+02:00"]);
    check(
        "30 2 * * *",
        "America/New_York",
        "2026-03-07T12:00-05:00",
        &["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"],
    );
    check(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T12:00+10:30",
        &["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"],
    );
    check(
        "0 0 * * *",
        "America/Santiago",
        "2026-09-05T12:00-04:00",
        &["2026-09-06T01:00-03:00", "2026-09-07T00:00-03:00"],
    );
}

#[test]
fn several_times_that_are_never_shown_fire_once() {
    let berlin = |expression, expected: &[&str]| {
        check(expression, "Europe/Berlin", "2026-03-28T12:00+01:00", expected);
    };
    berlin("0,15,30 2 * * *", &["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]);
    berlin("*/30 2 * * *", &["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]);
    berlin("0 2,3 * * *", &["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]);
    // A whole day that Samoa left out.
    check(
        "0 6,18 * * *",
        "Pacific/Apia",
        "2011-12-29T12:00-10:00",
        &["2011-12-29T18:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T06:00+14:00"],
    );
}

#[test]
fn a_time_that_is_shown_twice_fires_the_first_time() {
    let berlin = |expression, expected: &[&str]| {
        check(expression, "Europe/Berlin", "2026-10-24T12:00+02:00", expected);
    };
    berlin("30 2 * * *", &["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]);
    berlin("0 3 * * *", &["2026-10-25T03:00+01:00", "2026-10-26T03:00+01:00"]);
    berlin("15,45 2 * * *", &["2026-10-25T02:15+02:00", "2026-10-25T02:45+02:00", "2026-10-26T02:15+01:00"]);
    check(
        "30 1 * * *",
        "America/New_York",
        "2026-10-31T12:00-04:00",
        &["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"],
    );
    check(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T12:00+11:00",
        &["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"],
    );
}

#[test]
fn the_second_showing_is_over_for_who_asks_during_it() {
    check("30 2 * * *", "Europe/Berlin", "2026-10-25T02:10+01:00", &["2026-10-26T02:30+01:00"]);
    check("30 2 * * *", "Europe/Berlin", "2026-10-25T02:40+02:00", &["2026-10-26T02:30+01:00"]);
}

#[test]
fn an_hourly_expression_fires_in_every_real_hour() {
    let spring = ["2026-03-29T00:30+01:00", "2026-03-29T01:30+01:00", "2026-03-29T03:30+02:00"];
    let autumn = [
        "2026-10-25T01:30+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:30+01:00",
        "2026-10-25T03:30+01:00",
    ];
    for expression in ["30 * * * *", "30 0-23 * * *", "30 */1 * * *", "30 0-6 * * *"] {
        check(expression, "Europe/Berlin", "2026-03-29T00:00+01:00", &spring);
        check(expression, "Europe/Berlin", "2026-10-25T01:00+02:00", &autumn);
    }
    check(
        "0 * * * *",
        "America/New_York",
        "2026-11-01T00:30-04:00",
        &["2026-11-01T01:00-04:00", "2026-11-01T01:00-05:00", "2026-11-01T02:00-05:00"],
    );
    check(
        "0 * * * *",
        "America/New_York",
        "2026-03-08T00:30-05:00",
        &["2026-03-08T01:00-05:00", "2026-03-08T03:00-04:00", "2026-03-08T04:00-04:00"],
    );
}

#[test]
fn a_finer_expression_fires_in_every_real_minute() {
    check(
        "*/15 * * * *",
        "Europe/Berlin",
        "2026-03-29T01:40+01:00",
        &["2026-03-29T01:45+01:00", "2026-03-29T03:00+02:00", "2026-03-29T03:15+02:00"],
    );
    check(
        "*/20 1-5 * * *",
        "Europe/Berlin",
        "2026-10-25T02:30+02:00",
        &[
            "2026-10-25T02:40+02:00",
            "2026-10-25T02:00+01:00",
            "2026-10-25T02:20+01:00",
            "2026-10-25T02:40+01:00",
            "2026-10-25T03:00+01:00",
        ],
    );
    check(
        "7,37 1-5 * * *",
        "Europe/Berlin",
        "2026-03-29T01:10+01:00",
        &["2026-03-29T01:37+01:00", "2026-03-29T03:07+02:00"],
    );
    check(
        "*/10 * * * *",
        "Australia/Lord_Howe",
        "2026-04-05T01:45+11:00",
        &["2026-04-05T01:50+11:00", "2026-04-05T01:30+10:30", "2026-04-05T01:40+10:30"],
    );
    check(
        "*/10 * * * *",
        "Australia/Lord_Howe",
        "2026-10-04T01:45+10:30",
        &["2026-10-04T01:50+10:30", "2026-10-04T02:30+11:00", "2026-10-04T02:40+11:00"],
    );
}

#[test]
fn every_other_hour_is_neither_lost_nor_doubled() {
    check(
        "0 */2 * * *",
        "Europe/Berlin",
        "2026-03-28T23:00+01:00",
        &["2026-03-29T00:00+01:00", "2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"],
    );
    check(
        "0 */2 * * *",
        "Europe/Berlin",
        "2026-10-25T00:30+02:00",
        &["2026-10-25T02:00+02:00", "2026-10-25T04:00+01:00"],
    );
}

#[test]
fn zones_without_changes_keep_their_time() {
    check(
        "0 0 * * *",
        "Asia/Kathmandu",
        "2026-03-28T12:00Z",
        &["2026-03-29T00:00+05:45", "2026-03-30T00:00+05:45"],
    );
    check(
        "30 2 * * *",
        "UTC",
        "2026-03-28T12:00Z",
        &["2026-03-29T02:30+00:00", "2026-03-30T02:30+00:00", "2026-03-31T02:30+00:00"],
    );
}

#[test]
fn the_edges_of_the_calendar_are_found() {
    let utc = |expression, from, expected: &[&str]| check(expression, "UTC", from, expected);
    // 2100 is no leap year.
    utc("0 12 29 2 *", "2092-03-01T00:00Z", &["2096-02-29T12:00+00:00", "2104-02-29T12:00+00:00"]);
    utc(
        "0 0 L * *",
        "2026-11-15T00:00Z",
        &[
            "2026-11-30T00:00+00:00",
            "2026-12-31T00:00+00:00",
            "2027-01-31T00:00+00:00",
            "2027-02-28T00:00+00:00",
        ],
    );
    utc("0 0 L 2 *", "2027-01-01T00:00Z", &["2027-02-28T00:00+00:00", "2028-02-29T00:00+00:00"]);
    utc("0 0 LW * *", "2026-05-01T00:00Z", &["2026-05-29T00:00+00:00", "2026-06-30T00:00+00:00"]);
    utc("0 0 31 * *", "2026-03-31T00:00Z", &["2026-05-31T00:00+00:00", "2026-07-31T00:00+00:00"]);
    utc("0 0 * * FRIL", "2026-12-01T00:00Z", &["2026-12-25T00:00+00:00", "2027-01-29T00:00+00:00"]);
    utc(
        "59 59 23 31 12 *",
        "2026-12-31T23:59:58Z",
        &["2026-12-31T23:59:59+00:00", "2027-12-31T23:59:59+00:00"],
    );
    check(
        "@yearly",
        "Asia/Kathmandu",
        "2026-12-31T23:59+05:45",
        &["2027-01-01T00:00+05:45", "2028-01-01T00:00+05:45"],
    );
}

#[test]
fn a_day_and_a_weekday_mean_either_and_with_a_plus_both() {
    let from = "2026-11-01T00:00Z";
    check("0 0 13 * FRI", "UTC", from, &["2026-11-06T00:00+00:00", "2026-11-13T00:00+00:00"]);
    check("0 0 1 * SUN", "UTC", "2026-11-30T00:00Z", &["2026-12-01T00:00+00:00", "2026-12-06T00:00+00:00"]);
    check("0 0 13 * +FRI", "UTC", from, &["2026-11-13T00:00+00:00", "2027-08-13T00:00+00:00"]);
    check("0 0 * 2 MON#5", "UTC", from, &["2044-02-29T00:00+00:00", "2072-02-29T00:00+00:00"]);
}

#[test]
fn seconds_come_first_when_there_are_six_fields() {
    check(
        "*/20 * * * * *",
        "UTC",
        "2026-06-01T00:00:30.5Z",
        &["2026-06-01T00:00:40+00:00", "2026-06-01T00:01+00:00", "2026-06-01T00:01:20+00:00"],
    );
}

#[test]
fn intervals_keep_their_real_length() {
    let day = 24 * 60 * 60;
    check_spec(
        &every(day, "2026-03-01T08:00+01:00"),
        "Europe/Berlin",
        "2026-03-27T12:00+01:00",
        &["2026-03-28T08:00+01:00", "2026-03-29T09:00+02:00", "2026-03-30T09:00+02:00"],
    );
    check_spec(
        &every(90 * 60, "2026-10-25T00:00Z"),
        "Europe/Berlin",
        "2026-10-25T00:00Z",
        &["2026-10-25T02:30+01:00", "2026-10-25T04:00+01:00"],
    );
}

#[test]
fn an_interval_begins_at_its_anchor() {
    let spec = every(3600, "2026-06-01T10:20Z");
    check_spec(&spec, "UTC", "2026-05-01T00:00Z", &["2026-06-01T10:20+00:00", "2026-06-01T11:20+00:00"]);
    assert_eq!(Timetable::new(&spec).unwrap().last_to(at("2026-06-01T10:19:59Z")), None);
}

#[test]
fn a_calendar_that_ends_has_no_next_time() {
    let end = Timestamp(u64::MAX);
    for spec in [cron("0 0 1 1 *", "Europe/Berlin"), every(1, "2026-01-01T00:00Z")] {
        let timetable = Timetable::new(&spec).unwrap();
        assert_eq!(timetable.after(end), None);
        assert!(timetable.last_to(end).is_some());
    }
    assert_eq!(Timetable::new(&cron("0 0 1 6 *", "UTC")).unwrap().last_to(Timestamp(0)), None);
}
