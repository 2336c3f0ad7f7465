//! Cases about what is there after the store was closed and opened again: everything, where the capabilities
//! say `persistent`, and nothing where they do not.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{LaneChange, ObjectWrite, Promote, Receipt, StateWrite};
use laneway_core::{Draft, EventId, JobNumber, Seq, StartAt, StoreError, StreamSettings, Terminal};

use super::expect::expect_error;
use crate::bench::{
    Bench, DraftExt, Place, chain_of, delayed, draft, emit, ending, inline, job_draft, job_end, key, keyless,
    lane, lane_change, parked, passed,
};

const HOUR: Duration = Duration::from_secs(3_600);

/// A place with something in every corner.
async fn furnished(bench: &Bench) -> Place {
    let place = bench.place().await;
    bench.processor(place.stream.id, StartAt::End).await;
    let job = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    let sided = bench.send_one(&place, draft("b", "sided").dedup("d", 1)).await;
    let drafts = vec![
        Draft { priority: 3, ttl: Some(HOUR), ..keyless("urgent") },
        delayed("c", "later", HOUR),
        Draft { delay: delayed("c", "x", 2 * HOUR).delay, ..job_draft("c", "timer", place.seat.processor) },
    ];
    bench.send(&place, drafts).await;
    let mut append = bench.append_to(&place, vec![draft("a", "with object")]);
    append.object = Some(ObjectWrite { expect: Some(0), value: Some(Bytes::from_static(b"object")) });
    bench.store().append(append).await.expect("the object is new");
    let op = laneway_core::store::RequestOp::Resume { lane: None };
    let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
    bench.store().request(request).await.expect("a seat that exists");
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[job, sided, EventId(4)]);
    commit.endings = vec![ending(EventId(4), Terminal::Failed)];
    commit.lanes = vec![LaneChange { side: vec![sided], ..lane_change(parked(lane("b"), sided)) }];
    commit.states = vec![StateWrite { key: key("a"), value: Some(Bytes::from_static(b"state")) }];
    commit.emits = vec![emit(place.stream.id, "x", "emitted")];
    commit.jobs = vec![job_end(job, inline("result"))];
    bench.commit(commit).await;
    place
}

/// Capability persistent: a reopened store has everything it had, or nothing at all.
pub async fn a_reopened_store_has_everything_or_nothing(bench: &Bench) {
    let place = furnished(bench).await;
    let (streams, before) = (bench.streams().await, bench.snapshot(place.shard).await);
    bench.documents().put("nodes", None, Bytes::from_static(b"x")).await.expect("it does not exist");
    let persistent = bench.capabilities().persistent;
    bench.reopen().await;
    if persistent {
        assert_eq!(bench.streams().await, streams);
        assert_eq!(bench.snapshot(place.shard).await, before);
        assert_eq!(bench.documents().get("nodes").await.expect("readable").expect("there").version, 1);
    } else {
        assert!(bench.streams().await.is_empty());
        assert_eq!(bench.documents().get("nodes").await.expect("readable"), None);
        let answer = bench.try_send(&place, vec![draft("a", "x")]).await;
        expect_error!(answer, StoreError::NotFound { .. });
    }
}

/// Capability persistent: numbers go on after reopening: ids, chain, tickets, requests, stream numbers.
pub async fn numbers_go_on_after_reopening(bench: &Bench) {
    if !bench.capabilities().persistent {
        let first = bench.place().await;
        bench.reopen().await;
        let second = bench.place().await;
        assert_eq!(bench.send_one(&second, draft("a", "1")).await, EventId(1));
        assert_eq!(bench.streams().await.len(), 1, "{first:?} is gone");
        return;
    }
    let place = furnished(bench).await;
    let before = bench.snapshot(place.shard).await;
    let term = bench.seat_view(place.seat).await.progress.fence.term;
    bench.reopen().await;
    let receipts = bench.send(&place, vec![draft("a", "next"), delayed("c", "x", HOUR)]).await;
    assert_eq!(chain_of(&receipts[0]), (before.info.head.next(), Some(EventId(4)), Some(Seq(3))));
    assert!(matches!(receipts[1], Receipt::Scheduled { ticket: 3, .. }), "{receipts:?}");
    assert!(bench.seize(place.seat).await.progress.fence.term > term);
    let stream = bench.stream(Bench::settings()).await;
    assert!(stream.id > place.stream.id);
}

/// Promise nothing lost: what was remembered for repeats is remembered after reopening.
pub async fn repeats_are_told_after_reopening(bench: &Bench) {
    if !bench.capabilities().persistent {
        return;
    }
    let place = bench.place().await;
    let given = draft("a", "x").dedup("d", 1);
    let first = bench.send(&place, vec![given.clone()]).await.remove(0);
    let seize = bench.seize_of(place.seat, None);
    let resume = bench.store().seize(seize.clone()).await.expect("nobody owns it");
    let mut commit = bench.commit_of(place.seat, resume.progress.fence);
    commit.passed = passed(&[EventId(1)]);
    let committed = bench.commit(commit.clone()).await;
    let op = laneway_core::store::RequestOp::Resume { lane: None };
    let request = laneway_core::store::Request { seat: place.seat, token: bench.token(), op };
    bench.store().request(request.clone()).await.expect("a seat that exists");
    bench.reopen().await;
    let again = bench.send(&place, vec![given]).await;
    assert_eq!(again, [Receipt::Duplicate { first: Some(Box::new(first)) }]);
    assert_eq!(bench.commit(commit).await.fence, committed.fence);
    assert!(bench.store().request(request).await.expect("a seat that exists").repeated);
}

/// Design 3, time: delays and kept results keep their time over reopening.
pub async fn delays_go_on_after_reopening(bench: &Bench) {
    if !bench.clock_moves() || !bench.capabilities().persistent {
        return;
    }
    let place = bench.place().await;
    let id = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    bench.send(&place, vec![delayed("a", "later", HOUR)]).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.jobs = vec![job_end(id, inline("result"))];
    bench.commit(commit).await;
    bench.advance(HOUR / 2);
    bench.reopen().await;
    let promote = Promote { shard: place.shard, limit: 9 };
    assert_eq!(bench.store().promote(promote).await.expect("a shard that exists").moved, 0);
    bench.advance(HOUR / 2);
    assert_eq!(bench.store().promote(promote).await.expect("a shard that exists").moved, 1);
    bench.advance(Duration::from_secs(1));
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert_eq!(state, laneway_core::store::JobState::Gone);
}

/// Promise nothing lost: what trim removed stays removed, and what it kept stays, after reopening.
pub async fn a_trim_stays_after_reopening(bench: &Bench) {
    if !bench.capabilities().persistent {
        return;
    }
    let place = bench.place_with(StreamSettings { keep: Duration::ZERO, ..Bench::settings() }).await;
    let ids = bench.fill(&place, "a", 5).await;
    bench.pass(place.seat, &ids[..3]).await;
    bench.trim(place.shard).await;
    let before = bench.snapshot(place.shard).await;
    bench.reopen().await;
    assert_eq!(bench.snapshot(place.shard).await, before);
    assert_eq!(bench.events(place.shard).await.len(), 2);
}
