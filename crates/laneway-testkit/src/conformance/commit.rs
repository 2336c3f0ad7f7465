//! Cases about `commit`: what is settled together, under which fence, and what a repeat answers.
//!
//! What no owner may do is in `commit_refused`, beginning anew in `commit_reset`.

use bytes::Bytes;
use laneway_core::store::{
    Commit, Committed, DeadLetter, LaneChange, OutboxRow, Query, Reset, SeatStatus, StateWrite,
};
use laneway_core::{
    EventId, Fence, LaneName, LaneRecord, Nonce, ProcessorId, Seat, StoreError, Term, Terminal, Timestamp,
};

use super::expect::{expect_error, rows};
use crate::bench::{
    Bench, Place, emit, ending, inline, job_draft, job_end, key, lane, lane_change, parked, passed,
};

fn state(lane: &str, value: Option<&str>) -> StateWrite {
    StateWrite { key: key(lane), value: value.map(|text| Bytes::from(text.to_owned())) }
}

async fn owned(bench: &Bench, events: usize) -> (Place, Vec<EventId>, Fence) {
    let place = bench.place().await;
    let ids = if events == 0 { Vec::new() } else { bench.fill(&place, "a", events).await };
    let fence = bench.seize(place.seat).await.progress.fence;
    (place, ids, fence)
}

/// Contract 1.8: an accepted commit answers the next fence: the version grows by one and nothing else changes.
pub async fn a_commit_raises_the_version_by_one(bench: &Bench) {
    let (place, ids, mut fence) = owned(bench, 3).await;
    for (index, id) in ids.iter().enumerate() {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.passed = passed(&[*id]);
        let committed = bench.commit(commit).await;
        assert_eq!(committed.fence, Fence { version: index as u64 + 1, ..fence });
        assert_eq!((committed.floor, committed.request_no, committed.emitted), (*id, 0, 0));
        fence = committed.fence;
    }
    assert_eq!(bench.seat_view(place.seat).await.progress.fence, fence);
}

/// Contract 1.8: a commit that changes nothing is accepted too and counts.
pub async fn an_empty_commit_counts(bench: &Bench) {
    let (place, _, fence) = owned(bench, 0).await;
    let committed = bench.commit(bench.commit_of(place.seat, fence)).await;
    assert_eq!((committed.fence.version, committed.floor), (1, EventId(0)));
}

/// Contract 1.9: the floor is the highest id below which everything is passed; ids above it are a bitmap.
pub async fn the_floor_follows_from_what_is_passed(bench: &Bench) {
    let (place, ids, mut fence) = owned(bench, 200).await;
    let steps: [(&[usize], usize); 5] = [(&[1], 0), (&[3, 4], 0), (&[0], 2), (&[2, 100], 5), (&[], 5)];
    for (indexes, floor) in steps {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.passed = indexes.iter().map(|index| ids[*index]).collect();
        let committed = bench.commit(commit).await;
        assert_eq!(committed.floor, EventId(floor as u64), "after {indexes:?}");
        fence = committed.fence;
    }
    let window = bench.seat_view(place.seat).await.progress.window;
    assert!(window.contains(ids[100]) && !window.contains(ids[99]) && !window.contains(ids[101]));
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    assert_eq!(bench.commit(commit).await.floor, ids[199], "passing what is passed is fine");
}

/// Contract 1.8: a commit is refused unless its fence is equal in all four parts, and then writes nothing.
pub async fn every_part_of_the_fence_is_compared(bench: &Bench) {
    let (place, ids, first) = owned(bench, 2).await;
    let mut commit = bench.commit_of(place.seat, first);
    commit.passed = passed(&ids[..1]);
    let fence = bench.commit(commit).await.fence;
    let before = bench.snapshot(place.shard).await;
    let wrong = [
        Fence { term: Term(fence.term.0 - 1), ..fence },
        Fence { term: Term(fence.term.0 + 1), ..fence },
        Fence { nonce: Nonce(fence.nonce.0 ^ 1), ..fence },
        Fence { version: fence.version - 1, ..fence },
        Fence { version: fence.version + 1, ..fence },
        Fence { adoptions: fence.adoptions + 1, ..fence },
    ];
    for fence in wrong {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.passed = passed(&ids);
        commit.states = vec![state("a", Some("stolen"))];
        let answer = bench.store().commit(commit).await;
        expect_error!(
            answer,
            StoreError::Fenced { seat, current } if seat == place.seat && current == first.term
        );
        assert_eq!(bench.snapshot(place.shard).await, before, "{fence:?}");
    }
}

