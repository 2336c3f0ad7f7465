//! Cases about `define` with `Import`: what another store had is there under its own numbers, and work goes on. What
//! an import refuses is in `import_refused`.

use bytes::Bytes;
use laneway_core::store::{
    Define, Import, JobState, Origin, Promote, Query, Receipt, Request, RequestOp, Source,
};
use laneway_core::{
    CLOCK_SETTLE, EventId, JobNumber, Partition, Seq, StoreError, StreamId, StreamSettings, Term,
};

use super::expect::{expect_error, expect_refused, rows};
use super::moving::{Furnished, HOUR, carry, everything, furnish, import, pieces, view};
use crate::bench::{Bench, DraftExt, Place, chain_of, delayed, draft, inline, job_end, key, passed};

/// A store with something of everything, and the bench's own store after it was carried there.
async fn carried(bench: &Bench) -> (Bench, Furnished) {
    let from = bench.another().await;
    let made = furnish(&from).await;
    carry(&from, bench, &made.place.stream).await;
    (from, made)
}

/// Seam, import: everything that can be read of a shard reads the same after its import.
pub async fn everything_imported_reads_the_same(bench: &Bench) {
    let (from, made) = carried(bench).await;
    assert_eq!(bench.streams().await, from.streams().await);
    let shard = made.place.shard;
    assert_eq!(everything(bench, shard).await, everything(&from, shard).await);
    assert_eq!(bench.shard_info(shard).await.incarnation, bench.incarnation());
}

/// Promise chain: imported events keep id, prev and seq, and the next events go on from them.
pub async fn the_chain_goes_on_after_an_import(bench: &Bench) {
    let (from, made) = carried(bench).await;
    let (place, shard) = (&made.place, made.place.shard);
    let before = from.events(shard).await;
    let chain = |event: &laneway_core::Event| (event.id, event.prev, event.seq);
    let after = bench.events(shard).await;
    assert_eq!(after.iter().map(chain).collect::<Vec<_>>(), before.iter().map(chain).collect::<Vec<_>>());
    let head = before.last().expect("there are events").id;
    let sent = bench.send(place, ["busy", "idle", "new"].map(|name| draft(name, "x")).to_vec()).await;
    let busy = from.tail(shard, &key("busy")).await.expect("it has events");
    assert_eq!(chain_of(&sent[0]), (EventId(head.0 + 1), Some(busy.id), Some(Seq(busy.seq.0 + 1))));
    // All events of this lane are trimmed: its end came by itself.
    assert_eq!(chain_of(&sent[1]), (EventId(head.0 + 2), Some(EventId(2)), Some(Seq(3))));
    assert_eq!(chain_of(&sent[2]), (EventId(head.0 + 3), None, Some(Seq(1))));
}

/// Contract 1.11: jobs are found under the ids they had, ended ones with their results.
pub async fn imported_jobs_keep_their_ids(bench: &Bench) {
    let (from, made) = carried(bench).await;
    let shard = made.place.shard;
    for job in made.jobs {
        assert_eq!(job.shard(), shard);
        assert_eq!(bench.job(shard, job.number()).await, from.job(shard, job.number()).await, "{job:?}");
    }
    let [ended, open, waiting, joined] = made.jobs.map(|job| job.number());
    let found = bench.job(shard, ended).await;
    assert!(
        matches!(&found, JobState::Ended { result: Some(result), .. } if result == "result"),
        "{found:?}"
    );
    assert!(matches!(bench.job(shard, open).await, JobState::Pending { .. }));
    assert!(matches!(bench.job(shard, waiting).await, JobState::Scheduled { .. }));
    assert!(matches!(bench.job(shard, joined).await, JobState::Pending { .. }));
    let fence = bench.seize(made.place.seat).await.progress.fence;
    let mut commit = bench.commit_of(made.place.seat, fence);
    let JobNumber::Event(id) = open else { panic!("{open:?}") };
    commit.passed = passed(&[id]);
    commit.jobs = vec![job_end(id, inline("at the target"))];
    bench.commit(commit).await;
    assert!(matches!(bench.job(shard, open).await, JobState::Ended { .. }), "its responder ends it here");
}

/// Seam, import: counters go on above what was imported, and above numbers of what was removed at the source.
pub async fn numbers_go_on_above_what_was_imported(bench: &Bench) {
    let from = bench.another().await;
    let made = furnish(&from).await;
    let gone = from.place().await;
    from.define(Define::RemoveStream { stream: gone.stream.id, expect: gone.stream.version }).await;
    carry(&from, bench, &made.place.stream).await;
    let (place, seat) = (&made.place, made.place.seat);
    assert_eq!(view(bench).await.streams, gone.stream.id);
    let next = bench.place().await;
    assert_eq!(next.stream.id, StreamId(gone.stream.id.0 + 1));
    assert_eq!(next.seat.processor.0, gone.seat.processor.0 + 1);
    let receipt = bench.send(place, vec![delayed("a", "x", HOUR)]).await.remove(0);
    assert!(matches!(receipt, Receipt::Scheduled { ticket: 5, .. }), "{receipt:?}");
    let request = Request { seat, token: bench.token(), op: RequestOp::Resume { lane: None } };
    assert_eq!(bench.store().request(request).await.expect("a seat that exists").number, 3);
    let fence = bench.seize(seat).await.progress.fence;
    let mut commit = bench.commit_of(seat, fence);
    commit.emits = vec![crate::bench::emit(place.stream.id, "x", "four")];
    assert_eq!(bench.commit(commit).await.emitted, 4);
    // Lower numbers than those given already take nothing back.
    import(bench, &Import::Numbers(StreamId(0), laneway_core::ProcessorId(0))).await;
    assert!(bench.place().await.stream.id > next.stream.id);
}

