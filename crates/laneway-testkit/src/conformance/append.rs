//! Cases about `append`: ids, the chain, what an event keeps, limits, and the order of the checks.
//!
//! Dedup, origins, objects and latest mode are in `append_again` and `append_latest`.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::store::{LaneChange, ObjectWrite, Origin, Receipt, Source};
use laneway_core::{
    ConflictReason, Delay, DelayMode, Draft, Due, EventId, FullReason, Headers, Incarnation, Kind, Mode,
    Partition, Seq, Shard, StartAfter, StoreError, StreamId, StreamSettings, Term, limits,
};

use super::expect::{expect_conflict, expect_error, expect_refused};
use crate::bench::{
    Bench, DraftExt, chain_of, delayed, draft, job_draft, key, keyless, lane, lane_change, parked, passed,
};

/// Design 3, ids: from 1, strictly growing, in the order of the call.
pub async fn ids_grow_from_one_in_order(bench: &Bench) {
    let place = bench.place().await;
    let first = bench.send(&place, vec![draft("a", "1"), draft("b", "2"), keyless("3")]).await;
    let ids: Vec<u64> = first.iter().map(|receipt| chain_of(receipt).0.0).collect();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(bench.send_one(&place, draft("a", "4")).await, EventId(4));
    assert_eq!(bench.shard_info(place.shard).await.head, EventId(4));
}

/// Promise chain: prev is the lane's event before, seq counts the lane from 1.
pub async fn each_lane_has_its_own_chain(bench: &Bench) {
    let place = bench.place().await;
    let drafts = vec![draft("a", "1"), draft("b", "1"), draft("a", "2"), draft("a", "3"), draft("b", "2")];
    let receipts = bench.send(&place, drafts).await;
    let chain: Vec<_> = receipts.iter().map(chain_of).collect();
    let expected: [(u64, Option<u64>, u64); 5] =
        [(1, None, 1), (2, None, 1), (3, Some(1), 2), (4, Some(3), 3), (5, Some(2), 2)];
    let expected: Vec<_> =
        expected.iter().map(|(id, prev, seq)| (EventId(*id), prev.map(EventId), Some(Seq(*seq)))).collect();
    assert_eq!(chain, expected);
    let stored: Vec<_> =
        bench.events(place.shard).await.iter().map(|event| (event.id, event.prev, event.seq)).collect();
    assert_eq!(stored, expected, "what is stored is what was answered");
    let tail = bench.tail(place.shard, &key("a")).await.expect("the lane has events");
    assert_eq!((tail.id, tail.seq), (EventId(4), Seq(3)));
}

/// Contract 3.4: a keyless event is a lane of its own, without prev, seq, tail or object.
pub async fn a_keyless_event_has_no_chain(bench: &Bench) {
    let place = bench.place().await;
    for receipt in bench.send(&place, vec![keyless("1"), keyless("2")]).await {
        let (_, prev, seq) = chain_of(&receipt);
        assert_eq!((prev, seq), (None, None));
    }
    assert!(bench.snapshot(place.shard).await.tails.is_empty());
    let mut append = bench.append_to(&place, vec![keyless("3")]);
    append.object = Some(ObjectWrite { expect: None, value: Some(Bytes::from_static(b"x")) });
    expect_refused!(bench.store().append(append).await);
    expect_refused!(bench.try_send(&place, vec![keyless("4").after(None)]).await);
    assert_eq!(bench.events(place.shard).await.len(), 2);
}

/// Contract 2, event: everything the producer gave is stored unchanged.
pub async fn an_event_keeps_what_it_was_given(bench: &Bench) {
    let place = bench.place().await;
    let given = Draft {
        kind: Kind::new("order.created").expect("short"),
        data: Bytes::from(vec![0u8, 255, 10, 13]),
        headers: Headers::new([("trace", "00-ab"), ("empty", ""), ("trace", "twice")]).expect("few"),
        generation: Some(7),
        incarnation: 3,
        delete: true,
        priority: 9,
        ..draft("a", "")
    };
    let id = bench.send_one(&place, given.clone()).await;
    let event = bench.event(place.shard, id).await;
    assert_eq!((event.key, event.kind, event.data), (given.key, given.kind, given.data));
    assert_eq!((event.headers, event.priority), (given.headers, 9));
    assert_eq!((event.generation, event.incarnation, event.delete), (Some(7), 3, true));
    assert_eq!((event.expires_at, event.hold_until, event.job), (None, None, None));
}

