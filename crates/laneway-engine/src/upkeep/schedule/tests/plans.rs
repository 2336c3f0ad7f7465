//! Plans as tables: one day of a schedule that is due every ten minutes.

use laneway_core::{Key, Partition, Timestamp};

use super::fixture::{at, cron, every, schedule, shown, zone};
use crate::upkeep::schedule::plan::LATE_MAX;
use crate::upkeep::schedule::{CatchUp, LastJob, Overlap, Past, Plan, Timetable, pass_over, plan};

fn time(text: &str) -> Timestamp {
    at(&format!("2026-06-01T{text}Z"))
}

fn text(moment: Timestamp) -> String {
    shown(moment, &zone("UTC"))[11..16].to_owned()
}

fn fired(plan: &Plan) -> String {
    plan.fire.iter().map(|due| text(*due)).collect::<Vec<_>>().join(" ")
}

/// Plans at each time in turn, remembering what the plan before said; a step is (now, fired, next).
fn check(catch_up: CatchUp, since: &str, steps: &[(&str, &str, &str)]) {
    let timetable = Timetable::new(&cron("*/10 * * * *", "UTC")).unwrap();
    let mut past = Past { since: time(since), last_due: None };
    for (now, fire, next) in steps {
        let plan = plan(&timetable, catch_up, past, time(now));
        assert_eq!(
            (fired(&plan).as_str(), text(plan.next).as_str()),
            (*fire, *next),
            "{catch_up:?} at {now}"
        );
        past.last_due = plan.last_due;
    }
}

const ALL: [CatchUp; 3] = [CatchUp::None, CatchUp::Last, CatchUp::All { max: 3 }];

#[test]
fn each_due_time_fires_once() {
    for catch_up in ALL {
        check(
            catch_up,
            "10:05",
            &[
                ("10:05", "", "10:10"),
                ("10:09:59.999999", "", "10:10"),
                ("10:10", "10:10", "10:20"),
                ("10:10", "", "10:20"),
                ("10:20:29", "10:20", "10:30"),
                ("10:30:30", "10:30", "10:40"),
            ],
        );
    }
}

#[test]
fn nothing_is_due_before_the_schedule_began() {
    for catch_up in ALL {
        check(catch_up, "10:10", &[("10:10", "", "10:20"), ("10:10:05", "", "10:20")]);
    }
}

#[test]
fn missed_firings_follow_the_policy() {
    check(CatchUp::None, "10:05", &[("10:45", "", "10:50"), ("10:50", "10:50", "11:00")]);
    check(CatchUp::None, "10:05", &[("10:40:10", "10:40", "10:50")]);
    check(CatchUp::Last, "10:05", &[("10:45", "10:40", "10:50"), ("10:50", "10:50", "11:00")]);
    let all = |max| CatchUp::All { max };
    check(all(9), "10:05", &[("10:45", "10:10 10:20 10:30 10:40", "10:50"), ("10:46", "", "10:50")]);
    check(all(2), "10:05", &[("10:45", "10:30 10:40", "10:50"), ("10:50", "10:50", "11:00")]);
}

#[test]
fn a_firing_is_missed_only_after_a_failover_had_its_time() {
    let timetable = Timetable::new(&cron("*/10 * * * *", "UTC")).unwrap();
    let past = Past { since: time("10:05"), last_due: None };
    let at_last = time("10:10").after(LATE_MAX);
    assert_eq!(fired(&plan(&timetable, CatchUp::None, past, at_last)), "10:10");
    assert_eq!(fired(&plan(&timetable, CatchUp::None, past, Timestamp(at_last.0 + 1))), "");
}

#[test]
fn a_clock_that_jumps_forward_makes_missed_firings() {
    let steps =
        |missed| [("10:10", "10:10", "10:20"), ("12:05", missed, "12:10"), ("12:10", "12:10", "12:20")];
    check(CatchUp::None, "10:05", &steps(""));
    check(CatchUp::Last, "10:05", &steps("12:00"));
    check(CatchUp::All { max: 3 }, "10:05", &steps("11:40 11:50 12:00"));
}

#[test]
fn a_clock_that_jumps_back_fires_nothing_again_and_no_later_than_needed() {
    for catch_up in ALL {
        check(
            catch_up,
            "10:05",
            &[
                ("10:10", "10:10", "10:20"),
                ("10:20", "10:20", "10:30"),
                ("10:02", "", "10:30"),
                ("10:10", "", "10:30"),
                ("10:21", "", "10:30"),
                ("10:30", "10:30", "10:40"),
            ],
        );
    }
}

#[test]
fn a_schedule_made_while_the_clock_was_ahead_does_not_wait_for_that_time() {
    for catch_up in ALL {
        check(
            catch_up,
            "18:00",
            &[
                ("10:05", "", "10:10"),
                ("10:10:02", "10:10", "10:20"),
                ("10:10:03", "", "10:20"),
                ("10:20", "10:20", "10:30"),
            ],
        );
    }
}

