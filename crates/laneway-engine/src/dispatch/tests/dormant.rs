//! Seats that become dormant: which may, and that they come back as they were.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{RequestOp, SeatStatus};
use laneway_core::{EventId, Nonce, Steady};

use super::super::settings::ProcessorSettings;
use super::fixture::{NOW, Played, done, failed, stream};
use crate::handler::{OnFailure, Policy};

fn later() -> Steady {
    NOW.steady.after(Duration::from_secs(60))
}

/// A seat that has done its one event.
fn rested(settings: ProcessorSettings) -> Played {
    let mut played = Played::clean(settings);
    run_one(&mut played, 1);
    assert!(played.seat.dead_counted(0));
    played
}

fn run_one(played: &mut Played, id: u64) {
    played.read_in(1, id);
    let run = played.seat.start_run(NOW).expect("it may start");
    played.answered(run.number, vec![done(1)]);
    let commit = played.sent().expect("an end is gathered");
    played.durable_to(&commit, EventId(id));
}

fn may_be_dormant(played: &Played) -> bool {
    played.seat.to_dormant(later()).is_some()
}

#[test]
fn woken_seat_goes_on_where_it_was() {
    let mut played = rested(ProcessorSettings::default());
    let (fence, read, levels) = (played.seat.fence(), played.seat.wants_read(), played.seat.levels(NOW));
    let dormant = played.seat.to_dormant(later()).expect("it has nothing to do");
    played.seat = dormant.wake(&stream()).expect("what a seat kept can be read");
    assert_eq!(
        (played.seat.fence(), played.seat.wants_read(), played.seat.levels(NOW)),
        (fence, read, levels)
    );
    assert!(!played.seat.wants_dead_count(), "the store need not be asked again");
    run_one(&mut played, 2);
    assert!(may_be_dormant(&played));
}

#[test]
fn dormant_seat_stays_paused() {
    let mut played = rested(ProcessorSettings::default());
    played.ask(1, RequestOp::Pause { lane: None, by: Bytes::from_static(b"ann") }, None);
    let commit = played.sent().expect("a pause");
    played.durable_to(&commit, EventId(1));
    while let Some(commit) = played.sent() {
        played.durable_to(&commit, EventId(1));
    }
    let note = played.seat.note.clone();
    let dormant = played.seat.to_dormant(later()).expect("it has nothing to do");
    let woken = dormant.wake(&stream()).expect("what a seat kept can be read");
    assert_eq!((woken.status, woken.note), (SeatStatus::Paused, note));
}

#[test]
fn seat_with_an_event_in_memory_is_not_dormant() {
    let mut played = rested(ProcessorSettings::default());
    assert!(may_be_dormant(&played));
    played.read(2);
    assert!(!may_be_dormant(&played), "it waits");
    let run = played.seat.start_run(NOW).expect("it may start");
    assert!(!may_be_dormant(&played), "it runs");
    played.answered(run.number, vec![done(1)]);
    assert!(!may_be_dormant(&played), "its end is gathered");
    let commit = played.sent().expect("an end is gathered");
    assert!(!may_be_dormant(&played), "its end is on its way");
    played.durable_to(&commit, EventId(1));
    assert!(!may_be_dormant(&played), "the floor has not reached it");
}

#[test]
fn seat_with_a_lane_that_is_held_up_is_not_dormant() {
    let policy = Policy { max_attempts: 1, on_failure: OnFailure::Park, ..Policy::default() };
    let mut played = rested(ProcessorSettings { policy, ..ProcessorSettings::default() });
    played.read(2);
    let run = played.seat.start_run(NOW).expect("it may start");
    played.answered(run.number, vec![failed()]);
    while let Some(commit) = played.sent() {
        played.durable_to(&commit, EventId(2));
    }
    assert!(played.seat.is_at_rest());
    assert!(!may_be_dormant(&played));
}

#[test]
fn seat_that_remembers_a_settled_claim_is_not_dormant() {
    let mut played = rested(ProcessorSettings::default());
    played.seat.settled.remember(Nonce(7));
    assert!(!may_be_dormant(&played));
}

#[test]
fn seat_that_knows_of_an_unread_event_or_request_is_not_dormant() {
    let mut played = rested(ProcessorSettings::default());
    played.seat.head = EventId(2);
    assert!(!may_be_dormant(&played));
    let mut played = rested(ProcessorSettings::default());
    played.seat.requests.filed(1);
    assert!(!may_be_dormant(&played));
}

#[test]
fn seat_that_may_have_dead_letters_is_not_dormant() {
    let mut played = rested(ProcessorSettings::default());
    assert!(played.seat.dead_counted(1));
    assert!(!may_be_dormant(&played));
}

#[test]
fn seat_whose_rate_is_used_up_is_not_dormant() {
    let played = rested(ProcessorSettings { rate_per_key: Some(1), ..ProcessorSettings::default() });
    assert!(played.seat.to_dormant(NOW.steady).is_none(), "the key has had its run of this second");
    assert!(may_be_dormant(&played));
}