/// Contract 3.17: an event's time is the store's, and log time never goes back when the wall clock does.
pub async fn log_time_never_goes_back(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let start = bench.now();
    let first = bench.send_one(&place, draft("a", "1")).await;
    bench.advance(Duration::from_secs(5));
    let second = bench.send_one(&place, draft("a", "2")).await;
    bench.jump_to(start.before(Duration::from_secs(3_600)));
    let third = bench.send_one(&place, draft("a", "3")).await;
    let mut times = Vec::new();
    for id in [first, second, third] {
        times.push(bench.event(place.shard, id).await.time);
    }
    let later = start.after(Duration::from_secs(5));
    assert_eq!(times, [start, later, later]);
    assert_eq!(bench.shard_info(place.shard).await.time, later);
}

/// Design 3: time to live counts from joining the lane.
pub async fn time_to_live_counts_from_joining(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let id = bench.send_one(&place, Draft { ttl: Some(Duration::from_secs(30)), ..draft("a", "1") }).await;
    let event = bench.event(place.shard, id).await;
    assert_eq!(event.expires_at, Some(event.time.after(Duration::from_secs(30))));
    let forever = bench.send_one(&place, Draft { ttl: Some(Duration::MAX), ..draft("a", "2") }).await;
    assert!(bench.event(place.shard, forever).await.expires_at.is_some(), "a far future does not overflow");
}

/// Promise honesty: an append answers how durable it is, and that is what the store says of itself.
pub async fn an_append_says_how_durable_it_is(bench: &Bench) {
    let place = bench.place().await;
    let appended = bench.try_send(&place, vec![draft("a", "1")]).await.expect("acceptable");
    assert_eq!(appended.durability, bench.capabilities().durability);
    assert_eq!(appended.object_version, None);
}

/// Invariant C1: an append has 1 to 1,000 drafts.
pub async fn the_number_of_drafts_is_bounded(bench: &Bench) {
    let place = bench.place().await;
    expect_refused!(bench.try_send(&place, Vec::new()).await);
    let many = |count: usize| vec![keyless("x"); count];
    expect_refused!(bench.try_send(&place, many(limits::EVENTS_PER_APPEND_MAX + 1)).await);
    assert_eq!(bench.shard_info(place.shard).await.head, EventId(0));
    let receipts = bench.send(&place, many(limits::EVENTS_PER_APPEND_MAX)).await;
    assert_eq!(receipts.len(), limits::EVENTS_PER_APPEND_MAX);
}

/// Invariant C1: payloads, dedup ids, objects and whole calls have a largest size, which itself is accepted.
pub async fn sizes_over_the_limit_are_refused(bench: &Bench) {
    let place = bench.place().await;
    let data = |bytes: usize| Draft { data: Bytes::from(vec![b'x'; bytes]), ..draft("a", "") };
    expect_refused!(bench.try_send(&place, vec![data(limits::DATA_BYTES_MAX + 1)]).await);
    let named = |bytes: usize| draft("a", "x").dedup(&"d".repeat(bytes), 1);
    expect_refused!(bench.try_send(&place, vec![named(limits::DEDUP_ID_BYTES_MAX + 1)]).await);
    expect_refused!(bench.try_send(&place, vec![named(0)]).await);
    let whole = vec![data(limits::DATA_BYTES_MAX); limits::APPEND_BYTES_MAX / limits::DATA_BYTES_MAX + 1];
    expect_refused!(bench.try_send(&place, whole).await);
    let object = |bytes: usize| {
        let mut append = bench.append_to(&place, vec![draft("a", "x")]);
        append.object = Some(ObjectWrite { expect: None, value: Some(Bytes::from(vec![b'o'; bytes])) });
        append
    };
    expect_refused!(bench.store().append(object(limits::VALUE_BYTES_MAX + 1)).await);
    assert_eq!(bench.shard_info(place.shard).await.head, EventId(0), "a refusal writes nothing");
    bench.send_one(&place, data(limits::DATA_BYTES_MAX)).await;
    bench.send_one(&place, named(limits::DEDUP_ID_BYTES_MAX)).await;
    bench.store().append(object(limits::VALUE_BYTES_MAX)).await.expect("the limit itself is fine");
}