/// Contract 2, commit: a seat that nobody owns accepts no commit.
pub async fn an_unowned_seat_accepts_no_commit(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 1).await;
    let mut commit = bench.commit_of(place.seat, Fence::default());
    commit.passed = passed(&[EventId(1)]);
    expect_error!(bench.store().commit(commit).await, StoreError::Fenced { .. });
    assert_eq!(bench.seat_view(place.seat).await.progress.window.floor(), EventId(0));
}

/// Everything that a commit can hold at once.
fn whole(bench: &Bench, place: &Place, ids: &[EventId], fence: Fence, letter: DeadLetter) -> Commit {
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(ids);
    commit.endings = vec![ending(ids[1], Terminal::Failed)];
    commit.lanes = vec![LaneChange { side: vec![ids[2]], ..lane_change(parked(lane("a"), ids[2])) }];
    commit.states = vec![state("a", Some("state"))];
    commit.dead = vec![letter];
    commit.emits = vec![emit(place.stream.id, "b", "emitted")];
    commit.requests_applied = Some(1);
    commit.jobs = vec![job_end(ids[0], inline("result"))];
    commit.status = Some(SeatStatus::Paused);
    commit
}

async fn with_everything(bench: &Bench) -> (Place, Vec<EventId>, Fence, Commit) {
    let place = bench.place().await;
    let first = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    let mut ids = vec![first];
    ids.extend(bench.fill(&place, "a", 2).await);
    let op = laneway_core::store::RequestOp::Cancel { id: ids[1] };
    let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
    bench.store().request(request).await.expect("a seat that exists");
    let fence = bench.seize(place.seat).await.progress.fence;
    let event = bench.event(place.shard, ids[1]).await;
    let letter = DeadLetter { event, cause: Bytes::from_static(b"broken"), attempts: 4, at: Timestamp(0) };
    let commit = whole(bench, &place, &ids, fence, letter);
    (place, ids, fence, commit)
}

/// Promise atomic settle, invariant A1: ends, lanes, state, emits, results and progress are visible together.
pub async fn everything_of_a_commit_is_there_together(bench: &Bench) {
    let (place, ids, _, commit) = with_everything(bench).await;
    let committed = bench.commit(commit.clone()).await;
    assert_eq!((committed.floor, committed.request_no, committed.emitted), (ids[2], 1, 1));
    let snapshot = bench.snapshot(place.shard).await;
    let seat = snapshot.seat(place.seat.processor);
    assert_eq!((seat.floor, &seat.endings), (ids[2], &commit.endings));
    assert_eq!((seat.states.len(), seat.states[0].1.version), (1, 1));
    assert_eq!((seat.lanes.len(), &seat.lanes[0].siding), (1, &vec![ids[2]]));
    assert_eq!((seat.dead.len(), &seat.dead[0].event, seat.dead[0].attempts), (1, &commit.dead[0].event, 4));
    assert_eq!(
        seat.outbox,
        [OutboxRow { number: 1, incarnation: 0, adoptions: 0, emit: commit.emits[0].clone() }]
    );
    assert!(seat.requests.is_empty(), "an applied request is not listed");
    assert_eq!(seat.view.progress.status, SeatStatus::Paused);
    assert_eq!((snapshot.ended.len(), &snapshot.ended[0].result), (1, &inline("result")));
    assert_eq!(snapshot.counts.seats, [(place.seat.processor, [1, 1, 1, 0])]);
}

