//! Cases about `request`: what everybody but the owner can do to a seat (contract 1.7).

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{Accepted, Answered, Query, RedriveTo, Request, RequestOp, Reset};
use laneway_core::{EventId, ProcessorId, Seat, StartAt, StoreError, TokenId, limits};

use super::expect::{expect_error, rows};
use crate::bench::{Bench, lane};

fn cancel(bench: &Bench, seat: Seat) -> Request {
    Request { seat, token: bench.token(), op: RequestOp::Cancel { id: EventId(1) } }
}

async fn file(bench: &Bench, request: Request) -> Accepted {
    bench.store().request(request).await.expect("a seat that exists")
}

/// Contract 1.7: requests are numbered 1, 2, 3 at their seat.
pub async fn requests_are_numbered_at_their_seat(bench: &Bench) {
    let place = bench.place().await;
    let other = bench.processor(place.stream.id, StartAt::Beginning).await;
    for number in 1..=3 {
        let accepted = file(bench, cancel(bench, place.seat)).await;
        assert_eq!(accepted, Accepted { number, repeated: false });
    }
    let elsewhere = file(bench, cancel(bench, Seat { processor: other, ..place.seat })).await;
    assert_eq!(elsewhere.number, 1);
    assert_eq!(bench.seat_view(place.seat).await.request_no, 3);
}