/// Contract 1.10: delays have a longest length, and `expect_prev` with a delay is refused.
pub async fn delays_are_checked(bench: &Bench) {
    let place = bench.place().await;
    let over = Duration::from_secs(1);
    expect_refused!(bench.try_send(&place, vec![delayed("a", "x", limits::DELAY_MAX + over)]).await);
    let hold = |by: Duration| Draft {
        delay: Some(Delay { until: StartAfter::Delay(by), mode: DelayMode::Hold }),
        ..draft("a", "x")
    };
    expect_refused!(bench.try_send(&place, vec![hold(limits::HOLD_MAX + over)]).await);
    expect_refused!(bench.try_send(&place, vec![delayed("a", "x", over).after(None)]).await);
    assert_eq!(bench.shard_info(place.shard).await.scheduled, 0);
    bench.send(&place, vec![delayed("a", "x", limits::DELAY_MAX), hold(limits::HOLD_MAX)]).await;
}

/// Contract 1.10: `hold` takes its place in the lane now and says until when the lane waits.
pub async fn a_held_event_joins_its_lane_at_once(bench: &Bench) {
    let place = bench.place().await;
    let delay = Delay { until: StartAfter::Delay(Duration::from_secs(60)), mode: DelayMode::Hold };
    let held = bench.send_one(&place, Draft { delay: Some(delay), ..draft("a", "held") }).await;
    let next = bench.send(&place, vec![draft("a", "next")]).await;
    assert_eq!(chain_of(&next[0]).1, Some(held));
    let event = bench.event(place.shard, held).await;
    assert!(matches!(event.hold_until, Some(Due::Steady(_))), "{:?}", event.hold_until);
    assert!(bench.snapshot(place.shard).await.scheduled.is_empty());
}

/// Contract 2, append: no such stream or partition.
pub async fn an_unknown_shard_is_not_found(bench: &Bench) {
    let place = bench.place().await;
    for shard in [
        Shard { partition: Partition(1), ..place.shard },
        Shard { stream: StreamId(place.stream.id.0 + 100), ..place.shard },
    ] {
        let mut append = bench.append_to(&place, vec![keyless("x")]);
        append.shard = shard;
        expect_error!(bench.store().append(append).await, StoreError::NotFound { .. });
    }
}

/// Contract 1.3: an append carries the layout it was routed by.
pub async fn another_layout_is_moved(bench: &Bench) {
    let place = bench.place().await;
    let mut append = bench.append_to(&place, vec![draft("a", "x")]);
    append.layout = place.stream.layout + 1;
    expect_error!(
        bench.store().append(append).await,
        StoreError::Moved { shard, layout } if shard == place.shard && layout == place.stream.layout
    );
    assert!(bench.events(place.shard).await.is_empty());
}

/// Contract 1.4: an append carries the incarnation that its connection learned.
pub async fn another_incarnation_must_adopt(bench: &Bench) {
    let place = bench.place().await;
    let mut append = bench.append_to(&place, vec![draft("a", "x")]);
    append.incarnation = Incarnation(append.incarnation.0 ^ 1);
    expect_error!(
        bench.store().append(append).await,
        StoreError::Adopt { shard, current, .. } if shard == place.shard && current == bench.incarnation()
    );
    assert!(bench.events(place.shard).await.is_empty());
}

