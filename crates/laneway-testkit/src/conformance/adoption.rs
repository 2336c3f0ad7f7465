//! Cases about shards that another life of the store wrote last (contract 1.4).

use std::time::Duration;

use bytes::Bytes;
use laneway_core::adoption::adopted_head;
use laneway_core::store::{Define, Origin, Query, ReadFrom, Source};
use laneway_core::{EventId, Fence, Incarnation, Seq, StoreError, StreamSettings, Term, limits};

use super::expect::{expect_error, rows};
use crate::bench::{Bench, DraftExt, Place, chain_of, draft, emit, passed};

/// A place with three events, one of them passed, under a store that was then restored.
async fn restored(bench: &Bench) -> (Place, Incarnation, Fence) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 3).await;
    let fence = bench.pass(place.seat, &ids[..1]).await.fence;
    let old = bench.incarnation();
    bench.restore().await;
    assert_ne!(bench.incarnation(), old, "a restored store has another incarnation");
    (place, old, fence)
}

async fn adopt(bench: &Bench, place: &Place, stored: Incarnation) {
    bench.define(Define::Adopt { shard: place.shard, stored }).await;
}

/// Contract 1.4: append and seize are refused, naming both incarnations, until the shard is adopted.
pub async fn a_foreign_shard_must_be_adopted_first(bench: &Bench) {
    let (place, old, _) = restored(bench).await;
    let before = bench.snapshot(place.shard).await;
    let current = bench.incarnation();
    for incarnation in [current, old] {
        let mut append = bench.append_to(&place, vec![draft("a", "x")]);
        append.incarnation = incarnation;
        expect_error!(
            bench.store().append(append).await,
            StoreError::Adopt { shard, stored, current: now }
                if shard == place.shard && stored == old.0 && now == current
        );
        let mut seize = bench.seize_of(place.seat, bench.owner(place.seat).await);
        seize.incarnation = incarnation;
        expect_error!(bench.store().seize(seize).await, StoreError::Adopt { .. });
    }
    assert_eq!(bench.snapshot(place.shard).await, before, "nothing is written before the adoption");
}

/// Contract 1.4: adopting takes over the incarnation, counts, and raises the ids to where the clock says.
pub async fn adopting_raises_the_ids_and_counts(bench: &Bench) {
    let (place, old, _) = restored(bench).await;
    let before = rows!(bench, Query::Store, Store).calendar;
    adopt(bench, &place, old).await;
    let after = rows!(bench, Query::Store, Store).calendar;
    let info = bench.shard_info(place.shard).await;
    assert_eq!((info.incarnation, info.adoptions), (bench.incarnation(), 1));
    let at = |time| adopted_head(EventId(3), time);
    assert!(
        (at(before)..=at(after)).contains(&info.head),
        "{} is not {} to {}",
        info.head,
        at(before),
        at(after)
    );
    assert!(info.head.0 > 3 + limits::ADOPTION_JUMP, "the clock counts");
    assert_eq!(info.gaps, [(EventId(4), info.head)]);
    assert_eq!(rows!(bench, Query::Counts(place.shard), Counts).adoptions, 1);
}

/// Contract 1.4: after the adoption ids are above the jump; prev and seq go on from what survived.
pub async fn the_chain_goes_on_after_an_adoption(bench: &Bench) {
    let (place, old, _) = restored(bench).await;
    adopt(bench, &place, old).await;
    let receipts = bench.send(&place, vec![draft("a", "x"), draft("b", "y")]).await;
    let first = bench.shard_info(place.shard).await.gaps[0].1.next();
    assert_eq!(chain_of(&receipts[0]), (first, Some(EventId(3)), Some(Seq(4))));
    assert_eq!(chain_of(&receipts[1]), (first.next(), None, Some(Seq(1))));
    let page = bench.try_read(place.shard, ReadFrom::After(EventId(2))).await.expect("readable");
    let ids: Vec<EventId> = page.entries.iter().map(|entry| entry.id()).collect();
    assert_eq!(ids, [EventId(3), first, first.next()], "a page goes over the gap");
}