#[test]
fn a_plan_that_nobody_remembered_is_made_again() {
    let timetable = Timetable::new(&every(60, "2026-06-01T00:00Z")).unwrap();
    let past = Past { since: time("10:00"), last_due: Some(time("10:03")) };
    let catch_up = CatchUp::All { max: 10 };
    let first = plan(&timetable, catch_up, past, time("10:06:20"));
    assert_eq!(fired(&first), "10:04 10:05 10:06");
    assert_eq!(plan(&timetable, catch_up, past, time("10:06:40")), first);
}

#[test]
fn a_long_absence_costs_no_more_than_what_fires() {
    // Ten years of seconds: walking over them one by one would take minutes.
    for spec in [every(1, "1970-01-01T00:00Z"), cron("* * * * * *", "Europe/Berlin")] {
        let timetable = Timetable::new(&spec).unwrap();
        let past = Past { since: at("2016-06-01T00:00Z"), last_due: None };
        let plan = plan(&timetable, CatchUp::All { max: 1000 }, past, time("10:00"));
        assert_eq!(plan.fire.len(), 1000);
        assert_eq!(plan.fire[0], time("09:43:21"));
        assert_eq!(plan.last_due, Some(time("10:00")));
    }
}

#[test]
fn a_changed_spec_has_missed_nothing() {
    let timetable = Timetable::new(&cron("*/10 * * * *", "UTC")).unwrap();
    // What fired last was of the spec before.
    let past = Past { since: time("10:42"), last_due: Some(time("02:30")) };
    for (now, fire) in [("10:45", ""), ("10:50", "10:50")] {
        assert_eq!(fired(&plan(&timetable, CatchUp::All { max: 9 }, past, time(now))), fire, "at {now}");
    }
}

#[test]
fn a_paused_schedule_passes_over_what_is_due() {
    let timetable = Timetable::new(&cron("*/10 * * * *", "UTC")).unwrap();
    let mut past = Past { since: time("10:05"), last_due: None };
    let paused = pass_over(&timetable, past, time("10:45"));
    assert_eq!((fired(&paused).as_str(), text(paused.next).as_str()), ("", "10:50"));
    past.last_due = paused.last_due;
    assert_eq!(fired(&plan(&timetable, CatchUp::All { max: 9 }, past, time("10:46"))), "");
}

#[test]
fn the_end_of_time_is_never_planned_for() {
    let timetable = Timetable::new(&cron("0 0 1 1 *", "UTC")).unwrap();
    let past = Past { since: time("10:05"), last_due: None };
    let plan = plan(&timetable, CatchUp::Last, past, Timestamp(u64::MAX));
    assert_eq!(plan.next, Timestamp(u64::MAX));
}

#[test]
fn overlap_decides_what_follows_an_unended_job() {
    let check = |overlap: Overlap, last_job, expected: &str| {
        let due = [time("10:10"), time("10:20")];
        let plan = Plan { fire: due.to_vec(), last_due: Some(due[1]), next: time("10:30") };
        let admitted = overlap.admit(plan.clone(), last_job);
        assert_eq!(fired(&admitted), expected, "{overlap:?} {last_job:?}");
        assert_eq!((admitted.last_due, admitted.next), (plan.last_due, plan.next));
    };
    check(Overlap::Queue, LastJob::Unended, "10:10 10:20");
    check(Overlap::Allow, LastJob::Unended, "10:10 10:20");
    check(Overlap::Skip, LastJob::Unended, "");
    check(Overlap::Skip, LastJob::Ended, "10:20");
}

#[test]
fn a_draft_is_numbered_by_its_due_time() {
    let schedule = schedule(cron("0 0 * * *", "UTC"));
    let due = time("00:00");
    assert_eq!(schedule.draft(due).origin_seq, Some(due.0));
}

#[test]
fn all_firings_of_a_schedule_go_to_one_partition() {
    let check = |overlap, key: Option<&'static str>, lane: Option<&'static str>, routed_by: &'static str| {
        let key_of = |text| Key::new(text).unwrap();
        let mut schedule = schedule(cron("0 0 * * *", "UTC"));
        schedule.overlap = overlap;
        schedule.firing.key = key.map(key_of);
        assert_eq!(schedule.draft(time("00:00")).key, lane.map(key_of), "{overlap:?} {key:?}");
        let partition: Partition = key_of(routed_by).partition(16);
        assert_eq!(schedule.partition(16), partition, "{overlap:?} {key:?}");
    };
    check(Overlap::Queue, None, Some("nightly"), "nightly");
    check(Overlap::Queue, Some("berlin"), Some("berlin"), "berlin");
    check(Overlap::Skip, None, Some("nightly"), "nightly");
    check(Overlap::Allow, None, None, "nightly");
}
