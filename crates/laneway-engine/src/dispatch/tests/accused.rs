//! Accused heads run one at a time; the others do not wait for them.

use bytes::Bytes;
use laneway_core::store::{LaneView, Versioned};
use laneway_core::{Block, CommitId, EventId, LaneRecord, Timestamp};

use super::fixture::{NOW, Played, lane};

fn lanes(started: &[(super::super::seat::RunNo, u64)]) -> Vec<u64> {
    started.iter().map(|(_, lane)| *lane).collect()
}

#[test]
fn what_ran_at_a_crash_waits_for_the_permit_and_the_others_do_not() {
    let mut played = Played::after_crash(4, &[(2, 0), (3, 0)]);
    assert_eq!(lanes(&played.start_all()), [1, 4]);
    assert!(played.seat.wants_alone());
    played.seat.run_alone(NOW);
    assert!(played.seat.keeps_alone() && !played.seat.wants_alone());
    assert_eq!(lanes(&played.start_all()), [2]);
}

#[test]
fn start_is_durable_before_an_accused_head_runs() {
    let mut played = Played::after_crash(1, &[(1, 0)]);
    played.commit();
    assert!(played.seat.start_run(NOW).is_none(), "it has no permit");
    played.seat.run_alone(NOW);
    assert!(played.seat.start_run(NOW).is_none(), "its start is not durable");
    played.commit();
    assert!(played.seat.start_run(NOW).is_some());
}

#[test]
fn permit_is_kept_until_the_end_is_durable() {
    let mut played = Played::after_crash(2, &[(1, 0), (2, 0)]);
    assert!(played.start_all().is_empty());
    played.seat.run_alone(NOW);
    let started = played.start_all();
    assert_eq!(lanes(&started), [1]);
    played.done(started[0].0);
    assert!(played.seat.keeps_alone(), "the end is only gathered");
    played.commit();
    assert!(!played.seat.keeps_alone());
    assert!(played.seat.wants_alone(), "the other accused lane is next");
}

#[test]
fn paused_seat_gives_the_permit_to_others() {
    let mut played = Played::after_crash(1, &[(1, 0)]);
    assert!(played.start_all().is_empty());
    played.seat.run_alone(NOW);
    played.commit();
    played.seat.drain();
    assert!(!played.seat.keeps_alone() && !played.seat.wants_alone());
}

#[test]
fn third_crash_parks_the_head_and_only_it() {
    let mut played = Played::resumed(3, &[(1, 2), (2, 1)]);
    let commit = played.seat.next_commit(|| CommitId(1), NOW).expect("records changed");
    let parked = commit.lanes.iter().filter(|change| {
        let block = change.record.as_ref().and_then(|record| record.block.as_ref());
        matches!(block, Some(Block::Parked { .. }))
    });
    let parked: Vec<_> = parked.collect();
    assert_eq!(parked.len(), 1);
    assert_eq!((&parked[0].lane, &parked[0].side[..]), (&lane(1), &[EventId(1)][..]));
}

#[test]
fn crash_counts_for_a_lane_with_a_siding_too() {
    let mut played = Played::resumed(0, &[]);
    let record = LaneRecord {
        block: Some(Block::Running { since: Timestamp(0), progress: Bytes::new() }),
        head: Some(EventId(7)),
        crashes: 1,
        started: true,
        ..LaneRecord::new(lane(7))
    };
    played.seat.resume_lane(&LaneView { record, state: None, siding: vec![EventId(7)] }, false, NOW);
    let commit = played.seat.next_commit(|| CommitId(1), NOW).expect("the record changed");
    let record = commit.lanes[0].record.as_ref().expect("it stays");
    assert_eq!((record.crashes, record.started), (2, false));
}

#[test]
fn lane_that_ran_at_a_crash_keeps_its_state() {
    let mut played = Played::resumed(7, &[]);
    let record = LaneRecord {
        block: Some(Block::Running { since: Timestamp(0), progress: Bytes::new() }),
        head: Some(EventId(7)),
        ..LaneRecord::new(lane(7))
    };
    let state = Some(Versioned { version: 3, bytes: Bytes::from_static(b"kept") });
    let view = LaneView { record, state: state.clone(), siding: Vec::new() };
    played.seat.resume_lane(&view, false, NOW);
    played.read(7);
    assert!(played.seat.start_run(NOW).is_none(), "a suspect's start is made durable first");
    played.commit();
    assert_eq!(played.seat.start_run(NOW).expect("it runs").lanes[0].state, state);
}

#[test]
fn lane_that_is_parked_by_crashes_is_told_and_counted() {
    let mut played = Played::resumed(2, &[(1, 2)]);
    played.commit();
    let told: Vec<&str> = played.reports.iter().map(|report| report.kind.as_str()).collect();
    assert_eq!(told, ["lane.parked"]);
    let text = String::from_utf8_lossy(&played.reports[0].data);
    assert!(text.contains("came to an end 3 times") && text.contains("\"event\":\"1\""), "{text}");
    assert_eq!(played.seat.tally().parked, 1);
}
