//! What is refused, and in which words.

use std::time::Duration;

use laneway_core::{Bytes, Key, Timestamp};
use proptest::prelude::*;

use super::fixture::{cron, schedule};
use crate::upkeep::schedule::{CatchUp, Overlap, Schedule, Spec, Timetable};

/// The beginning of the refusal, up to the details of the limit.
fn check(spec: &Spec, expected: &str) {
    let refusal = Timetable::new(spec).unwrap_err().to_string();
    assert!(refusal.starts_with(expected), "{spec:?}: {refusal}");
}

fn check_schedule(change: impl FnOnce(&mut Schedule), expected: &str) {
    let mut schedule = schedule(cron("0 0 * * *", "UTC"));
    schedule.check().unwrap();
    change(&mut schedule);
    let refusal = schedule.check().unwrap_err().to_string();
    assert!(refusal.starts_with(expected), "{refusal}");
}

#[test]
fn a_bad_field_is_named_with_its_limit() {
    let check = |expression, expected| check(&cron(expression, "UTC"), expected);
    check("60 * * * *", "minute of cron is \"60\", must be 0 to 59");
    check("0 24 * * *", "hour of cron is \"24\", must be 0 to 23");
    check("0 0 0 * *", "day of cron is \"0\", must be 1 to 31");
    check("0 0 32 * *", "day of cron is \"32\", must be 1 to 31");
    check("0 0 1 13 *", "month of cron is \"13\", must be 1 to 12");
    check("0 0 * * 8", "weekday of cron is \"8\", must be 0 to 7");
    check("61 0 0 1 1 *", "second of cron is \"61\", must be 0 to 59");
    check("*/0 * * * *", "minute of cron is \"*/0\", must be 0 to 59");
    check("0 22-2 * * *", "hour of cron is \"22-2\", must be 0 to 23");
    check("0 0 1 JANUARY *", "month of cron is \"JANUARY\", must be 1 to 12");
    check("0 0 * * MONTAG", "weekday of cron is \"MONTAG\", must be 0 to 7");
}

#[test]
fn a_name_in_the_wrong_field_is_refused() {
    let check = |expression, expected| check(&cron(expression, "UTC"), expected);
    check("MONTUE * * * *", "minute of cron is \"MONTUE\"");
    check("0 FEB * * *", "hour of cron is \"FEB\"");
    check("0 0 MON * *", "day of cron is \"MON\"");
    check("0 0 1 MONTUE *", "month of cron is \"MONTUE\"");
    check("0 0 * * JAN", "weekday of cron is \"JAN\"");
}

#[test]
fn another_form_is_refused() {
    for expression in ["", "   ", "* * * *", "0 0 1 1 * * 2030", "@reboot", "every day"] {
        check(&cron(expression, "UTC"), &format!("cron is {expression:?}, must be 5 fields"));
    }
    check(&cron(&"0".repeat(600), "UTC"), "cron bytes is 600, must be at most 512");
}

#[test]
fn an_expression_without_a_date_that_exists_is_refused() {
    for expression in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30 2 +MON"] {
        let expected = format!("cron is {expression:?}, must be an expression with a date that exists");
        check(&cron(expression, "UTC"), &expected);
    }
}

#[test]
fn an_unknown_zone_is_refused() {
    for zone in ["", "Berlin", "Europe/Atlantis", "+02:00", "Etc/Unknown", "../../etc/passwd"] {
        check(&cron("0 0 * * *", zone), &format!("zone is {zone:?}, must be an IANA time zone"));
    }
}

#[test]
fn an_interval_out_of_bounds_is_refused() {
    let every = |length| Spec::Every { length, anchor: Timestamp(0) };
    check(&every(Duration::ZERO), "every is 0ns, must be 1 second to 10 years");
    check(&every(Duration::from_millis(999)), "every is 999ms, must be 1 second to 10 years");
    check(&every(Duration::MAX), "every is ");
    assert!(Timetable::new(&every(Duration::from_secs(1))).is_ok());
}

#[test]
fn a_schedule_that_could_not_fire_as_asked_is_refused() {
    check_schedule(
        |schedule| schedule.name = "a b".into(),
        "name of a schedule is \"a b\", must be 1 to 128",
    );
    check_schedule(|schedule| schedule.firing.stream.clear(), "stream is \"\", must be 1 to 128");
    check_schedule(
        |schedule| schedule.firing.processor = Some("ä".into()),
        "processor is \"ä\", must be 1 to 128",
    );
    check_schedule(
        |schedule| schedule.catch_up = CatchUp::All { max: 0 },
        "catch_up max is 0, must be 1 to 1000",
    );
    check_schedule(
        |schedule| schedule.catch_up = CatchUp::All { max: 1001 },
        "catch_up max is 1001, must be",
    );
    check_schedule(
        |schedule| schedule.firing.data = Bytes::from(vec![0; (1 << 20) + 1]),
        "data bytes is 1048577",
    );
    check_schedule(|schedule| schedule.spec = cron("0 0 30 2 *", "UTC"), "cron is \"0 0 30 2 *\"");
}

#[test]
fn an_overlap_that_would_change_nothing_is_refused() {
    check_schedule(
        |schedule| schedule.overlap = Overlap::Skip,
        "overlap is skip, must be queue or allow unless",
    );
    let allow_with_key = |schedule: &mut Schedule| {
        schedule.overlap = Overlap::Allow;
        schedule.firing.key = Some(Key::new("berlin").unwrap());
    };
    check_schedule(allow_with_key, "overlap is allow, must be queue or skip when there is a key");
}

proptest! {
    #[test]
    fn no_text_makes_the_check_panic(expression in "[-0-9*,/#?+@LWJANMONß ]{0,30}", zone in "\\PC{0,12}") {
        let _ = Timetable::new(&cron(&expression, "UTC"));
        let _ = Timetable::new(&cron("0 0 * * *", &zone));
    }
}