/// Invariants S3 and A1: a refused commit leaves nothing of all it held.
pub async fn nothing_of_a_refused_commit_is_there(bench: &Bench) {
    let (place, ids, _, commit) = with_everything(bench).await;
    let before = bench.snapshot(place.shard).await;
    let stale = Commit { fence: Fence { version: 7, ..commit.fence }, ..commit.clone() };
    expect_error!(bench.store().commit(stale).await, StoreError::Fenced { .. });
    assert_eq!(bench.snapshot(place.shard).await, before);
    let mut refused = commit.clone();
    refused.endings.push(ending(ids[0], Terminal::Done));
    expect_error!(bench.store().commit(refused).await, StoreError::Refused(_));
    assert_eq!(bench.snapshot(place.shard).await, before);
    bench.commit(commit).await;
}

/// Contract 1.8: an unanswered commit is repeated unchanged: the same answer, and nothing is applied twice.
pub async fn a_repeated_commit_answers_the_same_and_applies_nothing(bench: &Bench) {
    let (place, _, _, commit) = with_everything(bench).await;
    let first: Committed = bench.commit(commit.clone()).await;
    let after = bench.snapshot(place.shard).await;
    for _ in 0..2 {
        assert_eq!(bench.commit(commit.clone()).await, first);
        assert_eq!(bench.snapshot(place.shard).await, after);
    }
}

/// Contract 1.8: what is illegal the second time (a leaving sided id) must not hinder the repeat.
pub async fn a_repeat_is_told_before_the_commit_is_judged(bench: &Bench) {
    let (place, ids, _, commit) = with_everything(bench).await;
    let fence = bench.commit(commit).await.fence;
    let mut drain = bench.commit_of(place.seat, fence);
    drain.lanes = vec![LaneChange { lane: lane("a"), record: None, side: Vec::new(), unside: vec![ids[2]] }];
    drain.forwarded = Some(1);
    let first = bench.commit(drain.clone()).await;
    assert_eq!(bench.commit(drain).await, first);
}

/// Contract 1.8: the same fence with another commit id is no repeat, and neither is an old commit.
pub async fn only_the_last_commit_can_be_repeated(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 2).await;
    let mut first = bench.commit_of(place.seat, fence);
    first.passed = passed(&ids[..1]);
    let committed = bench.commit(first.clone()).await;
    let other = Commit { id: bench.commit_id(), ..first.clone() };
    expect_error!(bench.store().commit(other).await, StoreError::Fenced { .. });
    bench.commit(bench.commit_of(place.seat, committed.fence)).await;
    expect_error!(bench.store().commit(first).await, StoreError::Fenced { .. });
}

/// Contract 1.8: a repeat under another nonce or after a seizure is refused.
pub async fn a_repeat_needs_the_same_grant(bench: &Bench) {
    let (place, _, fence) = owned(bench, 1).await;
    let commit = bench.commit_of(place.seat, fence);
    bench.commit(commit.clone()).await;
    let forged = Commit { fence: Fence { nonce: Nonce(77), ..fence }, ..commit.clone() };
    expect_error!(bench.store().commit(forged).await, StoreError::Fenced { .. });
    bench.seize(place.seat).await;
    expect_error!(bench.store().commit(commit).await, StoreError::Fenced { .. });
}

/// Contract 1.6: a state's version counts its changes; removal forgets the value; other lanes are untouched.
pub async fn a_state_counts_its_changes(bench: &Bench) {
    let (place, _, mut fence) = owned(bench, 0).await;
    for (value, version) in [("one", 1), ("two", 2), ("two", 3)] {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.states = vec![state("a", Some(value))];
        fence = bench.commit(commit).await.fence;
        let states = rows!(bench, Query::States(place.seat, None, 10), States);
        assert_eq!(
            (states.len(), states[0].1.version, &states[0].1.bytes[..]),
            (1, version, value.as_bytes())
        );
    }
    let mut commit = bench.commit_of(place.seat, fence);
    commit.states = vec![state("a", None), state("b", Some("other")), state("never", None)];
    bench.commit(commit).await;
    let states = rows!(bench, Query::States(place.seat, None, 10), States);
    assert_eq!((states.len(), &states[0].0, states[0].1.version), (1, &key("b"), 1));
}

