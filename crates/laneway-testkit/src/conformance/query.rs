//! Cases about `query`: each list, its order, its cursor and its limit.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Counts, DeadLetter, Query, StateWrite};
use laneway_core::{
    Draft, EventId, Key, Partition, ProcessorId, Seat, Seq, Shard, StoreError, Terminal, Timestamp,
};

use super::expect::{expect_error, rows};
use crate::bench::{
    Bench, Place, delayed, draft, emit, ending, inline, job_draft, job_end, key, keyless, lane, lane_change,
    parked, passed,
};

/// A place where every list has five rows.
async fn crowded(bench: &Bench) -> (Place, Vec<EventId>) {
    let place = bench.place().await;
    let drafts = ["e", "b", "d", "a", "c"];
    let drafts = drafts.map(|lane| Draft { priority: 1, ..job_draft(lane, lane, place.seat.processor) });
    let ids: Vec<EventId> = (1..=5).map(EventId).collect();
    bench.send(&place, drafts.to_vec()).await;
    bench.send(&place, (0..5).map(|_| delayed("s", "later", Duration::from_secs(3_600))).collect()).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    for event in bench.events(place.shard).await {
        commit.endings.push(ending(event.id, Terminal::Failed));
        commit.jobs.push(job_end(event.id, inline("result")));
        commit.emits.push(emit(place.stream.id, "x", "emitted"));
        let key = event.key.clone().expect("they have keys");
        commit.states.push(StateWrite { key, value: Some(Bytes::from_static(b"s")) });
        commit.dead.push(DeadLetter { event, cause: Bytes::new(), attempts: 1, at: Timestamp(0) });
    }
    bench.commit(commit).await;
    (place, ids)
}

fn three_pages<T: Clone + PartialEq + std::fmt::Debug>(all: &[T], first: Vec<T>, rest: Vec<T>, none: Vec<T>) {
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!((first, rest), (all[..2].to_vec(), all[2..].to_vec()));
    assert!(none.is_empty(), "{none:?}");
}

/// Contract 2, query: lists by number or id are ascending, begin after the cursor and end at the limit.
pub async fn lists_by_id_are_paged(bench: &Bench) {
    let (place, _) = crowded(bench).await;
    let (seat, shard) = (place.seat, place.shard);
    macro_rules! check {
        ($kind:ident, $of:expr, $cursor:expr, $after:expr) => {{
            let page = async |after: u64, limit: usize| {
                rows!(bench, Query::$kind($of, $cursor(after), limit), $kind)
            };
            let all = page(0, 100).await;
            let numbers: Vec<u64> = all.iter().map($after).collect();
            assert_eq!(numbers, [1, 2, 3, 4, 5], stringify!($kind));
            three_pages(&all, page(0, 2).await, page(2, 100).await, page(5, 100).await);
        }};
    }
    check!(Dead, seat, EventId, |letter| letter.event.id.0);
    check!(Endings, seat, EventId, |ending| ending.id.0);
    check!(Outbox, seat, u64::from, |row| row.number);
    check!(Scheduled, shard, u64::from, |row| row.ticket);
    check!(Urgent, shard, EventId, |row| row.0.0);
    let page =
        async |after: u64, limit: usize| rows!(bench, Query::Ended(shard, EventId(after), limit), Ended);
    let (all, first, rest) = (page(0, 100).await, page(0, 2).await, page(2, 100).await);
    assert!(all.ends.iter().map(|end| end.id.0).eq(1..=5));
    assert_eq!((all.next, first.next, rest.next), (None, Some(EventId(2)), None), "where to go on");
    three_pages(&all.ends, first.ends, rest.ends, page(5, 100).await.ends);
}

/// Contract 2, query: lists by key are ascending by key bytes.
pub async fn lists_by_key_are_paged(bench: &Bench) {
    let (place, _) = crowded(bench).await;
    let after = |text: &str| Some(key(text));
    let states = async |after: Option<Key>, limit: usize| {
        rows!(bench, Query::States(place.seat, after, limit), States)
    };
    let all = states(None, 100).await;
    let keys: Vec<String> = all.iter().map(|(key, _)| key.to_string()).collect();
    assert_eq!(keys, ["a", "b", "c", "d", "e"]);
    three_pages(&all, states(None, 2).await, states(after("b"), 100).await, states(after("e"), 9).await);
    let tails =
        async |after: Option<Key>, limit: usize| rows!(bench, Query::Tails(place.shard, after, limit), Tails);
    let all = tails(None, 100).await;
    let found: Vec<(String, u64)> = all.iter().map(|tail| (tail.key.to_string(), tail.tail.id.0)).collect();
    assert_eq!(
        found,
        [("a", 4), ("b", 2), ("c", 5), ("d", 3), ("e", 1)].map(|(key, id)| (key.to_owned(), id))
    );
    three_pages(&all, tails(None, 2).await, tails(after("b"), 100).await, tails(after("e"), 9).await);
}

