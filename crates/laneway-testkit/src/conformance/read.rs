//! Cases about `read`: pages of one shard, in order.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Entry, Page, Read, ReadFrom, StateWrite};
use laneway_core::{Draft, EventId, Mode, Partition, Shard, StoreError, StreamSettings, limits};

use super::expect::expect_error;
use crate::bench::{Bench, DraftExt, Place, delayed, draft, job_draft, key, keyless, passed, read_of};

fn ids(page: &Page) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.id().0).collect()
}

async fn read(bench: &Bench, read: Read) -> Page {
    bench.store().read(read).await.expect("a shard that exists")
}

/// Contract 2, read: events come in order after the id given, with the head.
pub async fn events_come_in_order_after_an_id(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 3).await;
    bench.fill(&place, "b", 2).await;
    for (after, expected) in [(0, vec![1, 2, 3, 4, 5]), (3, vec![4, 5]), (5, vec![]), (900, vec![])] {
        let page = read(bench, read_of(place.shard, ReadFrom::After(EventId(after)))).await;
        assert_eq!((ids(&page), page.head), (expected, EventId(5)), "after {after}");
    }
}

/// Contract 2, read: an empty shard has an empty page and head 0.
pub async fn an_empty_shard_has_an_empty_page(bench: &Bench) {
    let place = bench.place().await;
    let page = read(bench, read_of(place.shard, ReadFrom::After(EventId(0)))).await;
    let empty =
        Page { entries: Vec::new(), head: EventId(0), request_no: 0, next_due: None, states: Vec::new() };
    assert_eq!(page, empty);
}

/// Contract 2, read: a page ends at its limit.
pub async fn a_page_ends_at_its_limit(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 5).await;
    let limited = Read { limit: 2, ..read_of(place.shard, ReadFrom::After(EventId(1))) };
    let page = read(bench, limited).await;
    assert_eq!((ids(&page), page.head), (vec![2, 3], EventId(5)));
}

/// Contract 2, read: a page ends at its bytes, but holds one event at least, or a reader would stand still.
pub async fn a_page_ends_at_its_bytes_but_has_one_event(bench: &Bench) {
    let place = bench.place().await;
    let big = "x".repeat(10_000);
    bench.send(&place, vec![draft("a", &big); 5]).await;
    let with = |bytes: usize| Read { bytes, ..read_of(place.shard, ReadFrom::After(EventId(0))) };
    for bytes in [0, 1, 9_999] {
        assert_eq!(ids(&read(bench, with(bytes)).await), [1], "{bytes} bytes");
    }
    let some = ids(&read(bench, with(25_000)).await).len();
    assert!((1..=2).contains(&some), "25,000 bytes hold at most two events of 10,000: {some}");
    assert_eq!(ids(&read(bench, with(1 << 20)).await), [1, 2, 3, 4, 5]);
}

/// Invariant C1: a page is bounded by the store whatever is asked for; all pages together hold every event once.
pub async fn a_page_is_bounded_by_the_store(bench: &Bench) {
    let place = bench.place().await;
    for _ in 0..11 {
        bench.send(&place, vec![keyless(""); limits::EVENTS_PER_APPEND_MAX]).await;
    }
    let unbounded =
        Read { limit: usize::MAX, bytes: usize::MAX, ..read_of(place.shard, ReadFrom::After(EventId(0))) };
    let page = read(bench, unbounded).await;
    assert!(!page.entries.is_empty() && page.entries.len() <= limits::PAGE_MAX, "{}", page.entries.len());
    let all: Vec<u64> = bench.events(place.shard).await.iter().map(|event| event.id.0).collect();
    assert_eq!(all, (1..=11_000).collect::<Vec<_>>());
}

