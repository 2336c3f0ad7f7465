//! Cases about `seize`: a seat gets a new owner, and every older fence is refused for ever.

use bytes::Bytes;
use laneway_core::store::{Owner, RequestOp, SeatStatus};
use laneway_core::{EventId, Incarnation, Nonce, ProcessorId, Seat, StoreError, Term};

use super::expect::expect_error;
use crate::bench::{Bench, passed};

/// Contract 2, seize: the first owner expects nobody and begins with a clean seat at its start.
pub async fn the_first_owner_expects_nobody(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 3).await;
    let seize = bench.seize_of(place.seat, None);
    let resume = bench.store().seize(seize.clone()).await.expect("nobody owns it");
    let progress = &resume.progress;
    assert_eq!((progress.fence.nonce, progress.fence.version, progress.fence.adoptions), (seize.nonce, 0, 0));
    assert_eq!((progress.window.floor(), resume.head, resume.request_no), (EventId(0), ids[2], 0));
    assert_eq!((progress.requests_applied, progress.emitted, progress.forwarded), (0, 0, 0));
    assert_eq!((progress.clean, progress.status, &progress.node), (true, SeatStatus::Run, &seize.node));
    assert!(progress.fence.term > Term(0));
}

/// Contract 2, seize: it takes the seat only from the owner it expects.
pub async fn a_seat_is_taken_only_from_the_expected_owner(bench: &Bench) {
    let place = bench.place().await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let right = Owner { term: fence.term, nonce: fence.nonce };
    let wrong = [
        None,
        Some(Owner { nonce: Nonce(fence.nonce.0 ^ 1), ..right.clone() }),
        Some(Owner { term: Term(fence.term.0 + 1), ..right.clone() }),
        Some(Owner { term: Term(fence.term.0 - 1), ..right.clone() }),
    ];
    for expect in wrong {
        let answer = bench.store().seize(bench.seize_of(place.seat, expect)).await;
        expect_error!(
            answer,
            StoreError::Fenced { seat, current } if seat == place.seat && current == fence.term
        );
    }
    assert_eq!(bench.seat_view(place.seat).await.progress.fence, fence, "a refused taker changes nothing");
    bench.store().seize(bench.seize_of(place.seat, Some(right))).await.expect("the owner it expects");
}

/// Contract 2, seize: a seat nobody ever owned is not taken from somebody.
pub async fn an_owner_that_never_was_is_not_expected(bench: &Bench) {
    let place = bench.place().await;
    let expect = Some(Owner { term: Term(5), nonce: Nonce(5) });
    let answer = bench.store().seize(bench.seize_of(place.seat, expect)).await;
    expect_error!(answer, StoreError::Fenced { .. });
}

/// Invariant L1: terms strictly increase, also when the clock stands still; the version does not move.
pub async fn every_owner_has_a_higher_term(bench: &Bench) {
    let place = bench.place().await;
    let mut last = Term(0);
    for _ in 0..4 {
        let fence = bench.seize(place.seat).await.progress.fence;
        assert!(fence.term > last, "{} after {last}", fence.term);
        assert_eq!(fence.version, 0, "a seizure is no commit");
        last = fence.term;
    }
}

/// Contract 2, seize: a term is not below the store's clock in microseconds, so a rolled-back store cannot
/// give one out again; and it grows also when the clock went back.
pub async fn a_term_is_not_below_the_clock(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let start = bench.now();
    let first = bench.seize(place.seat).await.progress.fence.term;
    assert_eq!(first, Term(start.0));
    bench.jump_to(start.before(std::time::Duration::from_secs(99)));
    assert_eq!(bench.seize(place.seat).await.progress.fence.term, Term(first.0 + 1));
    bench.jump_to(start);
    bench.seize(place.seat).await;
    bench.advance(laneway_core::CLOCK_SETTLE);
    assert_eq!(bench.seize(place.seat).await.progress.fence.term, Term(bench.now().0));
}

/// Contract 2, seize: repeated with the same nonce it gives the same answer and no new term.
pub async fn a_repeated_seize_answers_the_same(bench: &Bench) {
    let place = bench.place().await;
    for _ in 0..2 {
        // The second round seizes from the owner of the first.
        let seize = bench.seize_of(place.seat, bench.owner(place.seat).await);
        let first = bench.store().seize(seize.clone()).await.expect("the owner it expects");
        let again = bench.store().seize(seize.clone()).await.expect("a repeat");
        assert_eq!(again, first);
    }
    let late = bench.seize_of(place.seat, None);
    expect_error!(bench.store().seize(late).await, StoreError::Fenced { .. });
}

