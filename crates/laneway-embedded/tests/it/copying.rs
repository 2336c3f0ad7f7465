//! Copies between stores: everything reads the same at the target, and work goes on there.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::time::Duration;

use laneway_core::copying::{self, CopyReport, copy};
use laneway_core::store::{
    Commit, Define, IMPORTING, Import, JobState, Origin, Promote, Query, Receipt, Request, RequestOp, Rows,
    Source, StateWrite, StoreView, Trim,
};
use laneway_core::{
    Block, Clock, CommitId, Due, EventId, Incarnation, JobId, ManualClock, Partition, Seat, Shard, Steady,
    Store, StoreError, StreamId, Term,
};
use laneway_embedded::file::{Background, verify};
use laneway_embedded::{FileOptions, FileStore, MemoryStore};
use laneway_testkit::Bench;
use laneway_testkit::bench::{DraftExt, Place, Snapshot, draft, inline, job_draft, job_end, key, passed};

use super::rich::{APPLIED, Rich, WAITING, on_file, on_memory, rich};
use super::verify::leave_as_killed;

const ALL: usize = 10_000;

/// A clock on which years have passed, so that its steady time is unlike that of a new one.
fn old_clock() -> ManualClock {
    let clock = ManualClock::default();
    let today = clock.calendar();
    clock.advance(Duration::from_secs(100_000_000));
    clock.jump_to(today);
    clock
}

fn memory(clock: &ManualClock, incarnation: u128) -> Arc<MemoryStore> {
    Arc::new(MemoryStore::with_incarnation(Arc::new(clock.clone()), Incarnation(incarnation)))
}

fn file(folder: &tempfile::TempDir, name: &str, clock: &ManualClock) -> FileStore {
    let options = FileOptions { segment_bytes: 16 << 20, ..FileOptions::default() };
    FileStore::open_with(folder.path().join(name), options, Arc::new(clock.clone())).unwrap()
}

async fn store_view(bench: &Bench) -> StoreView {
    match bench.query(Query::Store).await {
        Rows::Store(view) => view,
        other => panic!("{other:?}"),
    }
}

/// Everything of a shard, with due times as the time that is left.
#[derive(Debug, PartialEq)]
struct Everything {
    snapshot: Snapshot,
    lists: Vec<Rows>,
}

async fn everything(bench: &Bench, shard: Shard) -> Everything {
    let steady = store_view(bench).await.steady;
    let mut snapshot = bench.snapshot(shard).await;
    let mut lists = Vec::new();
    let zero = EventId(0);
    for query in [
        Query::Events(shard, zero, ALL),
        Query::Objects(shard, None, ALL),
        Query::Dedup(shard, None, ALL),
        Query::Sources(shard, None, ALL),
        Query::Tickets(shard, 0, ALL),
        Query::Ends(shard, zero, ALL),
    ] {
        lists.push(bench.query(query).await);
    }
    for seat in &snapshot.seats {
        let seat = Seat { shard, processor: seat.view.processor };
        lists.push(bench.query(Query::Sided(seat, zero, ALL)).await);
        lists.push(bench.query(Query::Tokens(seat, None, ALL)).await);
    }
    normalise(&mut snapshot, &mut lists, steady);
    Everything { snapshot, lists }
}

/// Both stores have the same of everything in a shard.
async fn same(from: &Bench, to: &Bench, shard: Shard) {
    let (source, target) = (everything(from, shard).await, everything(to, shard).await);
    for (before, after) in source.lists.iter().zip(&target.lists) {
        assert_eq!(before, after, "shard {shard}");
    }
    assert_eq!(source.snapshot.info, target.snapshot.info);
    for (before, after) in source.snapshot.seats.iter().zip(&target.snapshot.seats) {
        assert_eq!(before, after, "shard {shard}");
    }
    assert_eq!(source, target, "shard {shard}");
}

