//! Every checker is shown able to fail: small bad histories, each breaking one invariant.

use bytes::Bytes;
use laneway_core::store::{Committed, Progress, Receipt, SeatStatus, SeatView, StateWrite, Versioned};
use laneway_core::{
    CommitId, Event, EventId, Fence, Headers, Incarnation, Key, Kind, Nonce, Partition, ProcessorId, Seat,
    Seq, Shard, ShardInfo, StreamId, Term, Timestamp, Window,
};

use super::{AppendRecord, CommitRecord, EndSeen, Grant, History, Outcome, Settled, check};
use crate::bench::{DraftExt, SeatSnapshot, Snapshot, draft, emit, inline, job_end, key, passed};

const SHARD: Shard = Shard { stream: StreamId(1), partition: Partition(0) };
const SEAT: Seat = Seat { shard: SHARD, processor: ProcessorId(1) };

fn fence(term: u64, version: u64) -> Fence {
    Fence { term: Term(term), nonce: Nonce(u128::from(term)), version, adoptions: 0 }
}

fn event(id: u64, prev: Option<u64>, seq: u64) -> Event {
    Event {
        id: EventId(id),
        prev: prev.map(EventId),
        seq: Some(Seq(seq)),
        key: Some(key("a")),
        kind: Kind::new("test").unwrap(),
        data: Bytes::from(format!("data-{id}")),
        headers: Headers::default(),
        time: Timestamp(1),
        generation: None,
        incarnation: 0,
        delete: false,
        priority: 0,
        expires_at: None,
        hold_until: None,
        job: None,
    }
}

/// A lane of two events, both settled, each with a state; the second with an emit that waits in the outbox and the
/// end of a job.
fn good() -> History {
    let mut history = History::default();
    for (id, prev) in [(1, None), (2, Some(1))] {
        history.saw(SHARD, event(id, prev, id));
        let receipt =
            Receipt::New { id: EventId(id), prev: prev.map(EventId), seq: Some(Seq(id)), job: None };
        let drafts = vec![draft("a", &format!("data-{id}")).dedup(&format!("d{id}"), 1)];
        let outcome = Outcome::Answered(vec![receipt]);
        history.appends.push(AppendRecord { shard: SHARD, drafts, outcome });
    }
    history.grants.push(Grant { seat: SEAT, fence: fence(7, 0) });
    for (version, id) in [(0, 1), (1, 2)] {
        history.commits.push(commit(fence(7, version), id));
    }
    history.commits[1].commit.emits = vec![emit(StreamId(2), "out", "emitted")];
    history.commits[1].commit.jobs = vec![job_end(EventId(2), inline("result"))];
    history.ends.push(EndSeen { ended: 9, shard: SHARD, end: job_end(EventId(2), inline("result")) });
    history.finals.insert(SHARD, snapshot());
    history
}

fn commit(fence: Fence, id: u64) -> CommitRecord {
    let mut commit = laneway_core::store::Commit::new(SEAT, fence, CommitId(u128::from(fence.version)));
    commit.passed = passed(&[EventId(id)]);
    commit.states = vec![StateWrite { key: key("a"), value: Some(Bytes::from(id.to_string())) }];
    let settled = vec![Settled { id: EventId(id), place: Some((key("a"), Seq(id))) }];
    let committed = Committed {
        fence: Fence { version: fence.version + 1, ..fence },
        floor: EventId(id),
        request_no: 0,
        emitted: 0,
    };
    CommitRecord { began: 5, commit, settled, outcome: Outcome::Answered(committed) }
}

fn snapshot() -> Snapshot {
    let info = ShardInfo {
        incarnation: Incarnation(1),
        adoptions: 0,
        layout: 1,
        sealed: false,
        first_id: EventId(1),
        first_term: Term(0),
        head: EventId(2),
        scheduled: 0,
        trimmed: EventId(0),
        time: Timestamp(1),
        gaps: Vec::new(),
    };
    let progress = Progress {
        fence: fence(7, 2),
        node: Bytes::new(),
        window: Window::at(EventId(0)),
        clean: false,
        requests_applied: 0,
        emitted: 1,
        forwarded: 0,
        status: SeatStatus::Run,
        note: Bytes::new(),
        incarnation: 1,
    };
    let state = Versioned { version: 2, bytes: Bytes::from_static(b"2") };
    let outbox = vec![laneway_core::store::OutboxRow {
        number: 1,
        incarnation: 0,
        adoptions: 0,
        emit: emit(StreamId(2), "out", "emitted"),
    }];
    let seat = SeatSnapshot {
        view: SeatView { processor: SEAT.processor, progress, request_no: 0 },
        floor: EventId(2),
        above: Vec::new(),
        lanes: Vec::new(),
        states: vec![(key("a"), state)],
        endings: Vec::new(),
        dead: Vec::new(),
        outbox,
        requests: Vec::new(),
    };
    Snapshot {
        info,
        entries: Vec::new(),
        tails: Vec::new(),
        scheduled: Vec::new(),
        urgent: Vec::new(),
        ended: vec![job_end(EventId(2), inline("result"))],
        counts: Default::default(),
        seats: vec![seat],
    }
}