/// Design 3, keys: keys are opaque bytes; zero bytes and prefixes of each other do not mix lanes up.
pub async fn keys_are_opaque_bytes(bench: &Bench) {
    let place = bench.place().await;
    let names: Vec<Vec<u8>> = vec![
        vec![0],
        vec![0, 0],
        vec![0, 255],
        b"a".to_vec(),
        b"a\0".to_vec(),
        b"ab".to_vec(),
        vec![255; 512],
    ];
    for round in 1..=2u64 {
        for name in &names {
            let given = Draft { key: Some(Key::new(name.clone()).expect("short")), ..keyless("x") };
            bench.send_one(&place, given).await;
        }
        let tails = rows!(bench, Query::Tails(place.shard, None, 100), Tails);
        let found: Vec<Vec<u8>> = tails.iter().map(|tail| tail.key.bytes().to_vec()).collect();
        assert_eq!(found, names, "ascending by bytes");
        assert!(tails.iter().all(|tail| tail.tail.seq == Seq(round)), "{tails:?}");
    }
}

/// Contract 2, query: a lane without events is none.
pub async fn a_lane_without_events_is_none(bench: &Bench) {
    let place = bench.place().await;
    assert_eq!(bench.tail(place.shard, &key("a")).await, None);
    bench.send_one(&place, draft("a", "x")).await;
    let tail = bench.tail(place.shard, &key("a")).await.expect("it has one");
    assert_eq!((tail.id, tail.seq, tail.object), (EventId(1), Seq(1), None));
    assert_eq!(bench.tail(place.shard, &key("b")).await, None);
}

/// Contract 2, query: streams come by number, each with its processors by number.
pub async fn streams_come_with_their_processors(bench: &Bench) {
    let first = bench.place().await;
    let second = bench.place().await;
    bench.processor(first.stream.id, laneway_core::StartAt::End).await;
    let streams = bench.streams().await;
    assert_eq!(streams.iter().map(|info| info.id).collect::<Vec<_>>(), [first.stream.id, second.stream.id]);
    assert_eq!(streams.iter().map(|info| info.processors.len()).collect::<Vec<_>>(), [2, 1]);
    assert!(streams[0].processors[0].id < streams[0].processors[1].id);
}

/// Contract 2, query: counts agree with the lists.
pub async fn counts_agree_with_the_lists(bench: &Bench) {
    let (place, _) = crowded(bench).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.lanes =
        vec![lane_change(parked(lane("p"), EventId(1))), lane_change(parked(lane("q"), EventId(2)))];
    commit.revived = vec![EventId(3)];
    commit.forwarded = Some(2);
    bench.commit(commit).await;
    let op = laneway_core::store::RequestOp::Resume { lane: None };
    let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
    bench.store().request(request).await.expect("a seat that exists");
    let counts = rows!(bench, Query::Counts(place.shard), Counts);
    let seats = vec![(place.seat.processor, [2, 4, 3, 1])];
    assert_eq!(counts, Counts { scheduled: 5, seats, adoptions: 0, expired: 0, dedup_evicted: 0 });
}

/// Contract 2, query: no such shard, no such seat.
pub async fn lists_of_the_unknown_are_not_found(bench: &Bench) {
    let place = bench.place().await;
    let shard = Shard { partition: Partition(8), ..place.shard };
    let seat = Seat { processor: ProcessorId(9_999), ..place.seat };
    let queries = [
        Query::Seats(shard),
        Query::Lane(shard, key("a")),
        Query::Tails(shard, None, 1),
        Query::Ended(shard, EventId(0), 1),
        Query::Scheduled(shard, 0, 1),
        Query::Urgent(shard, EventId(0), 1),
        Query::Counts(shard),
        Query::Dead(seat, EventId(0), 1),
        Query::Endings(seat, EventId(0), 1),
        Query::Requests(seat, 0, 1),
        Query::Outbox(seat, 0, 1),
        Query::States(seat, None, 1),
    ];
    for query in queries {
        expect_error!(bench.store().query(query).await, StoreError::NotFound { .. });
    }
}