/// Design 3: optimistic producers append only behind the event they know; inside one call too.
pub async fn expect_prev_compares_with_the_lanes_last_event(bench: &Bench) {
    let place = bench.place().await;
    let first = bench.send_one(&place, draft("a", "1").after(None)).await;
    let answer = bench.try_send(&place, vec![draft("a", "x").after(None)]).await;
    expect_conflict!(answer, ConflictReason::Prev { actual: Some(id) } if id == first);
    let second = bench.send_one(&place, draft("a", "2").after(Some(first))).await;
    let answer = bench.try_send(&place, vec![draft("a", "x").after(Some(first))]).await;
    expect_conflict!(answer, ConflictReason::Prev { actual: Some(id) } if id == second);
    let answer = bench.try_send(&place, vec![draft("b", "x").after(Some(second))]).await;
    expect_conflict!(answer, ConflictReason::Prev { actual: None });
    let chained = vec![draft("a", "3"), draft("a", "4").after(Some(EventId(second.0 + 1)))];
    assert_eq!(bench.send(&place, chained).await.len(), 2);
}

/// Contract 2, append: a conflict of one draft writes nothing of the call and names the draft.
pub async fn one_conflict_writes_nothing_of_the_call(bench: &Bench) {
    let place = bench.place().await;
    bench.send_one(&place, draft("a", "1").dedup("used", 1)).await;
    let before = bench.snapshot(place.shard).await;
    let bad = [draft("a", "x").after(None), draft("a", "x").dedup("used", 2)];
    for draft_bad in bad {
        let drafts = vec![
            draft("b", "good").dedup("fresh", 5),
            delayed("c", "scheduled", Duration::from_secs(5)),
            Draft { priority: 3, ..keyless("urgent") },
            job_draft("d", "job", place.seat.processor),
            draft_bad,
        ];
        let answer = bench.try_send(&place, drafts).await;
        expect_error!(answer, StoreError::Conflict(conflict) if conflict.index == Some(4));
        assert_eq!(bench.snapshot(place.shard).await, before);
    }
    bench.send_one(&place, draft("b", "good").dedup("fresh", 6)).await;
}

/// Contract 1.13: the order of the checks is incarnation, layout, origin, dedup, expect_prev, object, generation.
pub async fn checks_are_made_in_the_stated_order(bench: &Bench) {
    let place = bench.place_with(StreamSettings { mode: Mode::Latest, ..Bench::settings() }).await;
    let source = Source::Named(Bytes::from_static(b"input"));
    let origin = |term: u64| Origin { source: source.clone(), term: Term(term) };
    let first = draft("a", "first").generation(1, Some(5)).dedup("d", 1).at_origin(10);
    bench.store().append(bench.append_from(&place, origin(4), vec![first])).await.expect("acceptable");
    // Everything is wrong with this call; each step mends the first fault and meets the next.
    let bad = draft("a", "bad").generation(1, Some(2)).dedup("d", 2).after(None).at_origin(10);
    let mut append = bench.append_from(&place, origin(3), vec![bad]);
    append.incarnation = Incarnation(append.incarnation.0 ^ 1);
    append.layout += 1;
    append.object = Some(ObjectWrite { expect: Some(9), value: None });
    expect_error!(bench.store().append(append.clone()).await, StoreError::Adopt { .. });
    append.incarnation = bench.incarnation();
    expect_error!(bench.store().append(append.clone()).await, StoreError::Moved { .. });
    append.layout = place.stream.layout;
    expect_conflict!(
        bench.store().append(append.clone()).await,
        ConflictReason::OriginTerm { actual } if actual == Term(4)
    );
    append.origin = Some(origin(4));
    let answer = bench.store().append(append.clone()).await.expect("a repeat by number is an answer");
    assert_eq!(answer.receipts, [Receipt::Duplicate { first: None }]);
    append.drafts[0].origin_seq = Some(11);
    expect_conflict!(bench.store().append(append.clone()).await, ConflictReason::DedupBody { .. });
    append.drafts[0].dedup = None;
    expect_conflict!(bench.store().append(append.clone()).await, ConflictReason::Prev { .. });
    append.drafts[0].expect_prev = None;
    expect_conflict!(bench.store().append(append.clone()).await, ConflictReason::ObjectVersion { actual: 0 });
    append.object = None;
    let answer = bench.store().append(append).await.expect("stale is an answer");
    assert!(matches!(answer.receipts[..], [Receipt::Stale { generation: 5, .. }]), "{answer:?}");
    assert_eq!(bench.shard_info(place.shard).await.head, EventId(1));
}

