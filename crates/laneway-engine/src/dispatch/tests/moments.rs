//! Moments that are too short for a test from outside: between an end and its durability, between a wish and its load.

use bytes::Bytes;
use laneway_core::limits::WINDOW_IDS;
use laneway_core::store::{DeadLetter, Entry, LaneView, Page, RedriveTo, RequestOp, SeatStatus};
use laneway_core::{Block, EventId, LaneRecord, Timestamp};

use super::super::fetch::{Loaded, Siding, Wanted, plain};
use super::super::seat::RunNo;
use super::super::settings::{Batch, ProcessorSettings};
use super::fixture::{NOW, Played, done, event_in, failed, lane, wish};
use crate::handler::{OnFailure, Policy};
use crate::log::Forwarded;

fn batches(batch: Batch) -> Played {
    Played::clean(ProcessorSettings { batch, ..ProcessorSettings::default() })
}

fn start(played: &mut Played) -> RunNo {
    played.seat.start_run(NOW).expect("something may start").number
}

#[test]
fn event_that_has_ended_does_not_join_its_siding_when_the_floor_rises() {
    let mut played = Played::clean(ProcessorSettings::default());
    played.read(1);
    let run = start(&mut played);
    played.read(WINDOW_IDS);
    played.done(run);
    let commit = played.sent().expect("an end is gathered");
    assert!(commit.lanes.iter().all(|change| change.side.is_empty()), "{:?}", commit.lanes);
}

#[test]
fn commit_may_wait_when_its_seat_has_nothing_else() {
    let mut played = Played::clean(ProcessorSettings::default());
    played.read(1);
    let run = start(&mut played);
    played.done(run);
    let commit = played.sent().expect("an end is gathered");
    assert!(commit.may_wait);
}

#[test]
fn commit_may_not_wait_when_its_lane_goes_on() {
    let mut played = Played::clean(ProcessorSettings::default());
    (1..=2).for_each(|id| played.read_in(1, id));
    let run = start(&mut played);
    played.done(run);
    let commit = played.sent().expect("an end is gathered");
    assert!(!commit.may_wait);
}

#[test]
fn commit_may_not_wait_while_another_lane_runs() {
    let mut played = Played::clean(ProcessorSettings::default());
    (1..=2).for_each(|number| played.read(number));
    let run = start(&mut played);
    start(&mut played);
    played.done(run);
    let commit = played.sent().expect("an end is gathered");
    assert!(!commit.may_wait, "the run beside it must not wait for this commit");
}

#[test]
fn commit_that_tells_of_a_failure_may_not_wait() {
    let mut played = Played::clean(ProcessorSettings::default());
    played.read(1);
    let run = start(&mut played);
    played.answered(run, vec![failed()]);
    let commit = played.sent().expect("a retry is gathered");
    assert!(!commit.may_wait);
}

#[test]
fn event_that_runs_joins_its_siding_when_the_floor_rises() {
    let mut played = Played::clean(ProcessorSettings::default());
    played.read(1);
    start(&mut played);
    played.read(WINDOW_IDS);
    let commit = played.sent().expect("it holds the floor back");
    assert_eq!((commit.lanes.len(), &commit.lanes[0].side[..]), (1, &[EventId(1)][..]));
}

/// The next owner runs what is in the siding before it has read the rest.
#[test]
fn lane_joins_its_siding_whole_when_the_floor_rises() {
    let mut played = Played::clean(ProcessorSettings::default());
    played.read_in(1, 1);
    start(&mut played);
    played.read_in(1, WINDOW_IDS - 1);
    played.read(WINDOW_IDS);
    let commit = played.sent().expect("it holds the floor back");
    let sides: Vec<_> = commit.lanes.iter().map(|change| &change.side[..]).collect();
    assert_eq!(sides, [&[EventId(1), EventId(WINDOW_IDS - 1)][..]]);
}

#[test]
fn hot_lane_joins_its_siding_whole_when_there_is_no_room_for_its_next_event() {
    let mut played = Played::clean(ProcessorSettings::default());
    (1..=1_024).for_each(|id| played.read_in(1, id));
    start(&mut played);
    assert!(played.sent().is_none(), "a plain lane writes nothing");
    played.read_in(1, 1_025);
    let commit = played.sent().expect("one too many");
    assert_eq!(commit.lanes[0].side, (1..=1_025).map(EventId).collect::<Vec<_>>());
}