/// Contract 1.8 and 1.19: an imported seat has no owner; old fences are refused, and the next term is above theirs.
pub async fn an_imported_seat_has_no_owner_and_a_higher_term(bench: &Bench) {
    let (from, made) = carried(bench).await;
    let seat = made.place.seat;
    let before = from.seat_view(seat).await.progress;
    let stale = bench.commit_of(seat, made.fence);
    expect_error!(bench.store().commit(stale).await, StoreError::Fenced { .. });
    assert_eq!(bench.owner(seat).await, None);
    let resume = bench.store().seize(bench.seize_of(seat, None)).await.expect("nobody owns it");
    let fence = resume.progress.fence;
    assert!(fence.term > made.fence.term, "{fence:?} after {:?}", made.fence);
    assert_eq!((fence.version, fence.adoptions), (made.fence.version, made.fence.adoptions));
    assert_eq!(resume.progress.window, before.window);
    assert_eq!((resume.progress.clean, before.clean), (true, true), "how the owner before ended");
    assert_eq!(resume.progress.requests_applied, 1);
    let stale = bench.commit_of(seat, made.fence);
    expect_error!(bench.store().commit(stale).await, StoreError::Fenced { .. });
    let idle = bench.seize(made.idle).await.progress;
    assert_eq!((idle.clean, idle.window.floor()), (false, EventId(3)), "it was taken and not given back");
}

/// Contract 1.2, 1.7 and 1.13: who repeats a call after the import is told so, as at the source.
pub async fn repeats_are_told_after_an_import(bench: &Bench) {
    let (_, made) = carried(bench).await;
    let (place, seat) = (&made.place, made.place.seat);
    let again = bench.send(place, vec![draft("once", "only").dedup("name", 5)]).await;
    let [Receipt::Duplicate { first: Some(first) }] = &again[..] else { panic!("{again:?}") };
    assert!(matches!(**first, Receipt::New { id: EventId(7), .. }), "{first:?}");
    let again = bench.send(place, vec![draft("later", "named").dedup("waits", 7)]).await;
    let [Receipt::Duplicate { first: Some(first) }] = &again[..] else { panic!("{again:?}") };
    assert!(matches!(**first, Receipt::Scheduled { ticket: 1, .. }), "{first:?}");
    let source = || Source::Named(Bytes::from_static(b"input"));
    let drafts = vec![draft("sourced", "x").at_origin(3), draft("sourced", "x").at_origin(4)];
    let append = bench.append_from(place, Origin { source: source(), term: Term(4) }, drafts);
    let receipts = bench.store().append(append).await.expect("the same term").receipts;
    assert_eq!(receipts[0], Receipt::Duplicate { first: None });
    assert!(matches!(receipts[1], Receipt::New { .. }), "{receipts:?}");
    let old = bench.append_from(
        place,
        Origin { source: source(), term: Term(3) },
        vec![draft("a", "x").at_origin(9)],
    );
    expect_error!(bench.store().append(old).await, StoreError::Conflict(_));
    for (token, number) in made.tokens.into_iter().zip(1..) {
        let request = Request { seat, token, op: RequestOp::Resume { lane: None } };
        let accepted = bench.store().request(request).await.expect("a seat that exists");
        assert!(accepted.repeated && accepted.number == number, "{accepted:?}");
    }
}

/// Contract 1.10: drafts that wait come over and join their lanes when they are due, jobs under their ids.
pub async fn imported_drafts_join_when_they_are_due(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let (_, made) = carried(bench).await;
    let shard = made.place.shard;
    let promote = Promote { shard, limit: 10 };
    assert_eq!(bench.store().promote(promote).await.expect("a shard that exists").moved, 0);
    let head = bench.shard_info(shard).await.head;
    bench.advance(HOUR);
    assert_eq!(bench.store().promote(promote).await.expect("a shard that exists").moved, 2);
    let waited = bench.job(shard, made.jobs[2].number()).await;
    let expected = EventId(head.0 + 2);
    assert!(matches!(waited, JobState::Pending { id, .. } if id == expected), "{waited:?}");
}