/// Contract 1.7: every kind of wish is stored as it was given and listed in order.
pub async fn every_wish_is_stored_as_given(bench: &Bench) {
    let place = bench.place().await;
    let (bytes, name) = (Bytes::from_static(b"x"), lane("a"));
    let ops = [
        RequestOp::Cancel { id: EventId(4) },
        RequestOp::Pause { lane: Some(name.clone()), by: bytes.clone() },
        RequestOp::Pause { lane: None, by: bytes.clone() },
        RequestOp::Resume { lane: None },
        RequestOp::Retry { lane: name.clone(), id: EventId(5) },
        RequestOp::Skip { lane: name.clone(), id: EventId(6) },
        RequestOp::Redrive { id: Some(EventId(7)), lane: name.clone(), to: RedriveTo::Place },
        RequestOp::Redrive { id: None, lane: name, to: RedriveTo::Tail },
        RequestOp::Reset(Reset { start: StartAt::Id(EventId(8)), clear_states: true, quiet: true }),
        RequestOp::Settle { claim: bytes.clone(), answer: bytes.clone() },
        RequestOp::Discard { id: Some(EventId(9)), lane: lane("discarded") },
        RequestOp::Extend { claim: bytes, lease: Duration::from_secs(9) },
    ];
    let mut tokens = Vec::new();
    for op in &ops {
        let request = Request { seat: place.seat, token: bench.token(), op: op.clone() };
        tokens.push(request.token);
        file(bench, request).await;
    }
    let listed = rows!(bench, Query::Requests(place.seat, 0, 100), Requests);
    assert_eq!(listed.iter().map(|row| row.op.clone()).collect::<Vec<_>>(), ops);
    assert_eq!(listed.iter().map(|row| row.token).collect::<Vec<_>>(), tokens);
    assert_eq!(listed.iter().map(|row| row.number).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
}

/// Contract 1.7: the same token again is the same request.
pub async fn a_repeated_token_answers_the_first_number(bench: &Bench) {
    let place = bench.place().await;
    let first = cancel(bench, place.seat);
    file(bench, first.clone()).await;
    file(bench, cancel(bench, place.seat)).await;
    for _ in 0..2 {
        assert_eq!(file(bench, first.clone()).await, Accepted { number: 1, repeated: true });
    }
    assert_eq!(rows!(bench, Query::Requests(place.seat, 0, 100), Requests).len(), 2);
}

/// Contract 1.7: the token of a request that had its effect is still known, so that the wish is not granted twice.
pub async fn an_applied_request_is_not_filed_again(bench: &Bench) {
    let place = bench.place().await;
    let request = cancel(bench, place.seat);
    file(bench, request.clone()).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(1);
    bench.commit(commit).await;
    bench.trim(place.shard).await;
    assert_eq!(file(bench, request).await, Accepted { number: 1, repeated: true });
    assert!(rows!(bench, Query::Requests(place.seat, 0, 100), Requests).is_empty());
}

/// Contract 1.7: the token of an applied request is remembered for a day; then trim forgets it.
pub async fn an_applied_token_is_remembered_for_a_day(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let place = bench.place().await;
    let (applied, waiting) = (cancel(bench, place.seat), cancel(bench, place.seat));
    file(bench, applied.clone()).await;
    file(bench, waiting.clone()).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(1);
    bench.commit(commit).await;
    bench.advance(limits::TOKEN_KEEP - Duration::from_secs(1));
    bench.trim(place.shard).await;
    assert!(file(bench, applied.clone()).await.repeated);
    bench.advance(Duration::from_secs(2));
    bench.trim(place.shard).await;
    assert_eq!(file(bench, waiting).await, Accepted { number: 2, repeated: true }, "it waits for an owner");
    assert_eq!(file(bench, applied).await, Accepted { number: 3, repeated: false });
}

/// Contract 1.7: a request has an effect only through a later commit.
pub async fn a_request_changes_nothing_by_itself(bench: &Bench) {
    let place = bench.place().await;
    bench.fill(&place, "a", 1).await;
    let before = bench.seat_view(place.seat).await;
    file(bench, cancel(bench, place.seat)).await;
    file(
        bench,
        Request {
            seat: place.seat,
            token: bench.token(),
            op: RequestOp::Pause { lane: None, by: Bytes::new() },
        },
    )
    .await;
    let after = bench.seat_view(place.seat).await;
    assert_eq!((after.progress, after.request_no), (before.progress, 2));
}

/// Contract 1.7: without an owner requests wait; the next owner and every commit learn how many there are.
pub async fn the_owner_learns_of_requests(bench: &Bench) {
    let place = bench.place().await;
    file(bench, cancel(bench, place.seat)).await;
    let resume = bench.seize(place.seat).await;
    assert_eq!((resume.request_no, resume.progress.requests_applied), (1, 0));
    file(bench, cancel(bench, place.seat)).await;
    let committed = bench.commit(bench.commit_of(place.seat, resume.progress.fence)).await;
    assert_eq!(committed.request_no, 2);
}

/// Contract 1.7: requests that had their effect are no longer listed; the list is paged by number.
pub async fn waiting_requests_are_paged(bench: &Bench) {
    let place = bench.place().await;
    for _ in 0..5 {
        file(bench, cancel(bench, place.seat)).await;
    }
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(2);
    bench.commit(commit).await;
    let numbers = async |after: u64, limit: usize| {
        let rows = rows!(bench, Query::Requests(place.seat, after, limit), Requests);
        rows.iter().map(|row| row.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(0, 10).await, [3, 4, 5]);
    assert_eq!(numbers(0, 2).await, [3, 4]);
    assert_eq!(numbers(4, 10).await, [5]);
}

/// Contract 1.7: a request that has to wait does not keep the others from having their effect.
pub async fn requests_are_answered_in_any_order(bench: &Bench) {
    let place = bench.place().await;
    let requests: Vec<Request> = (0..4).map(|_| cancel(bench, place.seat)).collect();
    for request in &requests {
        file(bench, request.clone()).await;
    }
    let fence = bench.seize(place.seat).await.progress.fence;
    let open = async || {
        let rows = rows!(bench, Query::Requests(place.seat, 0, 10), Requests);
        let counts = rows!(bench, Query::Counts(place.shard), Counts);
        let counted = counts.seats.iter().find(|(processor, _)| *processor == place.seat.processor);
        assert_eq!(counted.map(|(_, counts)| counts[3]), Some(rows.len() as u64));
        rows.iter().map(|row| row.number).collect::<Vec<_>>()
    };
    let mut commit = bench.commit_of(place.seat, fence);
    commit.answers = vec![Answered { number: 3, answer: Bytes::from_static(b"late") }];
    let fence = bench.commit(commit).await.fence;
    assert_eq!(open().await, [1, 2, 4]);
    assert_eq!(bench.seat_view(place.seat).await.progress.requests_applied, 0);
    assert_eq!(file(bench, requests[2].clone()).await, Accepted { number: 3, repeated: true });
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(3);
    commit.answers = vec![Answered { number: 1, answer: Bytes::new() }];
    bench.commit(commit).await;
    assert_eq!(open().await, [4], "those before it have had their effect too");
    assert_eq!(bench.seat_view(place.seat).await.progress.requests_applied, 3);
}

/// Contract 1.7: the outcome decided in the commit is kept with the token.
pub async fn an_answer_is_told_by_its_token(bench: &Bench) {
    let place = bench.place().await;
    let requests: Vec<Request> = (0..3).map(|_| cancel(bench, place.seat)).collect();
    for request in &requests {
        file(bench, request.clone()).await;
    }
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.requests_applied = Some(2);
    commit.answers = vec![Answered { number: 2, answer: Bytes::from_static(b"refused") }];
    bench.commit(commit).await;
    let told = async |request: &Request| {
        let before = TokenId(request.token.0 - 1);
        let rows = rows!(bench, Query::Tokens(place.seat, Some(before), 1), Tokens);
        let row = rows.into_iter().next().expect("its token is remembered");
        assert_eq!(row.token, request.token);
        (row.until.is_some(), row.answer)
    };
    assert_eq!(told(&requests[0]).await, (true, Bytes::new()));
    assert_eq!(told(&requests[1]).await, (true, Bytes::from_static(b"refused")));
    assert_eq!(told(&requests[2]).await, (false, Bytes::new()));
}

/// Contract 2, request: no such seat.
pub async fn a_request_to_an_unknown_seat_is_not_found(bench: &Bench) {
    let place = bench.place().await;
    let seat = Seat { processor: ProcessorId(9_999), ..place.seat };
    expect_error!(bench.store().request(cancel(bench, seat)).await, StoreError::NotFound { .. });
}
