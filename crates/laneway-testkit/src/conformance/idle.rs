//! Cases about lanes that were idle for long (contract 3.9): forgotten only where the stream says so, never too early, and
//! then as if they had never been.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Define, ObjectWrite, StateWrite, Trim};
use laneway_core::{Mode, Seq, StreamSettings};

use super::expect::paged;
use crate::bench::{Bench, DraftExt, Place, chain_of, draft, key, lane, passed};

const MINUTE: Duration = Duration::from_secs(60);
/// More than one call of trim looks at.
const MANY: usize = 2_300;

fn forgetful() -> StreamSettings {
    StreamSettings { keep: Duration::ZERO, forget_lanes_after: Some(10 * MINUTE), ..Bench::settings() }
}

/// Everything so far is passed, and retention looks at it.
async fn settle(bench: &Bench, place: &Place) {
    let events = bench.events(place.shard).await;
    bench.pass(place.seat, &events.iter().map(|event| event.id).collect::<Vec<_>>()).await;
    bench.trim(place.shard).await;
}

async fn lanes(bench: &Bench, place: &Place) -> Vec<String> {
    let tails = paged!(bench, Tails(place.shard, None), |row| Some(row.key.clone()));
    tails.iter().map(|tail| String::from_utf8_lossy(tail.key.as_ref()).into_owned()).collect()
}

/// Contract 3.9: after the time that the stream says the next event of an idle lane is its first, with a higher id.
pub async fn a_lane_that_was_idle_for_long_begins_anew(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(forgetful()).await;
    let last = bench.fill(&place, "a", 2).await[1];
    bench.fill(&place, "b", 2).await;
    settle(bench, &place).await;
    bench.advance(6 * MINUTE);
    bench.fill(&place, "b", 1).await;
    settle(bench, &place).await;
    bench.advance(4 * MINUTE - Duration::from_secs(1));
    settle(bench, &place).await;
    assert_eq!(lanes(bench, &place).await, ["a", "b"], "a second is left");
    bench.advance(MINUTE);
    assert_eq!(bench.trim(place.shard).await.rows, 1);
    assert_eq!(lanes(bench, &place).await, ["b"]);
    assert_eq!(bench.tail(place.shard, &key("a")).await, None);
    let receipts = bench.send(&place, vec![draft("a", "x"), draft("b", "x")]).await;
    let (id, prev, seq) = chain_of(&receipts[0]);
    assert!(id > last && prev.is_none() && seq == Some(Seq(1)), "{receipts:?}");
    assert_eq!(chain_of(&receipts[1]).2, Some(Seq(4)), "the other was not idle");
}

/// Contract 3.9: what was forgotten stays so when the store is closed and opened again, and so does what was not.
pub async fn what_was_forgotten_stays_forgotten(bench: &Bench) {
    if !bench.clock_moves() || !bench.capabilities().persistent {
        return;
    }
    let place = bench.place_with(forgetful()).await;
    bench.send(&place, vec![draft("a", "x"), draft("b", "x")]).await;
    settle(bench, &place).await;
    bench.advance(MINUTE);
    bench.send_one(&place, draft("b", "x")).await;
    settle(bench, &place).await;
    bench.reopen().await;
    bench.advance(9 * MINUTE);
    bench.trim(place.shard).await;
    for _ in 0..2 {
        assert_eq!(lanes(bench, &place).await, ["b"]);
        bench.reopen().await;
    }
    assert_eq!(chain_of(&bench.send(&place, vec![draft("a", "x")]).await[0]).2, Some(Seq(1)));
    bench.reopen().await;
    assert_eq!(lanes(bench, &place).await, ["a", "b"]);
}

/// Contract 1.4, 3.9: lanes of before an adoption are forgotten although no event came since.
pub async fn lanes_before_a_gap_are_forgotten(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(forgetful()).await;
    bench.fill(&place, "a", 1).await;
    let stored = bench.incarnation();
    bench.restore().await;
    bench.define(Define::Adopt { shard: place.shard, stored }).await;
    settle(bench, &place).await;
    bench.advance(11 * MINUTE);
    bench.trim(place.shard).await;
    assert_eq!(lanes(bench, &place).await, Vec::<String>::new());
}