/// Contract 1.8: after a seizure no commit of an older owner is accepted, whatever its version.
pub async fn a_seizure_refuses_every_older_fence(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 1).await;
    let first = bench.seize(place.seat).await.progress.fence;
    let second = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, first);
    commit.passed = passed(&ids);
    expect_error!(
        bench.store().commit(commit.clone()).await,
        StoreError::Fenced { current, .. } if current == second.term
    );
    assert_eq!(bench.seat_view(place.seat).await.progress.window.floor(), EventId(0));
    commit.fence = second;
    bench.commit(commit).await;
}

/// Contract 2, seize: the new owner begins where the old one stopped.
pub async fn a_new_owner_begins_where_the_old_one_stopped(bench: &Bench) {
    let place = bench.place().await;
    let ids = bench.fill(&place, "a", 5).await;
    let request = laneway_core::store::Request {
        seat: place.seat,
        token: bench.token(),
        op: RequestOp::Pause { lane: None, by: Bytes::from_static(b"anna") },
    };
    bench.store().request(request).await.expect("a seat that exists");
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[ids[0], ids[1], ids[3]]);
    commit.emits =
        vec![crate::bench::emit(place.stream.id, "x", "e1"), crate::bench::emit(place.stream.id, "x", "e2")];
    commit.requests_applied = Some(1);
    commit.status = Some(SeatStatus::Paused);
    let committed = bench.commit(commit).await;
    let resume = bench.seize(place.seat).await;
    let progress = resume.progress;
    assert_eq!((progress.window.floor(), progress.fence.version), (ids[1], committed.fence.version));
    assert!(progress.window.contains(ids[3]) && !progress.window.contains(ids[2]));
    assert_eq!((progress.requests_applied, resume.request_no), (1, 1));
    assert_eq!((progress.emitted, progress.forwarded, progress.status), (2, 0, SeatStatus::Paused));
}

/// Contract 1.5: the new owner learns whether the old one ended in good order, once; the mark is then gone.
pub async fn a_new_owner_learns_how_the_old_one_ended(bench: &Bench) {
    let place = bench.place().await;
    let mut fence = bench.seize(place.seat).await.progress.fence;
    for clean in [false, true, false] {
        let mut commit = bench.commit_of(place.seat, fence);
        commit.clean = clean;
        bench.commit(commit).await;
        let resume = bench.seize(place.seat).await;
        assert_eq!(resume.progress.clean, clean);
        fence = resume.progress.fence;
    }
    let without_commit = bench.seize(place.seat).await;
    assert!(!without_commit.progress.clean, "an owner that never said so did not end in good order");
}

/// Contract 1.5: a later commit without the mark takes it back.
pub async fn a_commit_takes_back_the_clean_mark(bench: &Bench) {
    let place = bench.place().await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.clean = true;
    let fence = bench.commit(commit).await.fence;
    bench.commit(bench.commit_of(place.seat, fence)).await;
    assert!(!bench.seize(place.seat).await.progress.clean);
}

/// Contract 1.4: a seizure carries the incarnation that its connection learned.
pub async fn a_seizure_from_another_incarnation_must_adopt(bench: &Bench) {
    let place = bench.place().await;
    let mut seize = bench.seize_of(place.seat, None);
    seize.incarnation = Incarnation(seize.incarnation.0 ^ 1);
    expect_error!(
        bench.store().seize(seize).await,
        StoreError::Adopt { shard, current, .. } if shard == place.shard && current == bench.incarnation()
    );
    assert_eq!(bench.owner(place.seat).await, None);
}

/// Contract 2: seats of two processors have different owners.
pub async fn seats_are_owned_apart(bench: &Bench) {
    let place = bench.place().await;
    let other = bench.processor(place.stream.id, laneway_core::StartAt::Beginning).await;
    let other = Seat { processor: other, ..place.seat };
    let ids = bench.fill(&place, "a", 1).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    bench.pass(other, &ids).await;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&ids);
    bench.commit(commit).await;
}

/// Contract 2, seize: no such processor on this shard.
pub async fn an_unknown_seat_is_not_found(bench: &Bench) {
    let place = bench.place().await;
    let unknown = Seat { processor: ProcessorId(9_999), ..place.seat };
    expect_error!(bench.store().seize(bench.seize_of(unknown, None)).await, StoreError::NotFound { .. });
    let foreign = bench.place().await;
    let crossed = Seat { processor: foreign.seat.processor, ..place.seat };
    expect_error!(bench.store().seize(bench.seize_of(crossed, None)).await, StoreError::NotFound { .. });
}