/// Contract 2, read: chosen ids come ascending; ids that never were are left out.
pub async fn chosen_ids_are_read(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 5).await;
    let chosen = [2, 4, 5, 77].map(EventId).to_vec();
    let page = read(bench, read_of(place.shard, ReadFrom::Ids(chosen))).await;
    assert_eq!((ids(&page), page.head), (vec![2, 4, 5], EventId(5)));
    let none = read(bench, read_of(place.shard, ReadFrom::Ids(Vec::new()))).await;
    assert!(none.entries.is_empty());
}

/// Contract 3.8: reading below the trim says from where to go on; at the trim all is well.
pub async fn reading_below_the_trim_says_where_to_go_on(bench: &Bench) {
    let place = bench.place_with(StreamSettings { keep: Duration::ZERO, ..Bench::settings() }).await;
    let all = bench.fill(&place, "a", 5).await;
    bench.pass(place.seat, &all[..3]).await;
    bench.trim(place.shard).await;
    for from in
        [ReadFrom::After(EventId(0)), ReadFrom::After(EventId(2)), ReadFrom::Ids(vec![all[0], all[4]])]
    {
        let answer = bench.store().read(read_of(place.shard, from)).await;
        expect_error!(
            answer,
            StoreError::Trimmed { shard, first } if shard == place.shard && first == EventId(4)
        );
    }
    let page = read(bench, read_of(place.shard, ReadFrom::After(EventId(3)))).await;
    assert_eq!(ids(&page), [4, 5]);
}

/// Contract 1.14: in latest streams an event that is not its lane's newest comes without payload, naming the
/// newest and the job that must be told.
pub async fn superseded_events_come_without_payload(bench: &Bench) {
    let place = bench.place_with(StreamSettings { mode: Mode::Latest, ..Bench::settings() }).await;
    let job = job_draft("a", "old", place.seat.processor).generation(0, Some(1));
    let drafts = vec![
        job,
        draft("b", "only").generation(0, Some(1)),
        draft("a", "mid").generation(0, Some(2)),
        draft("a", "new").generation(0, Some(3)),
    ];
    bench.send(&place, drafts).await;
    let page = read(bench, read_of(place.shard, ReadFrom::After(EventId(0)))).await;
    assert_eq!(ids(&page), [1, 2, 3, 4]);
    for (index, has_job) in [(0, true), (2, false)] {
        let Entry::Superseded { winner, key: lane, job, .. } = &page.entries[index] else {
            panic!("not the newest: {:?}", page.entries[index]);
        };
        assert_eq!((*winner, lane, job.is_some()), (EventId(4), &key("a"), has_job));
    }
    for index in [1, 3] {
        assert!(matches!(page.entries[index], Entry::Event(_)), "{:?}", page.entries[index]);
    }
    let chosen = read(bench, read_of(place.shard, ReadFrom::Ids(vec![EventId(1)]))).await;
    assert!(matches!(chosen.entries[..], [Entry::Superseded { winner: EventId(4), .. }]), "{chosen:?}");
}

/// Contract 1.14: queue streams never hide an event.
pub async fn queue_streams_show_every_event(bench: &Bench) {
    let place = bench.place().await;
    bench
        .send(&place, vec![draft("a", "1").generation(0, Some(1)), draft("a", "2").generation(0, Some(2))])
        .await;
    let page = read(bench, read_of(place.shard, ReadFrom::After(EventId(0)))).await;
    assert!(page.entries.iter().all(|entry| matches!(entry, Entry::Event(_))));
}

/// Contract 2, read: a page tells how long until a scheduled draft is due; zero when one is.
pub async fn a_page_tells_when_the_next_draft_is_due(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
    bench.send(&place, vec![delayed("a", "1", 2 * minute), delayed("b", "2", minute)]).await;
    let next = async || read(bench, read_of(place.shard, ReadFrom::After(EventId(0)))).await.next_due;
    assert_eq!(next().await, Some(minute));
    bench.advance(minute - second);
    assert_eq!(next().await, Some(second));
    bench.advance(minute);
    assert_eq!(next().await, Some(Duration::ZERO));
}

