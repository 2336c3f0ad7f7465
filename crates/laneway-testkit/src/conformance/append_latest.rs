//! Cases about appends in latest mode: which generation is accepted (contract 1.14).

use laneway_core::store::Receipt;
use laneway_core::{Draft, EventId, Mode, StreamSettings};

use super::expect::expect_refused;
use crate::bench::{Bench, DraftExt, Place, draft, key, keyless};

async fn latest(bench: &Bench) -> Place {
    bench.place_with(StreamSettings { mode: Mode::Latest, ..Bench::settings() }).await
}

async fn offer(bench: &Bench, place: &Place, draft: Draft) -> Receipt {
    bench.send(place, vec![draft]).await.remove(0)
}

fn at(incarnation: u64, generation: u64) -> Draft {
    draft("a", &format!("{incarnation}.{generation}")).generation(incarnation, Some(generation))
}

fn gone(incarnation: u64, generation: u64) -> Draft {
    Draft { delete: true, ..at(incarnation, generation) }
}

fn accepted(receipt: &Receipt) -> bool {
    matches!(receipt, Receipt::New { .. })
}

/// Contract 1.14: lower generations are stale and name the newest; equal and higher ones are accepted.
pub async fn a_lower_generation_is_stale(bench: &Bench) {
    let place = latest(bench).await;
    assert!(accepted(&offer(bench, &place, at(0, 5)).await));
    let stale = offer(bench, &place, at(0, 4)).await;
    assert_eq!(stale, Receipt::Stale { newest: EventId(1), generation: 5 });
    assert!(accepted(&offer(bench, &place, at(0, 5)).await), "the last arrival of a generation wins");
    assert!(accepted(&offer(bench, &place, at(0, 6)).await));
    let stale = offer(bench, &place, at(0, 5)).await;
    assert_eq!(stale, Receipt::Stale { newest: EventId(3), generation: 6 });
    assert_eq!(bench.shard_info(place.shard).await.head, EventId(3));
}

/// Contract 1.14: no generation means one more than the newest accepted, and 1 in a new lane.
pub async fn a_missing_generation_is_one_more(bench: &Bench) {
    let place = latest(bench).await;
    let without = || draft("a", "x").generation(0, None);
    for (given, expected) in [(without(), 1), (without(), 2), (at(0, 10), 10), (without(), 11)] {
        assert!(accepted(&offer(bench, &place, given).await));
        let tail = bench.tail(place.shard, &key("a")).await.expect("there");
        assert_eq!(tail.generation, Some(expected));
    }
    let newest = bench.events(place.shard).await.pop().expect("the newest is readable");
    assert_eq!(newest.generation, Some(11), "the event carries the generation it was given");
}

/// Contract 1.14: a higher incarnation starts afresh, a lower one is stale whatever its generation.
pub async fn incarnations_are_compared_first(bench: &Bench) {
    let place = latest(bench).await;
    assert!(accepted(&offer(bench, &place, at(2, 9)).await));
    assert!(!accepted(&offer(bench, &place, at(1, 99)).await));
    assert!(accepted(&offer(bench, &place, at(3, 1)).await), "a recreated object starts afresh");
    assert!(!accepted(&offer(bench, &place, at(2, 100)).await));
    let tail = bench.tail(place.shard, &key("a")).await.expect("there");
    assert_eq!((tail.incarnation, tail.generation, tail.deleted), (3, Some(1), false));
}

/// Contract 1.14: without a generation a new incarnation starts at 1.
pub async fn a_new_incarnation_without_generation_starts_at_one(bench: &Bench) {
    let place = latest(bench).await;
    offer(bench, &place, at(1, 40)).await;
    assert!(accepted(&offer(bench, &place, draft("a", "x").generation(2, None)).await));
    assert_eq!(bench.tail(place.shard, &key("a")).await.expect("there").generation, Some(1));
}

/// Design 3, latest mode: a delete is terminal for its incarnation, also for a repeated delete.
pub async fn a_delete_ends_its_incarnation(bench: &Bench) {
    let place = latest(bench).await;
    offer(bench, &place, at(1, 5)).await;
    assert!(!accepted(&offer(bench, &place, gone(1, 4)).await), "an old delete deletes nothing");
    assert!(accepted(&offer(bench, &place, gone(1, 6)).await));
    assert!(bench.tail(place.shard, &key("a")).await.expect("there").deleted);
    for late in [at(1, 6), at(1, 7), gone(1, 6), gone(1, 8), draft("a", "x").generation(1, None)] {
        let answer = offer(bench, &place, late).await;
        assert_eq!(answer, Receipt::Stale { newest: EventId(2), generation: 6 });
    }
    assert!(accepted(&offer(bench, &place, at(2, 1)).await));
    assert!(!bench.tail(place.shard, &key("a")).await.expect("there").deleted);
}

/// Contract 1.14: lanes are judged apart, and drafts of one call one after the other.
pub async fn generations_are_judged_in_order_inside_a_call(bench: &Bench) {
    let place = latest(bench).await;
    let other = draft("b", "x").generation(0, Some(1));
    let receipts = bench.send(&place, vec![at(0, 3), at(0, 2), other, at(0, 4), at(0, 3)]).await;
    let new: Vec<bool> = receipts.iter().map(accepted).collect();
    assert_eq!(new, [true, false, true, true, false]);
    assert_eq!(receipts[4], Receipt::Stale { newest: EventId(3), generation: 4 });
}

/// Contract 1.14: a keyless event in a latest stream is refused.
pub async fn latest_streams_need_keys(bench: &Bench) {
    let place = latest(bench).await;
    expect_refused!(bench.try_send(&place, vec![at(0, 1), keyless("x")]).await);
    assert_eq!(bench.shard_info(place.shard).await.head, EventId(0));
}

/// Contract 1.14: a stale answer is not remembered: the same dedup id may be new in a later incarnation.
pub async fn a_stale_draft_leaves_no_trace(bench: &Bench) {
    let place = latest(bench).await;
    offer(bench, &place, at(0, 5)).await;
    let before = bench.snapshot(place.shard).await;
    assert!(!accepted(&offer(bench, &place, at(0, 1).dedup("d", 1)).await));
    assert_eq!(bench.snapshot(place.shard).await, before);
    assert!(accepted(&offer(bench, &place, at(0, 6).dedup("d", 2)).await));
}

/// Contract 1.14: in queue streams generations are kept as given and never compared.
pub async fn queue_streams_do_not_judge_generations(bench: &Bench) {
    let place = bench.place().await;
    for given in [gone(4, 9), at(1, 2), at(1, 1), draft("a", "x").generation(0, None)] {
        assert!(accepted(&offer(bench, &place, given).await));
    }
    let kept: Vec<_> = bench.events(place.shard).await.iter().map(|event| event.generation).collect();
    assert_eq!(kept, [Some(9), Some(2), Some(1), None]);
}