/// Takes out what differs by design: owner, incarnation, term floor, and the origin of steady time.
fn normalise(snapshot: &mut Snapshot, lists: &mut [Rows], now: Steady) {
    let left = |due: &mut Due| {
        if let Due::Steady(moment) = due {
            *moment = Steady((1 << 50) + moment.0 - now.0);
        }
    };
    (snapshot.info.incarnation, snapshot.info.first_term) = (Incarnation(0), Term(0));
    snapshot.scheduled.iter_mut().for_each(|row| left(&mut row.due));
    for entry in &mut snapshot.entries {
        if let laneway_core::store::Entry::Event(event) = entry {
            event.hold_until.iter_mut().for_each(&left);
        }
    }
    for seat in &mut snapshot.seats {
        (seat.view.progress.fence.term, seat.view.progress.fence.nonce) = Default::default();
        seat.view.progress.node = bytes::Bytes::new();
        for lane in &mut seat.lanes {
            if let Some(Block::Retry { due, .. } | Block::Hold { due }) = &mut lane.record.block {
                left(due);
            }
        }
        seat.dead.iter_mut().for_each(|dead| dead.event.hold_until.iter_mut().for_each(&left));
    }
    for rows in lists {
        match rows {
            Rows::Events(events) => {
                events.iter_mut().for_each(|event| event.hold_until.iter_mut().for_each(&left))
            }
            Rows::Dedup(entries) => entries.iter_mut().for_each(|row| {
                if let Receipt::Scheduled { due, .. } = &mut row.receipt {
                    left(due);
                }
            }),
            _ => {}
        }
    }
}

fn shards(rich: &Rich) -> [Shard; 3] {
    [rich.queue.shard, rich.queue.stream.shard(Partition(1)), rich.latest.shard]
}

/// Copies, compares, and goes on at the target.
async fn check(from: &Bench, to: &Bench, rich: &Rich) -> CopyReport {
    let old_term = from.seat_view(rich.queue.seat).await.progress.fence;
    let report = copy(from.store().as_ref(), to.store().as_ref()).await.unwrap();
    assert_eq!(from.streams().await, to.streams().await);
    for shard in shards(rich) {
        same(from, to, shard).await;
    }
    let (source, target) = (store_view(from).await, store_view(to).await);
    assert_eq!((source.streams, source.processors), (target.streams, target.processors));
    check_jobs(from, to, rich).await;
    check_producers(to, rich).await;
    check_owner(to, rich, old_term).await;
    check_schedule(to, rich).await;
    report
}

async fn check_jobs(from: &Bench, to: &Bench, rich: &Rich) {
    let shard = rich.queue.shard;
    for receipt in &rich.jobs {
        let (Receipt::New { job: Some(job), .. } | Receipt::Scheduled { job: Some(job), .. }) = receipt
        else {
            panic!("{receipt:?}")
        };
        let job: JobId = *job;
        assert_eq!(job.shard(), shard);
        match (from.job(shard, job.number()).await, to.job(shard, job.number()).await) {
            (JobState::Scheduled { .. }, JobState::Scheduled { .. }) => {}
            (before, after) => assert_eq!(before, after),
        }
    }
    let Receipt::New { id, .. } = rich.jobs[1] else { panic!("{:?}", rich.jobs) };
    match to.job(shard, laneway_core::JobNumber::Event(id)).await {
        JobState::Ended { result: Some(result), .. } => {
            assert!(result == rich.large, "the chunks hold other bytes")
        }
        other => panic!("{other:?}"),
    }
}