/// Contract 1.4: a repeated adoption changes nothing.
pub async fn adopting_twice_is_fine(bench: &Bench) {
    let (place, old, _) = restored(bench).await;
    adopt(bench, &place, old).await;
    let once = bench.shard_info(place.shard).await;
    adopt(bench, &place, old).await;
    assert_eq!(bench.shard_info(place.shard).await, once);
    adopt(bench, &place, bench.incarnation()).await;
    assert_eq!(bench.shard_info(place.shard).await, once);
}

/// Contract 1.4: a shard is adopted only from the incarnation that was found stored.
pub async fn a_shard_is_adopted_only_from_what_was_found(bench: &Bench) {
    let (place, old, _) = restored(bench).await;
    let stored = Incarnation(old.0 ^ 1);
    let answer = bench.store().define(Define::Adopt { shard: place.shard, stored }).await;
    assert!(answer.is_err(), "another life was expected: {answer:?}");
    let info = bench.shard_info(place.shard).await;
    assert_eq!((info.incarnation, info.adoptions, info.head), (old, 0, EventId(3)));
}

/// Contract 1.4, section 6: `adoptions` is part of every fence, so a holder that a rollback made current again
/// is refused.
pub async fn an_adoption_fences_the_old_owner(bench: &Bench) {
    let (place, old, fence) = restored(bench).await;
    adopt(bench, &place, old).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[EventId(2)]);
    expect_error!(bench.store().commit(commit.clone()).await, StoreError::Fenced { .. });
    assert_eq!(bench.seat_view(place.seat).await.progress.window.floor(), EventId(1));
    let resume = bench.seize(place.seat).await;
    assert_eq!(resume.progress.fence.adoptions, 1);
    assert!(resume.progress.fence.term > fence.term);
    commit.fence = resume.progress.fence;
    assert_eq!(bench.commit(commit).await.floor, EventId(2));
}

/// Contract 1.9: the floor goes over the ids that were never given.
pub async fn the_floor_goes_over_the_gap(bench: &Bench) {
    let (place, old, _) = restored(bench).await;
    adopt(bench, &place, old).await;
    let next = bench.send_one(&place, draft("a", "x")).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[EventId(2), EventId(3)]);
    let committed = bench.commit(commit).await;
    assert_eq!(committed.floor.0, next.0 - 1);
    let mut commit = bench.commit_of(place.seat, committed.fence);
    commit.passed = passed(&[next]);
    assert_eq!(bench.commit(commit).await.floor, next);
}

/// Contract 1.9: whoever takes a seat after an adoption has no ids in front of it that were never given.
pub async fn a_seizure_goes_over_the_gap(bench: &Bench) {
    let (place, old, fence) = restored(bench).await;
    adopt(bench, &place, old).await;
    let info = bench.shard_info(place.shard).await;
    let resume = bench.seize(place.seat).await;
    assert_eq!((resume.head, &resume.gaps), (info.head, &info.gaps));
    assert_eq!(resume.progress.window.floor(), EventId(1), "two are open before it");
    let mut commit = bench.commit_of(place.seat, resume.progress.fence);
    commit.passed = passed(&[EventId(2), EventId(3)]);
    assert_eq!(bench.commit(commit).await.floor, info.head);
    bench.restore().await;
    adopt(bench, &place, info.incarnation).await;
    let resume = bench.seize(place.seat).await;
    assert!(resume.progress.fence.term > fence.term);
    assert_eq!(resume.progress.window.floor(), resume.head, "nothing is open");
}