/// Contract 2, read: a page tells the processor's highest request number, so that its owner looks for requests.
pub async fn a_page_tells_the_request_number(bench: &Bench) {
    let place = bench.place().await;
    for _ in 0..2 {
        let op = laneway_core::store::RequestOp::Resume { lane: None };
        let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
        bench.store().request(request).await.expect("a seat that exists");
    }
    let asked =
        Read { processor: Some(place.seat.processor), ..read_of(place.shard, ReadFrom::After(EventId(0))) };
    assert_eq!(read(bench, asked).await.request_no, 2);
}

/// Contract 2, read: the states of the page's keys come along when they are asked for.
pub async fn a_page_brings_the_states_of_its_keys(bench: &Bench) {
    let place = bench.place().await;
    let events = bench.fill(&place, "a", 2).await;
    bench.fill(&place, "b", 1).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&events[..1]);
    for lane in ["a", "unread"] {
        commit
            .states
            .push(StateWrite { key: key(lane), value: Some(Bytes::from(format!("state of {lane}"))) });
    }
    bench.commit(commit).await;
    let with = |states: bool| Read {
        processor: Some(place.seat.processor),
        states,
        ..read_of(place.shard, ReadFrom::After(EventId(1)))
    };
    assert!(read(bench, with(false)).await.states.is_empty());
    let states = read(bench, with(true)).await.states;
    assert_eq!(states.len(), 1, "{states:?}");
    assert_eq!(
        (&states[0].0, states[0].1.version, &states[0].1.bytes[..]),
        (&key("a"), 1, &b"state of a"[..])
    );
}

/// Contract 2, read: a page ends where its states are more than its bytes, but holds one event at least.
pub async fn a_page_ends_where_its_states_get_too_large(bench: &Bench) {
    let place = bench.place().await;
    let keys = ["a", "b", "a", "c"];
    bench.send(&place, keys.map(|key| draft(key, "x")).to_vec()).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    let large = Bytes::from(vec![7; 10_000]);
    commit.states =
        ["a", "b", "c"].map(|name| StateWrite { key: key(name), value: Some(large.clone()) }).to_vec();
    bench.commit(commit).await;
    let with = |bytes: usize, after: u64| Read {
        bytes,
        processor: Some(place.seat.processor),
        states: true,
        ..read_of(place.shard, ReadFrom::After(EventId(after)))
    };
    for (bytes, after, expected) in [
        (1, 0, vec![1]),
        (10_000, 0, vec![1]),
        (20_000, 0, vec![1, 2, 3]),
        (29_999, 0, vec![1, 2, 3]),
        (30_000, 0, vec![1, 2, 3, 4]),
        (10_000, 3, vec![4]),
    ] {
        let page = read(bench, with(bytes, after)).await;
        let mut with_states: Vec<_> = expected.iter().map(|id: &u64| keys[*id as usize - 1]).collect();
        with_states.sort_unstable();
        with_states.dedup();
        let states: Vec<_> = page.states.iter().map(|(key, _)| key.clone()).collect();
        assert_eq!(ids(&page), expected, "{bytes} bytes after {after}");
        assert_eq!(states, with_states.into_iter().map(key).collect::<Vec<_>>());
    }
}

/// Contract 2, event: an event reads the same every time.
pub async fn an_event_never_changes(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 2).await;
    let before = bench.events(place.shard).await;
    bench.send(&place, vec![Draft { priority: 3, ..draft("a", "next") }]).await;
    bench.pass(place.seat, &ids).await;
    assert_eq!(bench.events(place.shard).await[..2], before[..]);
}

/// Contract 2, read: no such shard.
pub async fn reading_an_unknown_shard_is_not_found(bench: &Bench) {
    let place: Place = bench.place().await;
    let shard = Shard { partition: Partition(5), ..place.shard };
    let answer = bench.try_read(shard, ReadFrom::After(EventId(0))).await;
    expect_error!(answer, StoreError::NotFound { .. });
}
