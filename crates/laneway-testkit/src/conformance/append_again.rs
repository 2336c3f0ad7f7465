//! Cases about appends that come again (dedup ids and origins) and about the object of a lane.

use std::time::Duration;

use bytes::Bytes;
use laneway_core::event::Dedup;
use laneway_core::store::{Append, ObjectWrite, Origin, Query, Receipt, Source};
use laneway_core::{ConflictReason, Draft, EventId, Seq, StreamSettings, Term};

use super::expect::{expect_conflict, expect_refused, rows};
use crate::bench::{Bench, DraftExt, Place, delayed, draft, job_draft, key, keyless};

const HOUR: Duration = Duration::from_secs(3_600);

fn duplicate(first: &Receipt) -> Receipt {
    Receipt::Duplicate { first: Some(Box::new(first.clone())) }
}

/// Contract 1.13: the same id with the same body answers the first receipt; the job is the same too.
pub async fn a_repeated_dedup_id_answers_the_first_receipt(bench: &Bench) {
    let place = bench.place().await;
    let given = job_draft("a", "1", place.seat.processor).dedup("d", 7);
    let first = bench.send(&place, vec![given.clone()]).await.remove(0);
    bench.send_one(&place, draft("a", "between")).await;
    assert_eq!(bench.send(&place, vec![given.clone()]).await, [duplicate(&first)]);
    assert_eq!(bench.send(&place, vec![given]).await, [duplicate(&first)], "also the third time");
    assert_eq!(bench.events(place.shard).await.len(), 2);
}

/// Contract 1.13, invariant D4: the same id with another body is a conflict that names the first event.
pub async fn a_dedup_id_with_another_body_conflicts(bench: &Bench) {
    let place = bench.place().await;
    let first = bench.send_one(&place, draft("a", "1").dedup("d", 7)).await;
    let answer = bench.try_send(&place, vec![draft("a", "2").dedup("d", 8)]).await;
    expect_conflict!(answer, ConflictReason::DedupBody { first: Some(id) } if id == first);
    bench.send(&place, vec![delayed("a", "later", HOUR).dedup("e", 1)]).await;
    let answer = bench.try_send(&place, vec![draft("a", "2").dedup("e", 2)]).await;
    expect_conflict!(answer, ConflictReason::DedupBody { first: None });
    assert_eq!(bench.events(place.shard).await.len(), 1);
}

/// Contract 1.13: the scope of a dedup id is its lane; without a key it is the shard.
pub async fn dedup_ids_are_scoped_by_lane(bench: &Bench) {
    let place = bench.place().await;
    for lane in ["a", "b"] {
        bench.send_one(&place, draft(lane, "x").dedup("d", 1)).await;
    }
    bench.send_one(&place, keyless("x").dedup("d", 1)).await;
    for given in [draft("a", "x"), draft("b", "x"), keyless("x")] {
        let again = bench.send(&place, vec![given.dedup("d", 1)]).await;
        assert!(matches!(again[..], [Receipt::Duplicate { .. }]), "{again:?}");
    }
    assert_eq!(bench.events(place.shard).await.len(), 3);
}

/// Contract 1.13: two drafts of one call with one dedup id are one event.
pub async fn dedup_works_inside_one_call(bench: &Bench) {
    let place = bench.place().await;
    let given = draft("a", "1").dedup("d", 1);
    let receipts = bench.send(&place, vec![given.clone(), draft("a", "2"), given.clone()]).await;
    assert_eq!(receipts[2], duplicate(&receipts[0]));
    assert_eq!(bench.events(place.shard).await.len(), 2);
    let conflicting = vec![draft("b", "1").dedup("e", 1), draft("b", "2").dedup("e", 2)];
    let answer = bench.try_send(&place, conflicting).await;
    expect_conflict!(answer, ConflictReason::DedupBody { .. });
    assert_eq!(bench.events(place.shard).await.len(), 2);
}

/// Contract 1.13: a call may hold new drafts and duplicates; the new ones are appended.
pub async fn duplicates_do_not_hinder_their_neighbours(bench: &Bench) {
    let place = bench.place().await;
    let first = bench.send(&place, vec![draft("a", "1").dedup("d", 1)]).await.remove(0);
    let drafts = vec![draft("a", "2"), draft("a", "1").dedup("d", 1), draft("a", "3")];
    let receipts = bench.send(&place, drafts).await;
    assert!(matches!(receipts[0], Receipt::New { id: EventId(2), seq: Some(Seq(2)), .. }), "{receipts:?}");
    assert_eq!(receipts[1], duplicate(&first));
    assert!(
        matches!(receipts[2], Receipt::New { id: EventId(3), prev: Some(EventId(2)), .. }),
        "{receipts:?}"
    );
}