/// A producer that does not know of the copy.
async fn check_producers(to: &Bench, rich: &Rich) {
    let (queue, shard) = (&rich.queue, rich.queue.shard);
    let head = to.shard_info(shard).await.head;
    let lanes = ["idle", "busy"].map(key);
    let tails = [to.tail(shard, &lanes[0]).await.unwrap(), to.tail(shard, &lanes[1]).await.unwrap()];
    let again = to.send(queue, vec![draft("once", "only").dedup("name", 5)]).await;
    assert!(matches!(again[..], [Receipt::Duplicate { first: Some(_) }]), "{again:?}");
    let origin = Origin { source: Source::Named(bytes::Bytes::from_static(b"input")), term: Term(4) };
    let repeated = to.append_from(queue, origin, vec![draft("sourced", "numbered").at_origin(3)]);
    let repeated = to.store().append(repeated).await.unwrap().receipts;
    assert_eq!(repeated, [Receipt::Duplicate { first: None }]);
    let sent = to.send(queue, vec![draft("idle", "awake"), draft("busy", "still")]).await;
    for (index, receipt) in sent.iter().enumerate() {
        let Receipt::New { id, prev, seq, .. } = receipt else { panic!("{receipt:?}") };
        assert_eq!(*id, EventId(head.0 + 1 + index as u64), "ids go on");
        assert_eq!(*prev, Some(tails[index].id), "the chain goes on");
        assert_eq!(seq.unwrap().0, tails[index].seq.0 + 1, "lane numbers go on");
    }
}

async fn check_owner(to: &Bench, rich: &Rich, old: laneway_core::Fence) {
    let seat = rich.queue.seat;
    let stale = to.store().commit(Commit::new(seat, old, CommitId(1))).await;
    assert!(
        matches!(stale, Err(StoreError::Fenced { .. })),
        "an owner of the source is no owner here: {stale:?}"
    );
    assert_eq!(to.owner(seat).await, None);
    let resume = to.seize(seat).await;
    assert!(resume.progress.fence.term > old.term, "terms only grow");
    assert_eq!((resume.progress.clean, resume.progress.fence.version), (true, old.version));
    let open = resume.progress.window.floor().next();
    let mut commit = to.commit_of(seat, resume.progress.fence);
    commit.passed = passed(&[open]);
    commit.requests_applied = Some(2);
    assert!(to.commit(commit).await.floor >= open);
    for (token, number) in [(APPLIED, 1), (WAITING, 2)] {
        let repeat = Request { seat, token, op: RequestOp::Resume { lane: None } };
        let accepted = to.store().request(repeat).await.unwrap();
        assert!(accepted.repeated && accepted.number == number, "{accepted:?}");
    }
}

async fn check_schedule(to: &Bench, rich: &Rich) {
    let promote = Promote { shard: rich.queue.shard, limit: 10 };
    assert_eq!(to.store().promote(promote).await.unwrap().moved, 0, "nothing is due before its time");
    to.advance(Duration::from_secs(99));
    assert_eq!(to.store().promote(promote).await.unwrap().moved, 2, "delays keep the time they have left");
}

#[tokio::test]
async fn from_memory_to_a_folder_everything_stays_and_work_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let clocks = (old_clock(), ManualClock::default());
    let from = on_memory(&memory(&clocks.0, 1), &clocks.0).await;
    let made = rich(&from).await;
    clocks.1.jump_to(clocks.0.calendar());
    let target = file(&folder, "target", &clocks.1);
    let to = on_file(&target, &clocks.1).await;
    let report = check(&from, &to, &made).await;
    assert_eq!((report.streams, report.shards, report.processors, report.jobs), (2, 3, 3, 2));
    assert!(report.to_string().starts_with(&format!("copied {} events", report.events)), "{report}");
    drop(to);
    target.close().unwrap();
    let verified = verify(folder.path().join("target")).unwrap();
    assert!(verified.is_clean(), "{verified}");
}

#[tokio::test]
async fn from_a_folder_to_memory_everything_stays_and_work_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let clocks = (ManualClock::default(), old_clock());
    let from = on_file(&file(&folder, "source", &clocks.0), &clocks.0).await;
    let made = rich(&from).await;
    clocks.1.jump_to(clocks.0.calendar());
    let to = on_memory(&memory(&clocks.1, 2), &clocks.1).await;
    check(&from, &to, &made).await;
}