/// Contract 1.1: emits are numbered 1, 2, 3 in commit order and stay in the outbox until they are forwarded.
pub async fn emits_stay_in_the_outbox_until_forwarded(bench: &Bench) {
    let (place, _, mut fence) = owned(bench, 0).await;
    let target = place.stream.id;
    for texts in [vec!["1", "2"], vec!["3"]] {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.emits = texts.into_iter().map(|text| emit(target, "b", text)).collect();
        fence = bench.commit(commit).await.fence;
    }
    let numbers = async || {
        let rows = rows!(bench, Query::Outbox(place.seat, 0, 10), Outbox);
        rows.iter().map(|row| (row.number, row.emit.draft.data.clone())).collect::<Vec<_>>()
    };
    let row = |number: u64| (number, Bytes::from(number.to_string()));
    assert_eq!(numbers().await, [row(1), row(2), row(3)]);
    for (forwarded, left) in [(2, vec![row(3)]), (2, vec![row(3)]), (3, vec![])] {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.forwarded = Some(forwarded);
        let committed = bench.commit(commit).await;
        assert_eq!((numbers().await, committed.emitted), (left, 3));
        fence = committed.fence;
    }
    let progress = bench.seat_view(place.seat).await.progress;
    assert_eq!((progress.emitted, progress.forwarded), (3, 3));
    let mut commit = bench.commit_of(place.seat, fence);
    commit.emits = vec![emit(target, "b", "4")];
    assert_eq!(bench.commit(commit).await.emitted, 4, "numbers are never used again");
    assert!(bench.events(place.shard).await.is_empty(), "an emit joins its lane by append only");
}

/// Contract 3.1: ends other than done are kept with their reason and winner; done is not written.
pub async fn ends_other_than_done_are_recorded(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 6).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    let ends =
        [Terminal::Failed, Terminal::Skipped, Terminal::Superseded, Terminal::Cancelled, Terminal::Expired];
    commit.endings = ends.iter().zip(&ids).map(|(end, id)| ending(*id, *end)).collect();
    commit.endings[2].winner = Some(ids[5]);
    let written = commit.endings.clone();
    bench.commit(commit).await;
    assert_eq!(rows!(bench, Query::Endings(place.seat, EventId(0), 10), Endings), written);
}

/// Contract 1.17: a dead letter is a copy under the store's time; reviving removes it.
pub async fn dead_letters_are_kept_until_revived(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 2).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    for id in &ids {
        let event = bench.event(place.shard, *id).await;
        commit.dead.push(DeadLetter {
            event,
            cause: Bytes::from_static(b"why"),
            attempts: 2,
            at: Timestamp(5),
        });
    }
    let fence = bench.commit(commit).await.fence;
    let dead = rows!(bench, Query::Dead(place.seat, EventId(0), 10), Dead);
    assert_eq!(dead.iter().map(|letter| letter.event.id).collect::<Vec<_>>(), ids);
    assert!(dead.iter().all(|letter| letter.at != Timestamp(5)), "the store says when: {dead:?}");
    let mut commit = bench.commit_of(place.seat, fence);
    commit.revived = vec![ids[0]];
    bench.commit(commit).await;
    let dead = rows!(bench, Query::Dead(place.seat, EventId(0), 10), Dead);
    assert_eq!(dead.iter().map(|letter| letter.event.id).collect::<Vec<_>>(), ids[1..]);
}