/// Contract 1.13: an id is remembered for its window at least, and forgotten by trim after it.
pub async fn a_dedup_id_is_remembered_for_its_window(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let given = draft("a", "1").dedup("d", 1);
    bench.send_one(&place, given.clone()).await;
    bench.advance(HOUR - Duration::from_secs(1));
    bench.trim(place.shard).await;
    let again = bench.send(&place, vec![given.clone()]).await;
    assert!(matches!(again[..], [Receipt::Duplicate { .. }]), "{again:?}");
    bench.advance(Duration::from_secs(2));
    bench.trim(place.shard).await;
    let later = bench.send(&place, vec![given]).await;
    assert!(matches!(later[..], [Receipt::New { id: EventId(2), .. }]), "{later:?}");
}

/// Contract 1.13: the window is bounded by count too; the ids that would go soonest go first.
pub async fn the_number_of_dedup_ids_is_bounded(bench: &Bench) {
    let place = bench.place_with(StreamSettings { dedup_max: 2, ..Bench::settings() }).await;
    let named = |id: &str, hours: u32| Draft {
        dedup: Some(Dedup { id: Bytes::from(id.to_owned()), body: 1, window: HOUR * hours }),
        ..draft("a", "x")
    };
    for (id, hours) in [("long", 9), ("short", 1), ("longer", 10)] {
        bench.send_one(&place, named(id, hours)).await;
    }
    for id in ["long", "longer"] {
        let again = bench.send(&place, vec![named(id, 9)]).await;
        assert!(matches!(again[..], [Receipt::Duplicate { .. }]), "{id}: {again:?}");
    }
    let forgotten = bench.send(&place, vec![named("short", 1)]).await;
    assert!(matches!(forgotten[..], [Receipt::New { .. }]), "{forgotten:?}");
}

/// Contract 1.13: what goes before its time is counted, by the call and for good; what goes in time is not.
pub async fn dedup_ids_that_go_early_are_counted(bench: &Bench) {
    let place = bench.place_with(StreamSettings { dedup_max: 2, ..Bench::settings() }).await;
    let mut early = 0;
    for id in ["a", "b", "c", "d"] {
        let append = bench.append_to(&place, vec![draft("a", "x").dedup(id, 1)]);
        early += bench.store().append(append).await.expect("there is room").dedup_evicted;
    }
    let counted = async || rows!(bench, Query::Counts(place.shard), Counts).dedup_evicted;
    assert_eq!((early, counted().await), (2, 2));
    let append = bench.append_to(&place, vec![draft("a", "x").dedup("d", 1)]);
    assert_eq!(bench.store().append(append).await.expect("a repeat").dedup_evicted, 0);
    // More than the bound in one call: even of these only the last stay.
    let drafts = ["e", "f", "g"].map(|id| draft("a", "x").dedup(id, 1)).to_vec();
    let appended = bench.store().append(bench.append_to(&place, drafts)).await.expect("there is room");
    assert_eq!((appended.dedup_evicted, counted().await), (3, 5));
    if !bench.clock_moves() {
        return;
    }
    bench.advance(2 * HOUR);
    let append = bench.append_to(&place, vec![draft("a", "x").dedup("h", 1)]);
    assert_eq!(bench.store().append(append).await.expect("there is room").dedup_evicted, 0);
    assert_eq!(counted().await, 5, "their time was over");
}

/// Contract 1.10: a delayed draft is remembered from acceptance until its promotion plus the window.
pub async fn a_delayed_draft_is_deduplicated_from_acceptance(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let given = delayed("a", "1", 3 * HOUR).dedup("d", 1);
    let first = bench.send(&place, vec![given.clone()]).await.remove(0);
    assert!(matches!(first, Receipt::Scheduled { ticket: 1, .. }), "{first:?}");
    assert_eq!(bench.send(&place, vec![given.clone()]).await, [duplicate(&first)]);
    bench.advance(3 * HOUR);
    let promote = laneway_core::store::Promote { shard: place.shard, limit: 10 };
    assert_eq!(bench.store().promote(promote).await.expect("a shard that exists").moved, 1);
    bench.advance(HOUR - Duration::from_secs(1));
    bench.trim(place.shard).await;
    assert_eq!(bench.send(&place, vec![given]).await, [duplicate(&first)]);
    assert_eq!(bench.events(place.shard).await.len(), 1);
}

fn named_origin(term: u64) -> Origin {
    Origin { source: Source::Named(Bytes::from_static(b"input/7")), term: Term(term) }
}

async fn from(bench: &Bench, place: &Place, term: u64, seqs: &[u64]) -> laneway_core::Result<Vec<Receipt>> {
    let drafts = seqs.iter().map(|seq| draft("a", &format!("n{seq}")).at_origin(*seq)).collect();
    let append = bench.append_from(place, named_origin(term), drafts);
    Ok(bench.store().append(append).await?.receipts)
}