#[test]
fn lane_that_is_paused_while_it_runs_joins_its_siding_whole() {
    let mut played = Played::clean(ProcessorSettings::default());
    (1..=2).for_each(|id| played.read_in(1, id));
    start(&mut played);
    played.ask(1, RequestOp::Pause { lane: Some(lane(1)), by: Bytes::new() }, None);
    let commit = played.sent().expect("a pause");
    assert_eq!(commit.lanes[0].side, [EventId(1), EventId(2)]);
}

/// Three events of a lane ran together and are done; nothing of it is durable.
fn done_together() -> Played {
    let mut played = batches(Batch::Lane { max: 3, within: std::time::Duration::ZERO });
    (1..=3).for_each(|id| played.read_in(1, id));
    let run = start(&mut played);
    played.answered(run, vec![done(3)]);
    played
}

#[test]
fn pause_puts_nothing_aside_that_is_done() {
    let mut played = done_together();
    played.ask(1, RequestOp::Pause { lane: Some(lane(1)), by: Bytes::new() }, None);
    let commit = played.sent().expect("ends and a pause");
    assert_eq!(commit.lanes.len(), 1);
    assert!(commit.lanes[0].side.is_empty(), "{:?}", commit.lanes);
}

#[test]
fn cancel_of_what_is_done_and_not_durable_waits_and_changes_nothing() {
    let mut played = done_together();
    played.ask(1, RequestOp::Cancel { id: EventId(2) }, None);
    let commit = played.sent().expect("three ends");
    assert!(commit.endings.is_empty() && commit.answers.is_empty(), "{commit:?}");
    played.durable(&commit);
    played.ask(1, RequestOp::Cancel { id: EventId(2) }, None);
    let commit = played.sent().expect("an answer");
    assert_eq!((commit.answers.len(), &commit.answers[0].answer[..]), (1, &b"already"[..]));
}

#[test]
fn cancel_in_the_siding_leaves_what_is_in_memory_as_it_was() {
    let mut played = Played::clean(ProcessorSettings::default());
    // As many as a lane has in memory, and one that has to wait in the siding.
    (1..=1_025).for_each(|id| played.read_in(1, id));
    played.commit();
    let sided = EventId(1_025);
    let view = LaneView { record: LaneRecord::new(lane(1)), state: None, siding: vec![sided] };
    played.ask(1, RequestOp::Cancel { id: sided }, Some(view));
    let commit = played.sent().expect("an end and an answer");
    assert_eq!((commit.endings.len(), commit.answers.len(), commit.lanes.len()), (1, 1, 1));
    assert!(commit.lanes[0].record.is_some() && commit.lanes[0].unside == [sided], "{:?}", commit.lanes);
    played.durable(&commit);
    assert_eq!(start(&mut played), RunNo(1));
}

#[test]
fn pause_of_a_lane_that_changes_with_every_commit_is_decided_at_once() {
    let mut played = Played::clean(ProcessorSettings::default());
    (1..=1_025).for_each(|id| played.read_in(1, id));
    let view = LaneView { record: LaneRecord::new(lane(1)), state: None, siding: Vec::new() };
    played.ask(1, RequestOp::Pause { lane: Some(lane(1)), by: Bytes::new() }, Some(view));
    let commit = played.sent().expect("a pause");
    let block = commit.lanes[0].record.as_ref().and_then(|record| record.block.clone());
    assert!(matches!(block, Some(Block::Paused { .. })) && commit.answers.len() == 1, "{commit:?}");
    played.durable(&commit);
    assert!(played.seat.start_run(NOW).is_none());
}

#[test]
fn pause_waits_for_a_start_that_is_being_made_durable() {
    let mut played = Played::after_crash(1, &[]);
    assert!(played.seat.start_run(NOW).is_none(), "a suspect's start is committed first");
    let pause = || RequestOp::Pause { lane: Some(lane(1)), by: Bytes::new() };
    let view = || Some(LaneView { record: LaneRecord::new(lane(1)), state: None, siding: Vec::new() });
    played.ask(1, pause(), view());
    let start = played.sent().expect("a start");
    played.ask(1, pause(), view());
    assert!(start.answers.is_empty());
    played.durable(&start);
    played.ask(1, pause(), view());
    let paused = played.sent().expect("a pause");
    assert_eq!(paused.answers.len(), 1);
    played.durable(&paused);
    assert!(played.seat.start_run(NOW).is_none());
}