/// Contract 1.9 and 3.7: sidings and floors hold the trim at the target as they did at the source.
pub async fn an_imported_siding_holds_the_trim(bench: &Bench) {
    let (_, made) = carried(bench).await;
    let shard = made.place.shard;
    assert_eq!(bench.trim(shard).await.first, EventId(4), "the idle processor has passed three events");
    let head = bench.shard_info(shard).await.head;
    let all: Vec<EventId> = (4..=head.0).map(EventId).collect();
    bench.pass(made.place.seat, &all).await;
    bench.pass(made.idle, &all).await;
    assert_eq!(bench.trim(shard).await.first, EventId(13), "it is in a siding");
}

/// Contract 3.17: what is imported may be old, so it stays until the clock that says so has settled.
pub async fn nothing_imported_goes_by_age_before_the_clock_has_settled(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let from = bench.another().await;
    let made = furnish(&from).await;
    // A year later at the store that takes it over, by all of its clocks.
    bench.advance(365 * 24 * HOUR);
    carry(&from, bench, &made.place.stream).await;
    let shard = made.place.shard;
    let seen = async || {
        bench.trim(shard).await;
        let dead = rows!(bench, Query::Dead(made.place.seat, EventId(0), 10), Dead).len();
        (dead, matches!(bench.job(shard, made.jobs[0].number()).await, JobState::Ended { .. }))
    };
    assert_eq!(seen().await, (1, true), "a dead letter and a result");
    bench.advance(CLOCK_SETTLE / 2);
    assert_eq!(seen().await, (1, true), "the clock has not settled");
    bench.advance(CLOCK_SETTLE / 2);
    assert_eq!(seen().await, (0, false), "both are old");
}

/// Contract 1.4: gaps and adoptions come over, and a shard that must be adopted at the source must be at the target.
pub async fn gaps_and_missing_adoptions_come_over(bench: &Bench) {
    let from = bench.another().await;
    let place = from.place_with(StreamSettings { partitions: 2, ..StreamSettings::default() }).await;
    let other = Place { shard: place.stream.shard(Partition(1)), ..place.clone() };
    from.fill(&place, "a", 3).await;
    from.fill(&other, "b", 3).await;
    let old = from.incarnation();
    from.restore().await;
    from.define(Define::Adopt { shard: place.shard, stored: old }).await;
    from.fill(&place, "a", 3).await;
    carry(&from, bench, &place.stream).await;
    for shard in [place.shard, other.shard] {
        assert_eq!(everything(bench, shard).await, everything(&from, shard).await);
    }
    let info = bench.shard_info(place.shard).await;
    assert_eq!((info.adoptions, info.gaps.len()), (1, 1));
    assert_eq!(bench.send_one(&place, draft("a", "x")).await, info.gaps[0].1.next().next().next().next());
    let refused = bench.try_send(&other, vec![draft("b", "x")]).await;
    expect_error!(refused, StoreError::Adopt { stored, .. } if stored == old.0);
    bench.define(Define::Adopt { shard: other.shard, stored: old }).await;
    bench.fill(&other, "b", 1).await;
}

/// Seam, import: every piece may come twice, at once or after others came, with the effect of one.
pub async fn every_piece_may_come_twice(bench: &Bench) {
    let from = bench.another().await;
    let made = furnish(&from).await;
    let shard = made.place.shard;
    let pieces = pieces(&from, bench.incarnation(), &made.place.stream).await;
    let (finish, rest) = pieces.split_last().expect("there are pieces");
    for _ in 0..2 {
        for piece in rest {
            import(bench, piece).await;
            import(bench, piece).await;
        }
    }
    import(bench, finish).await;
    assert_eq!(everything(bench, shard).await, everything(&from, shard).await);
    import(bench, finish).await;
    assert_eq!(everything(bench, shard).await, everything(&from, shard).await);
    let dedup = rows!(bench, Query::Dedup(shard, None, 100), Dedup);
    assert_eq!(dedup.len(), 3, "each name once");
}

/// Promise nothing lost: an import goes on after reopening and what it brought stays, where the store is persistent.
pub async fn an_import_goes_on_after_reopening(bench: &Bench) {
    let from = bench.another().await;
    let made = furnish(&from).await;
    let shard = made.place.shard;
    let pieces = pieces(&from, bench.incarnation(), &made.place.stream).await;
    let persistent = bench.capabilities().persistent;
    for piece in &pieces[..pieces.len() / 2] {
        import(bench, piece).await;
    }
    bench.reopen().await;
    if !persistent {
        let late = Define::Import(pieces[pieces.len() - 1].clone());
        expect_error!(bench.store().define(late).await, StoreError::NotFound { .. });
        return;
    }
    let early = bench.try_send(&made.place, vec![draft("a", "early")]).await;
    expect_refused!(early);
    for piece in &pieces[pieces.len() / 2..] {
        import(bench, piece).await;
    }
    bench.reopen().await;
    assert_eq!(everything(bench, shard).await, everything(&from, shard).await);
    bench.send_one(&made.place, draft("busy", "next")).await;
}