#[tokio::test]
async fn from_folder_to_folder_everything_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let from = on_file(&file(&folder, "source", &clock), &clock).await;
    let made = rich(&from).await;
    let target = file(&folder, "target", &clock);
    copy(from.store().as_ref(), &target).await.unwrap();
    target.close().unwrap();
    let verified = verify(folder.path().join("target")).unwrap();
    assert!(verified.is_clean(), "{verified}");
    let target = file(&folder, "target", &clock);
    let to = on_file(&target, &clock).await;
    for shard in shards(&made) {
        same(&from, &to, shard).await;
    }
    check_jobs(&from, &to, &made).await;
    check_producers(&to, &made).await;
    let again = copy(from.store().as_ref(), &target).await.unwrap_err();
    assert!(matches!(again, StoreError::Refused(_)), "a target that has the stream is refused: {again}");
    drop(to);
    target.close().unwrap();
    let verified = verify(folder.path().join("target")).unwrap();
    assert!(verified.is_clean(), "{verified}");
}

#[tokio::test]
async fn a_target_that_was_killed_after_the_copy_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::default();
    let from = on_memory(&memory(&clock, 1), &clock).await;
    let made = rich(&from).await;
    let (live, killed) = (folder.path().join("live"), folder.path().join("killed"));
    // Without a checkpoint everything comes back from the log alone.
    let options = FileOptions { background: Background::Manual, ..FileOptions::default() };
    let target = FileStore::open_with(&live, options, Arc::new(clock.clone())).unwrap();
    copy(from.store().as_ref(), &target).await.unwrap();
    leave_as_killed(&live, &killed);
    let verified = verify(&killed).unwrap();
    assert!(verified.is_clean(), "{verified}");
    let to = on_file(&file(&folder, "killed", &clock), &clock).await;
    for shard in shards(&made) {
        same(&from, &to, shard).await;
    }
    check_producers(&to, &made).await;
}

#[tokio::test]
async fn gaps_of_adoptions_stay_and_what_must_be_adopted_still_must() {
    let clock = ManualClock::default();
    let store = memory(&clock, 1);
    let made = rich(&on_memory(&store, &clock).await).await;
    let restored = Arc::new(store.restored(Incarnation(2)));
    let from = on_memory(&restored, &clock).await;
    let [first, second, _] = shards(&made);
    from.define(Define::Adopt { shard: first, stored: Incarnation(1) }).await;
    from.fill(&made.queue, "after the gap", 5).await;
    let to = on_memory(&memory(&clock, 3), &clock).await;
    copy(restored.as_ref(), to.store().as_ref()).await.unwrap();
    same(&from, &to, first).await;
    let info = to.shard_info(first).await;
    assert_eq!((info.incarnation, info.adoptions, info.gaps.len()), (Incarnation(3), 1, 1));
    to.fill(&made.queue, "after the gap", 1).await;
    let other = Place { shard: second, ..made.queue.clone() };
    let refused = to.try_send(&other, vec![draft("elsewhere", "next")]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Adopt { stored: 1, .. }), "{refused}");
}