/// Breaks a good history and expects exactly these invariants to be reported.
fn breaks(expected: &[&str], change: impl FnOnce(&mut History)) {
    let mut history = good();
    change(&mut history);
    let violations = check(&history);
    let mut found: Vec<&str> = violations.iter().map(|violation| violation.invariant).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, expected, "{violations:#?}");
}

fn seat(history: &mut History) -> &mut SeatSnapshot {
    &mut history.finals.get_mut(&SHARD).unwrap().seats[0]
}

fn place(key_text: &str, seq: u64) -> Option<(Key, Seq)> {
    Some((key(key_text), Seq(seq)))
}

#[test]
fn a_good_history_breaks_nothing() {
    breaks(&[], |_| {});
}

#[test]
fn o1_sees_lanes_out_of_order() {
    breaks(&["O1"], |history| history.commits[1].settled[0].place = place("a", 3));
    breaks(&["O1"], |history| history.commits[0].settled[0].place = place("a", 2));
}

#[test]
fn o2_sees_terms_that_go_back_and_terms_with_two_nonces() {
    breaks(&["O2"], |history| history.commits[0].commit.fence = fence(8, 0));
    breaks(&["O2"], |history| {
        let forged = Fence { nonce: Nonce(99), ..fence(7, 0) };
        history.grants.push(Grant { seat: SEAT, fence: forged });
    });
}

#[test]
fn s3_sees_two_commits_at_one_version_and_versions_of_nobody() {
    breaks(&["S3"], |history| {
        let mut second = commit(fence(7, 1), 2);
        second.commit.id = CommitId(99);
        history.commits.push(second);
    });
    breaks(&["S3"], |history| seat(history).view.progress.fence.version = 3);
}

#[test]
fn s4_sees_events_in_two_places_and_in_none() {
    breaks(&["S4"], |history| {
        let record = crate::bench::parked(crate::bench::lane("a"), EventId(2));
        let view = laneway_core::store::LaneView { record, state: None, siding: vec![EventId(2)] };
        seat(history).lanes.push(view);
    });
    breaks(&["S4"], |history| seat(history).floor = EventId(1));
    breaks(&["S4"], |history| history.commits[1].settled.clear());
}

#[test]
fn d1_sees_what_was_acknowledged_and_is_gone_or_another() {
    breaks(&["D1", "chain"], |history| drop(history.events.remove(&(SHARD, EventId(1)))));
    breaks(&["D1"], |history| history.changed.push((SHARD, EventId(1))));
    breaks(&["D1", "D2"], |history| {
        history.events.get_mut(&(SHARD, EventId(2))).unwrap().data = Bytes::from_static(b"other");
    });
    breaks(&["D1"], |history| {
        let Outcome::Answered(receipts) = &mut history.appends[1].outcome else { panic!("answered") };
        receipts.clear();
    });
}

#[test]
fn d2_sees_invented_events() {
    breaks(&["D2"], |history| {
        history.saw(SHARD, Event { data: Bytes::from_static(b"invented"), ..event(3, Some(2), 3) });
    });
    breaks(&["D2"], |history| history.appends[1].outcome = Outcome::Refused);
}

#[test]
fn d3_asks_nothing_of_unanswered_calls() {
    breaks(&[], |history| history.appends[1].outcome = Outcome::Unknown);
    breaks(&[], |history| {
        let drafts = vec![draft("a", "never arrived")];
        history.appends.push(AppendRecord { shard: SHARD, drafts, outcome: Outcome::Unknown });
    });
    breaks(&[], |history| history.commits[1].outcome = Outcome::Unknown);
    breaks(&[], |history| {
        let late = CommitRecord { outcome: Outcome::Unknown, ..commit(fence(7, 2), 2) };
        history.commits.push(late);
    });
}