#[test]
fn resume_that_was_looked_up_before_the_halt_was_durable_is_looked_up_again() {
    // The store showed the parked lane just before its commit was told to be durable, or not yet.
    for shown in [true, false] {
        let policy = Policy { max_attempts: 1, on_failure: OnFailure::Halt, ..Policy::default() };
        let mut played = Played::clean(ProcessorSettings { policy, ..ProcessorSettings::default() });
        played.read(1);
        let run = start(&mut played);
        played.answered(run, vec![failed()]);
        let halt = played.sent().expect("a halt");
        let parked: Vec<_> = halt.lanes.iter().filter_map(|change| change.record.clone()).collect();
        assert_eq!((halt.status, parked.len()), (Some(SeatStatus::Halted), 1));
        let mut resume = wish(1, RequestOp::Resume { lane: None });
        resume.parked = if shown { parked.clone() } else { Vec::new() };
        played.seat.wish_sent();
        played.durable(&halt);
        played.decide(resume);
        assert_eq!(
            played.seat.wants_requests().map(|(after, _)| after),
            Some(0),
            "nothing of the lane will ever move by itself"
        );
        let mut resume = wish(1, RequestOp::Resume { lane: None });
        resume.parked = parked;
        played.seat.wish_sent();
        played.decide(resume);
        let resumed = played.sent().expect("an answer");
        assert_eq!((resumed.status, resumed.answers.len()), (Some(SeatStatus::Run), 1));
        played.durable(&resumed);
        assert_eq!(played.seat.next_wanted_lane(), Some(lane(1)));
    }
}

#[test]
fn redrive_that_was_looked_up_before_a_later_event_ended_is_looked_up_again() {
    let mut played = Played::clean(ProcessorSettings::default());
    let op = RequestOp::Redrive { id: Some(EventId(1)), lane: lane(1), to: RedriveTo::Place };
    let mut redrive = wish(1, op);
    redrive.lane = Some(plain(lane(1)));
    let letter = event_in(1, 1);
    redrive.dead = vec![DeadLetter { event: letter, cause: Bytes::new(), attempts: 1, at: Timestamp(0) }];
    played.seat.wish_sent();
    played.read_in(1, 2);
    let run = start(&mut played);
    played.done(run);
    played.commit();
    played.decide(redrive);
    assert!(played.sent().is_none(), "event 1 would run after event 2");
    assert_eq!(played.seat.wants_requests().map(|(after, _)| after), Some(0));
}

#[test]
fn cancel_of_one_lane_costs_the_lanes_beside_it_no_attempt() {
    let mut played = batches(Batch::Lanes { max: 2, within: std::time::Duration::ZERO });
    (1..=2).for_each(|number| played.read(number));
    let run = start(&mut played);
    played.ask(1, RequestOp::Cancel { id: EventId(1) }, None);
    played.answered(run, vec![failed(), failed()]);
    let commit = played.sent().expect("an end");
    assert_eq!((commit.endings.len(), commit.lanes.len()), (1, 0), "lane 2 has no record of a failure");
    played.durable(&commit);
    let again = played.seat.start_run(NOW).expect("lane 2 runs again");
    assert_eq!((again.lanes[0].events[0].id, again.lanes[0].attempt), (EventId(2), 1));
}

#[test]
fn wish_of_before_a_pause_does_not_lift_it() {
    let mut played = Played::clean(ProcessorSettings::default());
    let blocks = [
        Block::Paused { by: Bytes::new(), at: Timestamp(0) },
        Block::Parked { cause: Bytes::new(), at: Timestamp(0) },
    ];
    for block in blocks {
        let record = LaneRecord { block: Some(block), ..LaneRecord::new(lane(1)) };
        let entries = vec![Entry::Event(event_in(1, 1))];
        let events = Page { entries, head: EventId(1), request_no: 0, next_due: None, states: Vec::new() };
        let view = LaneView { record, state: None, siding: vec![EventId(1)] };
        let lanes = vec![(view, Siding { events, more: false })];
        let loaded = Loaded { lanes, left: Vec::new(), wanted: Wanted::ByName, next_due: None };
        played.seat.load_sent();
        let env = played.env().clone();
        played.seat.load(&env, loaded, NOW);
        assert!(played.seat.start_run(NOW).is_none() && played.sent().is_none());
    }
}

#[test]
fn last_commit_of_a_seat_says_that_it_left_well_whatever_comes_before_its_end() {
    let mut played = Played::clean(ProcessorSettings::default());
    played.seat.drain();
    played.seat.drain();
    let first = played.sent().expect("it says so");
    assert!(first.clean);
    played.seat.emits_forwarded(Forwarded { through: 1, lost: Vec::new() });
    played.durable(&first);
    let last = played.sent().expect("emits arrived meanwhile");
    assert!(last.clean);
}