#[tokio::test]
async fn nobody_can_use_a_shard_before_its_import_has_finished() {
    let clock = ManualClock::default();
    let from = on_memory(&memory(&clock, 1), &clock).await;
    let place = from.place().await;
    from.fill(&place, "lane", 3).await;
    let store = memory(&clock, 2);
    let to = on_memory(&store, &clock).await;
    let piece = |import| Define::Import(import);
    to.define(piece(Import::Stream(place.stream.clone()))).await;
    let is_refused = |result: Result<(), StoreError>| match result {
        Err(StoreError::Refused(refusal)) => assert!(refusal.to_string().contains("import"), "{refusal}"),
        other => panic!("{other:?}"),
    };
    is_refused(to.try_send(&place, vec![draft("lane", "early")]).await.map(drop));
    is_refused(store.seize(to.seize_of(place.seat, None)).await.map(drop));
    is_refused(store.promote(Promote { shard: place.shard, limit: 1 }).await.map(drop));
    is_refused(store.trim(Trim { shard: place.shard }).await.map(drop));
    let adopt = Define::Adopt { shard: place.shard, stored: IMPORTING };
    is_refused(store.define(adopt).await.map(drop));
    let wish = Request { seat: place.seat, token: WAITING, op: RequestOp::Resume { lane: None } };
    is_refused(store.request(wish).await.map(drop));
    let Rows::Events(events) = from.query(Query::Events(place.shard, EventId(0), ALL)).await else {
        panic!("events")
    };
    let hole = Import::Shard(place.shard, Rows::Events(events[1..].to_vec()));
    let refused = store.define(piece(hole)).await.unwrap_err();
    assert!(refused.to_string().contains("id of an event is 2, must be 1"), "{refused}");
    let early = Import::Finish(place.shard, from.shard_info(place.shard).await);
    assert!(matches!(store.define(piece(early)).await, Err(StoreError::Refused(_))), "events are missing");
    // The same piece twice, as after an answer that was lost, has the effect of one.
    for _ in 0..2 {
        let all = Import::Shard(place.shard, Rows::Events(events.clone()));
        to.define(piece(all)).await;
    }
    let info = laneway_core::ShardInfo { incarnation: Incarnation(2), ..from.shard_info(place.shard).await };
    to.define(piece(Import::Finish(place.shard, info))).await;
    assert_eq!(to.events(place.shard).await, from.events(place.shard).await);
    assert_eq!(to.send_one(&place, draft("lane", "next")).await, EventId(4));
    let late = Import::Shard(place.shard, Rows::Events(events));
    assert!(matches!(store.define(piece(late)).await, Err(StoreError::Refused(_))), "the import is over");
}

#[tokio::test]
async fn numbers_that_were_given_never_come_again() {
    let clock = ManualClock::default();
    let from = on_memory(&memory(&clock, 1), &clock).await;
    rich(&from).await;
    let last = from.place().await;
    from.define(Define::RemoveStream { stream: last.stream.id, expect: last.stream.version }).await;
    let to = on_memory(&memory(&clock, 2), &clock).await;
    copy(from.store().as_ref(), to.store().as_ref()).await.unwrap();
    let next = to.place().await;
    assert_eq!(next.stream.id, StreamId(last.stream.id.0 + 1));
    assert_eq!(next.seat.processor.0, last.seat.processor.0 + 1);
    let used = on_memory(&memory(&clock, 4), &clock).await;
    let (gone, _) = (used.place().await, used.place().await);
    used.define(Define::RemoveStream { stream: gone.stream.id, expect: gone.stream.version }).await;
    let refused = copy(from.store().as_ref(), used.store().as_ref()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
}

/// A store with one job that has ended.
async fn ended(data: &str, state: &str, result: &str) -> Arc<MemoryStore> {
    let clock = ManualClock::default();
    let store = memory(&clock, 1);
    let bench = on_memory(&store, &clock).await;
    let place = bench.place().await;
    let id = bench.send_one(&place, job_draft("ann", data, place.seat.processor)).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.states = vec![StateWrite { key: key("ann"), value: Some(state.to_owned().into()) }];
    commit.jobs = vec![job_end(id, inline(result))];
    bench.commit(commit).await;
    store
}

#[tokio::test]
async fn a_copy_that_differs_is_found_with_its_place() {
    let source = ended("data", "state", "result").await;
    let same = copying::verify(&*source, &*ended("data", "state", "result").await).await.unwrap();
    assert_eq!((same.events, same.lanes, same.jobs, same.states), (1, 1, 1, 1));
    for (copy, place) in [
        (ended("other", "state", "result").await, "events of shard"),
        (ended("data", "other", "result").await, "states of seat"),
        (ended("data", "state", "other").await, "result of the job of event 1 in shard"),
    ] {
        let error = copying::verify(&*source, &*copy).await.unwrap_err().to_string();
        assert!(error.contains("the copy differs from its source: ") && error.contains(place), "{error}");
    }
}