/// Contract 1.17: a dead letter that comes back into its lane has not ended after all; one that is discarded has.
pub async fn a_redriven_event_has_not_ended(bench: &Bench) {
    let (place, ids, fence) = owned(bench, 2).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    commit.endings = ids.iter().map(|id| ending(*id, Terminal::Failed)).collect();
    let fence = bench.commit(commit).await.fence;
    let key = bench.event(place.shard, ids[0]).await.key.expect("it has a key");
    let mut commit = bench.commit_of(place.seat, fence);
    commit.revived = ids.clone();
    let lane = LaneName::Key(key);
    let record = Some(LaneRecord::new(lane.clone()));
    commit.lanes = vec![LaneChange { lane, record, side: vec![ids[0]], unside: Vec::new() }];
    bench.commit(commit).await;
    let endings = rows!(bench, Query::Endings(place.seat, EventId(0), 10), Endings);
    assert_eq!(endings.iter().map(|ending| ending.id).collect::<Vec<_>>(), [ids[1]]);
}

/// Contract 2: a seat's status stays until a commit changes it.
pub async fn a_status_stays_until_it_is_changed(bench: &Bench) {
    let (place, _, mut fence) = owned(bench, 0).await;
    let steps = [
        (Some(SeatStatus::Halted), SeatStatus::Halted),
        (None, SeatStatus::Halted),
        (Some(SeatStatus::Run), SeatStatus::Run),
    ];
    for (status, expected) in steps {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.status = status;
        fence = bench.commit(commit).await.fence;
        assert_eq!(bench.seat_view(place.seat).await.progress.status, expected);
    }
}

/// Contract 2: what an owner keeps with a seat stays until a commit changes it, over owners and resets.
pub async fn a_note_stays_until_it_is_changed(bench: &Bench) {
    let (place, _, mut fence) = owned(bench, 0).await;
    let note = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    assert_eq!(bench.seat_view(place.seat).await.progress.note, "");
    for (written, expected) in [(note("one"), "one"), (None, "one"), (note("two"), "two")] {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.note = written;
        fence = bench.commit(commit).await.fence;
        assert_eq!(bench.seat_view(place.seat).await.progress.note, expected);
    }
    let mut commit = bench.commit_of(place.seat, fence);
    commit.reset = Some(Reset { start: laneway_core::StartAt::Beginning, clear_states: true, quiet: true });
    bench.commit(commit).await;
    assert_eq!(bench.seize(place.seat).await.progress.note, "two");
    let fence = bench.seat_view(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.note = note("");
    let fence = bench.commit(commit).await.fence;
    assert_eq!(bench.seat_view(place.seat).await.progress.note, "");
    let mut commit = bench.commit_of(place.seat, fence);
    commit.note = Some(vec![0; laneway_core::limits::NOTE_BYTES_MAX + 1].into());
    expect_error!(bench.store().commit(commit).await, StoreError::Refused(_));
}

/// Contract 2: seats of two processors settle apart: progress, states, endings, outbox.
pub async fn processors_settle_apart(bench: &Bench) {
    let (place, _, _, commit) = with_everything(bench).await;
    let other = bench.processor(place.stream.id, laneway_core::StartAt::Beginning).await;
    let before = bench.snapshot(place.shard).await.seat(other).clone();
    bench.commit(commit).await;
    assert_eq!(*bench.snapshot(place.shard).await.seat(other), before);
}

/// Contract 2, commit: it never touches tails or events.
pub async fn a_commit_touches_no_event_and_no_tail(bench: &Bench) {
    let (place, _, _, commit) = with_everything(bench).await;
    let before = bench.snapshot(place.shard).await;
    bench.commit(commit).await;
    let after = bench.snapshot(place.shard).await;
    assert_eq!((after.entries, after.tails, after.info), (before.entries, before.tails, before.info));
}

/// Contract 2, commit: no such seat.
pub async fn a_commit_of_an_unknown_seat_is_not_found(bench: &Bench) {
    let (place, _, fence) = owned(bench, 0).await;
    let seat = Seat { processor: ProcessorId(9_999), ..place.seat };
    expect_error!(bench.store().commit(bench.commit_of(seat, fence)).await, StoreError::NotFound { .. });
}