#[test]
fn d4_sees_one_name_twice() {
    breaks(&["D4"], |history| {
        history.saw(SHARD, Event { data: Bytes::from_static(b"data-1"), ..event(3, Some(2), 3) });
    });
    breaks(&["D1", "D4"], |history| {
        let receipt = Receipt::New { id: EventId(2), prev: Some(EventId(1)), seq: Some(Seq(2)), job: None };
        let drafts = vec![draft("a", "data-1").dedup("d1", 1)];
        history.appends.push(AppendRecord {
            shard: SHARD,
            drafts,
            outcome: Outcome::Answered(vec![receipt]),
        });
    });
}

#[test]
fn a1_sees_commits_that_are_half_there() {
    breaks(&["A1"], |history| seat(history).states.clear());
    breaks(&["A1"], |history| seat(history).states[0].1.version = 3);
    breaks(&["A1"], |history| seat(history).outbox.clear());
    breaks(&["A1"], |history| seat(history).view.progress.emitted = 2);
    breaks(&["A1"], |history| {
        let late = crate::bench::ending(EventId(1), laneway_core::Terminal::Failed);
        seat(history).endings.push(late);
    });
    breaks(&["A1"], |history| {
        history.ends.clear();
        history.finals.get_mut(&SHARD).unwrap().ended.clear();
    });
    breaks(&["A1"], |history| {
        let early = job_end(EventId(1), inline("nobody's"));
        history.finals.get_mut(&SHARD).unwrap().ended.push(early);
    });
    breaks(&["A1"], |history| history.commits.push(commit(fence(7, 2), 2)));
}

#[test]
fn a2_sees_emits_that_come_twice_or_never() {
    let arrived = |history: &mut History, shard: u32, id: u64| {
        let target = Shard { stream: StreamId(shard), partition: Partition(0) };
        let data = Bytes::from_static(b"emitted");
        history.saw(
            target,
            Event { data: data.clone(), key: None, prev: None, seq: None, ..event(id, None, 1) },
        );
        let drafts = vec![draft("out", "emitted")];
        history.appends.push(AppendRecord { shard: target, drafts, outcome: Outcome::Unknown });
    };
    breaks(&[], |history| arrived(history, 2, 1));
    breaks(&["A2"], |history| {
        arrived(history, 2, 1);
        arrived(history, 3, 1);
    });
    breaks(&["A2"], |history| {
        seat(history).view.progress.forwarded = 1;
        seat(history).outbox.clear();
    });
    breaks(&["A2"], |history| {
        let mut refused = CommitRecord { outcome: Outcome::Refused, ..commit(fence(7, 0), 1) };
        refused.commit.emits = vec![emit(StreamId(2), "out", "data-2")];
        history.commits.push(refused);
    });
}

#[test]
fn a3_sees_results_that_change_or_come_too_early() {
    breaks(&["A3"], |history| history.ends[0].ended = 4);
    breaks(&["A3"], |history| {
        let other = EndSeen { end: job_end(EventId(2), inline("other")), ..history.ends[0].clone() };
        history.ends.push(other);
    });
    breaks(&["A3"], |history| history.ends[0].end = job_end(EventId(1), inline("nobody's")));
}

#[test]
fn the_chain_checker_sees_gaps_and_wrong_tails() {
    let in_lane = |history: &mut History, change: fn(&mut Event)| {
        let id = (SHARD, EventId(2));
        change(history.events.get_mut(&id).unwrap());
        let event = history.events[&id].clone();
        let receipt = Receipt::New { id: event.id, prev: event.prev, seq: event.seq, job: None };
        history.appends[1].outcome = Outcome::Answered(vec![receipt]);
    };
    breaks(&["chain"], |history| in_lane(history, |event| event.seq = Some(Seq(3))));
    breaks(&["chain"], |history| in_lane(history, |event| event.prev = None));
    breaks(&["chain"], |history| {
        let tail = laneway_core::store::TailView {
            id: EventId(1),
            seq: Seq(1),
            generation: None,
            incarnation: 0,
            deleted: false,
            object: None,
        };
        let tails = &mut history.finals.get_mut(&SHARD).unwrap().tails;
        tails.push(laneway_core::store::LaneTail { key: key("a"), tail });
    });
}