/// Contract 1.1: the receiver keeps the highest number per source and answers duplicate for what is not above.
pub async fn an_origin_number_is_taken_once(bench: &Bench) {
    let place = bench.place().await;
    from(bench, &place, 1, &[5, 6]).await.expect("acceptable");
    let repeated = from(bench, &place, 1, &[5, 6, 9]).await.expect("acceptable");
    assert_eq!(repeated[..2], [Receipt::Duplicate { first: None }, Receipt::Duplicate { first: None }]);
    assert!(matches!(repeated[2], Receipt::New { id: EventId(3), .. }), "{repeated:?}");
    let lower = from(bench, &place, 1, &[7]).await.expect("a number that was passed over is not above");
    assert_eq!(lower, [Receipt::Duplicate { first: None }]);
    let partly = from(bench, &place, 1, &[9, 10]).await.expect("the first came before, the second did not");
    assert_eq!(partly[0], Receipt::Duplicate { first: None });
    let expected = Receipt::New { id: EventId(4), prev: Some(EventId(3)), seq: Some(Seq(4)), job: None };
    assert_eq!(partly[1], expected);
    assert_eq!(bench.events(place.shard).await.len(), 4);
}

/// Contract 1.2: receivers refuse an older term of a source; a newer one goes on counting.
pub async fn an_older_holder_of_a_source_is_refused(bench: &Bench) {
    let place = bench.place().await;
    from(bench, &place, 3, &[1, 2]).await.expect("acceptable");
    from(bench, &place, 4, &[3]).await.expect("a newer holder goes on");
    expect_conflict!(
        from(bench, &place, 3, &[4]).await,
        ConflictReason::OriginTerm { actual } if actual == Term(4)
    );
    let repeated = from(bench, &place, 5, &[2, 3]).await.expect("acceptable");
    assert_eq!(repeated, vec![Receipt::Duplicate { first: None }; 2], "numbers go on over terms");
    expect_conflict!(from(bench, &place, 4, &[9]).await, ConflictReason::OriginTerm { .. });
    assert_eq!(bench.events(place.shard).await.len(), 3);
}

/// Contract 1.1: sources are told apart; a reset processor and an adopted shard count anew.
pub async fn sources_count_apart(bench: &Bench) {
    let place = bench.place().await;
    let outbox = |incarnation: u32, adoptions: u32| Source::Outbox {
        shard: place.shard,
        processor: place.seat.processor,
        incarnation,
        adoptions,
    };
    let sources = [
        Source::Named(Bytes::from_static(b"one")),
        Source::Named(Bytes::from_static(b"two")),
        outbox(1, 0),
        outbox(2, 0),
        outbox(1, 1),
    ];
    for source in &sources {
        let origin = Origin { source: source.clone(), term: Term(1) };
        let append = bench.append_from(&place, origin, vec![draft("a", "x").at_origin(1)]);
        let receipts = bench.store().append(append).await.expect("acceptable").receipts;
        assert!(matches!(receipts[..], [Receipt::New { .. }]), "{source:?}: {receipts:?}");
    }
    assert_eq!(bench.events(place.shard).await.len(), sources.len());
}

/// Contract 1.1: with an origin every draft has a number, they ascend; without one no draft has a number.
pub async fn origin_numbers_are_checked(bench: &Bench) {
    let place = bench.place().await;
    expect_refused!(bench.try_send(&place, vec![draft("a", "x").at_origin(1)]).await);
    let missing = vec![draft("a", "x").at_origin(1), draft("a", "y")];
    expect_refused!(bench.store().append(bench.append_from(&place, named_origin(1), missing)).await);
    for seqs in [[2, 1], [2, 2]] {
        expect_refused!(from(bench, &place, 1, &seqs).await);
    }
    assert!(bench.events(place.shard).await.is_empty());
    from(bench, &place, 1, &[1, 2]).await.expect("the refused calls left no trace");
}

/// Contract 2, append: a refused or conflicting call does not move the source's number.
pub async fn a_conflict_does_not_move_the_source(bench: &Bench) {
    let place = bench.place().await;
    bench.send_one(&place, draft("a", "1")).await;
    let bad = vec![draft("a", "x").at_origin(1), draft("a", "y").at_origin(2).after(None)];
    let answer = bench.store().append(bench.append_from(&place, named_origin(1), bad)).await;
    expect_conflict!(answer, ConflictReason::Prev { .. });
    let receipts = from(bench, &place, 1, &[1, 2]).await.expect("acceptable");
    assert!(receipts.iter().all(|receipt| matches!(receipt, Receipt::New { .. })), "{receipts:?}");
}