/// Contract 1.13: a repeat is told before `expect_prev` is looked at, or no optimistic producer could repeat.
pub async fn a_repeat_is_told_before_expect_prev(bench: &Bench) {
    let place = bench.place().await;
    let given = draft("a", "1").after(None).dedup("d", 1);
    let first = bench.send(&place, vec![given.clone()]).await.remove(0);
    let again = bench.send(&place, vec![given]).await;
    assert_eq!(again, [Receipt::Duplicate { first: Some(Box::new(first)) }]);
}

/// Design 3: a stream that is full refuses appends, whole calls at a time, and says how much waits.
pub async fn a_full_stream_refuses_appends(bench: &Bench) {
    let settings = StreamSettings { partitions: 2, max_pending: Some(5), ..StreamSettings::default() };
    let place = bench.place_with(settings).await;
    // Each of the two partitions has room for 3: half of 5, rounded up.
    let ids = bench.fill(&place, "a", 2).await;
    let answer = bench.try_send(&place, vec![draft("a", "x"), draft("b", "y")]).await;
    expect_error!(answer, StoreError::Full(FullReason::Pending { limit: 3, .. }));
    assert_eq!(bench.shard_info(place.shard).await.head, ids[1], "a part of a call is never written");
    let third = draft("a", "3").dedup("third", 1);
    bench.send_one(&place, third.clone()).await;
    let answer = bench.try_send(&place, vec![draft("c", "x")]).await;
    expect_error!(answer, StoreError::Full(FullReason::Pending { pending: 3, limit: 3 }));
    let again = bench.send(&place, vec![third]).await;
    assert!(matches!(again[..], [Receipt::Duplicate { .. }]), "a repeat needs no room: {again:?}");
    bench.pass(place.seat, &ids[..1]).await;
    bench.send_one(&place, draft("c", "now")).await;
}

/// Design 3: what one call may not have even in an empty partition is refused for good; nobody can wait for room.
pub async fn a_call_beyond_a_partitions_part_is_refused_for_good(bench: &Bench) {
    let settings = StreamSettings { partitions: 2, max_pending: Some(4), ..StreamSettings::default() };
    let place = bench.place_with(settings).await;
    let three = || vec![draft("a", "1"), draft("a", "2"), draft("a", "3")];
    let refused = bench.try_send(&place, three()).await.expect_err("more than the part of a partition");
    let StoreError::Refused(refusal) = &refused else { panic!("{refused:?}") };
    let text = refusal.to_string();
    assert!(text.contains(" is 3") && text.contains("at most 2"), "both numbers are named: {text}");
    bench.send(&place, three().split_off(1)).await;
}

/// Design 3: an event in a siding waits, although the floor is above it.
pub async fn depth_counts_what_waits_in_sidings(bench: &Bench) {
    let place = bench.place_with(StreamSettings { max_pending: Some(6), ..Bench::settings() }).await;
    let mut ids = bench.fill(&place, "a", 1).await;
    ids.extend(bench.fill(&place, "c", 2).await);
    ids.extend(bench.fill(&place, "a", 2).await);
    let fence = bench.seize(place.seat).await.progress.fence;
    // The two in the middle are done; the second in the siding is above the floor and counts once.
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[ids[0], ids[1], ids[2], ids[4]]);
    let side = vec![ids[0], ids[4]];
    commit.lanes = vec![LaneChange { side, ..lane_change(parked(lane("a"), ids[0])) }];
    let fence = bench.commit(commit).await.fence;
    bench.fill(&place, "b", 3).await;
    let answer = bench.try_send(&place, vec![draft("b", "x")]).await;
    expect_error!(answer, StoreError::Full(FullReason::Pending { pending: 6, limit: 6 }));
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids[3..4]);
    let unside = vec![ids[0], ids[4]];
    commit.lanes = vec![LaneChange { lane: lane("a"), record: None, side: Vec::new(), unside }];
    bench.commit(commit).await;
    bench.send(&place, vec![draft("b", "x"), draft("b", "y"), draft("b", "z")]).await;
    expect_error!(bench.try_send(&place, vec![draft("b", "x")]).await, StoreError::Full(_));
}