/// Contract 3.8: whoever read everything before a gap is not told that events went by retention.
pub async fn nobody_misses_anything_in_a_gap(bench: &Bench) {
    let place = bench.place_with(StreamSettings { keep: Duration::ZERO, ..Bench::settings() }).await;
    let last = bench.fill(&place, "a", 3).await[2];
    let old = bench.incarnation();
    bench.restore().await;
    adopt(bench, &place, old).await;
    bench.pass(place.seat, &[EventId(1), EventId(2), last]).await;
    let info = bench.shard_info(place.shard).await;
    let trimmed = bench.trim(place.shard).await;
    assert_eq!((trimmed.events, trimmed.first), (3, info.head.next()));
    assert_eq!(bench.shard_info(place.shard).await.trimmed, last);
    let page = bench.try_read(place.shard, ReadFrom::After(last)).await.expect("it missed nothing");
    assert!(page.entries.is_empty());
    let next = bench.send_one(&place, draft("a", "x")).await;
    let page = bench.try_read(place.shard, ReadFrom::After(last)).await.expect("it missed nothing");
    assert_eq!(page.entries.iter().map(|entry| entry.id()).collect::<Vec<_>>(), [next]);
    bench.pass(place.seat, &[next]).await;
    bench.trim(place.shard).await;
    expect_error!(
        bench.try_read(place.shard, ReadFrom::After(last)).await,
        StoreError::Trimmed { first, .. } if first == next.next()
    );
}

/// Contract 1.4: a store that was not replaced needs no adoption, and each new life counts one more.
pub async fn every_new_life_is_adopted_once(bench: &Bench) {
    let (place, old, _) = restored(bench).await;
    adopt(bench, &place, old).await;
    let second = bench.incarnation();
    bench.send_one(&place, draft("a", "x")).await;
    bench.restore().await;
    expect_error!(bench.try_send(&place, vec![draft("a", "y")]).await, StoreError::Adopt { .. });
    adopt(bench, &place, second).await;
    let info = bench.shard_info(place.shard).await;
    assert_eq!((info.adoptions, info.gaps.len()), (2, 2));
    bench.send_one(&place, draft("a", "y")).await;
}

/// Contract 1.1: what a source had sent before the restore is still known, so a repeat is told.
pub async fn sources_are_remembered_over_an_adoption(bench: &Bench) {
    let place = bench.place().await;
    let origin = Origin { source: Source::Named(Bytes::from_static(b"input")), term: Term(1) };
    let drafts = vec![draft("a", "x").at_origin(4).dedup("d", 1)];
    bench
        .store()
        .append(bench.append_from(&place, origin.clone(), drafts.clone()))
        .await
        .expect("acceptable");
    let old = bench.incarnation();
    bench.restore().await;
    adopt(bench, &place, old).await;
    let again =
        bench.store().append(bench.append_from(&place, origin, drafts.clone())).await.expect("acceptable");
    assert!(matches!(again.receipts[..], [laneway_core::store::Receipt::Duplicate { .. }]), "{again:?}");
    assert_eq!(bench.events(place.shard).await.len(), 1);
}

/// Contract 1.1: an emit that waits keeps the origin that its commit gave it, whatever became of the shard since; or its
/// target would take it for another.
pub async fn an_emit_keeps_its_origin_over_an_adoption(bench: &Bench) {
    let place = bench.place().await;
    let emits = async |text| {
        let fence = bench.seize(place.seat).await.progress.fence;
        let mut commit = bench.commit_of(place.seat, fence);
        commit.emits = vec![emit(place.stream.id, "b", text)];
        bench.commit(commit).await;
    };
    emits("before").await;
    let old = bench.incarnation();
    bench.restore().await;
    adopt(bench, &place, old).await;
    emits("after").await;
    let outbox = rows!(bench, Query::Outbox(place.seat, 0, 10), Outbox);
    let origins: Vec<(u64, u32)> = outbox.iter().map(|row| (row.number, row.adoptions)).collect();
    assert_eq!(origins, [(1, 0), (2, 1)]);
}

/// Contract 1.4: other shards are adopted one by one.
pub async fn shards_are_adopted_one_by_one(bench: &Bench) {
    let first = bench.place().await;
    let second = bench.place().await;
    let old = bench.incarnation();
    bench.restore().await;
    adopt(bench, &first, old).await;
    bench.send_one(&first, draft("a", "x")).await;
    expect_error!(bench.try_send(&second, vec![draft("a", "x")]).await, StoreError::Adopt { .. });
}