/// Contract 1.1: delayed drafts of an origin take their number too.
pub async fn a_delayed_draft_takes_its_origin_number(bench: &Bench) {
    let place = bench.place().await;
    for expected in [1, 0] {
        let drafts = vec![delayed("a", "later", HOUR).at_origin(1)];
        let append = bench.append_from(&place, named_origin(1), drafts);
        let receipts = bench.store().append(append).await.expect("acceptable").receipts;
        let scheduled =
            receipts.iter().filter(|receipt| matches!(receipt, Receipt::Scheduled { .. })).count();
        assert_eq!(scheduled, expected, "{receipts:?}");
    }
    assert_eq!(bench.snapshot(place.shard).await.scheduled.len(), 1);
}

fn object_write(
    bench: &Bench,
    place: &Place,
    drafts: Vec<Draft>,
    expect: Option<u64>,
    value: Option<&str>,
) -> Append {
    let value = value.map(|text| Bytes::from(text.to_owned()));
    Append { object: Some(ObjectWrite { expect, value }), ..bench.append_to(place, drafts) }
}

/// Contract 1.6: object and events of a call change together, and the version counts every change.
pub async fn an_object_changes_with_its_events(bench: &Bench) {
    let place = bench.place().await;
    for (index, (expect, value)) in
        [(Some(0), "one"), (Some(1), "two"), (None, "three")].into_iter().enumerate()
    {
        let append = object_write(bench, &place, vec![draft("a", value)], expect, Some(value));
        let appended = bench.store().append(append).await.expect("the version is right");
        assert_eq!(appended.object_version, Some(index as u64 + 1));
        let object = bench.tail(place.shard, &key("a")).await.expect("there").object.expect("there");
        assert_eq!((object.version, &object.bytes[..]), (index as u64 + 1, value.as_bytes()));
    }
    bench.send_one(&place, draft("a", "without")).await;
    let object = bench.tail(place.shard, &key("a")).await.expect("there").object.expect("there");
    assert_eq!(object.version, 3, "an append without an object leaves it alone");
}

/// Contract 1.6: another version conflicts, names the version and writes neither object nor events.
pub async fn another_object_version_conflicts(bench: &Bench) {
    let place = bench.place().await;
    let missing = object_write(bench, &place, vec![draft("a", "x")], Some(1), Some("x"));
    expect_conflict!(bench.store().append(missing).await, ConflictReason::ObjectVersion { actual: 0 });
    let first = object_write(bench, &place, vec![draft("a", "1")], Some(0), Some("one"));
    bench.store().append(first.clone()).await.expect("the version is right");
    expect_conflict!(bench.store().append(first).await, ConflictReason::ObjectVersion { actual: 1 });
    assert_eq!(bench.events(place.shard).await.len(), 1);
}

/// Contract 1.6: a removed object keeps its version, so an old writer cannot mistake it for a new one.
pub async fn a_removed_object_keeps_its_version(bench: &Bench) {
    let place = bench.place().await;
    let steps = [(Some(0), Some("one"), 1), (Some(1), None, 2), (Some(2), Some("three"), 3)];
    for (expect, value, version) in steps {
        if version == 3 {
            let reset = object_write(bench, &place, vec![draft("a", "x")], Some(0), Some("x"));
            expect_conflict!(bench.store().append(reset).await, ConflictReason::ObjectVersion { actual: 2 });
            assert_eq!(bench.tail(place.shard, &key("a")).await.expect("there").object, None);
        }
        let append = object_write(bench, &place, vec![draft("a", "x")], expect, value);
        assert_eq!(bench.store().append(append).await.expect("right").object_version, Some(version));
    }
}

/// Contract 3.13: an object needs drafts that all have its one key.
pub async fn an_object_needs_one_key(bench: &Bench) {
    let place = bench.place().await;
    for drafts in
        [vec![draft("a", "x"), draft("b", "y")], vec![draft("a", "x"), keyless("y")], vec![keyless("x")]]
    {
        expect_refused!(bench.store().append(object_write(bench, &place, drafts, None, Some("v"))).await);
    }
    assert!(bench.events(place.shard).await.is_empty());
}

/// Contract 2: an append is repeated unchanged after a lost answer; then its object is not written again.
pub async fn a_repeated_append_does_not_write_its_object_again(bench: &Bench) {
    let place = bench.place().await;
    let given = object_write(bench, &place, vec![draft("a", "1").dedup("d", 1)], Some(0), Some("one"));
    bench.store().append(given.clone()).await.expect("the version is right");
    let again = bench.store().append(given).await.expect("a repeat is told by its dedup id, before versions");
    assert!(matches!(again.receipts[..], [Receipt::Duplicate { .. }]), "{again:?}");
    let object = bench.tail(place.shard, &key("a")).await.expect("there").object.expect("there");
    assert_eq!(object.version, 1);
}