/// Contract 1.1: emits bypass depth limits, and so do drafts that were accepted before; other origins do not.
pub async fn emits_and_promotions_bypass_the_depth_limit(bench: &Bench) {
    let place = bench.place_with(StreamSettings { max_pending: Some(1), ..Bench::settings() }).await;
    bench.send(&place, vec![delayed("a", "later", Duration::ZERO)]).await;
    bench.send_one(&place, draft("a", "1")).await;
    let named = Origin { source: Source::Named(Bytes::from_static(b"input")), term: Term(1) };
    let append = bench.append_from(&place, named, vec![draft("a", "x").at_origin(1)]);
    expect_error!(bench.store().append(append).await, StoreError::Full(FullReason::Pending { .. }));
    let source =
        Source::Outbox { shard: place.shard, processor: place.seat.processor, incarnation: 1, adoptions: 0 };
    let origin = Origin { source, term: Term(1) };
    let append = bench.append_from(&place, origin, vec![draft("a", "emitted").at_origin(1)]);
    bench.store().append(append).await.expect("an emit is never refused for depth");
    let promote = laneway_core::store::Promote { shard: place.shard, limit: 10 };
    assert_eq!(bench.store().promote(promote).await.expect("a shard that exists").moved, 1);
    assert_eq!(bench.events(place.shard).await.len(), 3);
}

/// Design 3: without a processor everything since the trim waits; with several, what the slowest has not passed.
pub async fn depth_counts_for_the_slowest_processor(bench: &Bench) {
    let settings = StreamSettings { max_pending: Some(2), ..Bench::settings() };
    let place = bench.place_with(settings.clone()).await;
    bench.processor(place.stream.id, laneway_core::StartAt::Beginning).await;
    let ids = bench.fill(&place, "a", 2).await;
    bench.pass(place.seat, &ids).await;
    expect_error!(bench.try_send(&place, vec![draft("a", "x")]).await, StoreError::Full(_));
    let bare = bench.stream(settings).await;
    let bare_place = crate::bench::Place { shard: bare.shard(Partition(0)), stream: bare, ..place.clone() };
    bench.fill(&bare_place, "a", 2).await;
    expect_error!(bench.try_send(&bare_place, vec![draft("a", "x")]).await, StoreError::Full(_));
}

/// Contract 3.6: a priority above 0 enters the shard's urgent list; 0 does not.
pub async fn urgent_events_are_indexed(bench: &Bench) {
    let place = bench.place().await;
    let drafts = vec![
        draft("a", "plain"),
        Draft { priority: 5, ..draft("a", "urgent") },
        Draft { priority: 255, ..keyless("most") },
    ];
    bench.send(&place, drafts).await;
    assert_eq!(bench.snapshot(place.shard).await.urgent, [(EventId(2), 5), (EventId(3), 255)]);
}

/// Contract 1.11: a job's id is made in the append step and carries its place.
pub async fn a_job_id_carries_its_place(bench: &Bench) {
    let place = bench.place().await;
    bench.send_one(&place, draft("a", "plain")).await;
    let receipts = bench.send(&place, vec![job_draft("a", "job", place.seat.processor)]).await;
    let [Receipt::New { id, job: Some(job), .. }] = receipts[..] else {
        panic!("a job has an id: {receipts:?}")
    };
    assert_eq!((job.shard(), job.number()), (place.shard, laneway_core::JobNumber::Event(id)));
    let mark = bench.event(place.shard, id).await.job.expect("the event carries the job");
    assert_eq!((mark.id, mark.responder, mark.keep), (job, place.seat.processor, Duration::from_secs(3_600)));
}

/// Contract 1.13: a dedup window of nothing and one without end are both accepted.
pub async fn extreme_dedup_windows_are_accepted(bench: &Bench) {
    let place = bench.place().await;
    for (index, window) in [Duration::ZERO, Duration::MAX].into_iter().enumerate() {
        let dedup = Dedup { id: Bytes::from(format!("id-{index}")), body: 1, window };
        bench.send_one(&place, Draft { dedup: Some(dedup), ..draft("a", "x") }).await;
    }
}