/// Contract 3.9: a lane with an event that can still be read is not idle, and without the setting none ever is.
pub async fn lanes_are_kept_with_their_events_and_by_default(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let long = StreamSettings { keep: 60 * MINUTE, ..forgetful() };
    let never = StreamSettings { forget_lanes_after: None, ..forgetful() };
    for settings in [long, never] {
        let place = bench.place_with(settings).await;
        bench.fill(&place, "a", 1).await;
        for _ in 0..3 {
            settle(bench, &place).await;
            bench.advance(15 * MINUTE);
        }
        settle(bench, &place).await;
        assert_eq!(lanes(bench, &place).await, ["a"]);
    }
}

/// Contract 1.6, 3.9: a lane with an object is not forgotten, because the object is there to be read.
pub async fn lanes_with_objects_are_kept(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(forgetful()).await;
    bench.fill(&place, "a", 1).await;
    let mut append = bench.append_to(&place, vec![draft("b", "x")]);
    append.object = Some(ObjectWrite { expect: None, value: Some(Bytes::from_static(b"object")) });
    bench.store().append(append).await.expect("any version is replaced");
    settle(bench, &place).await;
    bench.advance(11 * MINUTE);
    bench.trim(place.shard).await;
    assert_eq!(lanes(bench, &place).await, ["b"]);
}

/// Contract 3.9: what processors keep for a lane goes with it; or a lane that begins anew would be taken for what it was.
pub async fn a_forgotten_lane_has_no_state(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(forgetful()).await;
    let events = bench.send(&place, vec![draft("a", "x"), draft("b", "x")]).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[chain_of(&events[0]).0, chain_of(&events[1]).0]);
    let value = Some(Bytes::from_static(b"state"));
    commit.states = ["a", "b"].map(|lane| StateWrite { key: key(lane), value: value.clone() }).to_vec();
    bench.commit(commit).await;
    bench.trim(place.shard).await;
    bench.advance(11 * MINUTE);
    bench.send_one(&place, draft("b", "x")).await;
    bench.trim(place.shard).await;
    for (name, is_there) in [("a", false), ("b", true)] {
        let view = bench.lane_view(place.seat, &lane(name)).await;
        assert_eq!(view.is_some_and(|view| view.state.is_some()), is_there, "{name}");
    }
}

/// Contract 1.14, 3.9: of a lane that was forgotten any generation is the newest.
pub async fn a_forgotten_lane_takes_any_generation(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(StreamSettings { mode: Mode::Latest, ..forgetful() }).await;
    bench.send_one(&place, draft("a", "x").generation(1, Some(9))).await;
    settle(bench, &place).await;
    bench.advance(11 * MINUTE);
    bench.trim(place.shard).await;
    bench.send_one(&place, draft("a", "x").generation(1, Some(3))).await;
    assert_eq!(bench.tail(place.shard, &key("a")).await.expect("it is there").generation, Some(3));
}

/// Contract 3.9: however many lanes are idle, repeated trims forget them all, and lists are whole meanwhile.
pub async fn many_idle_lanes_are_forgotten_in_turns(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place_with(forgetful()).await;
    let names: Vec<String> = (0..MANY).map(|number| format!("lane-{number:04}")).collect();
    for names in names.chunks(500) {
        bench.send(&place, names.iter().map(|name| draft(name, "x")).collect()).await;
    }
    settle(bench, &place).await;
    bench.advance(11 * MINUTE);
    // Of every hundredth there is another event, so that something is left in every part.
    let kept: Vec<&String> = names.iter().step_by(100).collect();
    bench.send(&place, kept.iter().map(|name| draft(name, "x")).collect()).await;
    let (mut gone, mut more) = (0, true);
    for round in 0.. {
        assert!(round < 20, "{gone} of {MANY} lanes went in {round} rounds");
        if !more {
            break;
        }
        let trimmed = bench.store().trim(Trim { shard: place.shard }).await.expect("trimmable");
        (gone, more) = (gone + trimmed.rows, trimmed.more);
        let left =
            super::expect::rows!(bench, laneway_core::store::Query::Tails(place.shard, None, 10_000), Tails);
        assert_eq!(left.len() as u64 + gone, MANY as u64);
    }
    let again = bench.store().trim(Trim { shard: place.shard }).await.expect("trimmable");
    assert!(
        !again.more && again.rows == 0,
        "nobody looks again before there is something to find: {again:?}"
    );
    assert_eq!(lanes(bench, &place).await.iter().collect::<Vec<_>>(), kept);
}
