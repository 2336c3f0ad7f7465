//! Cases about `stash`: large results arrive in chunks before the commit that names them (contract 3.11).

use std::time::Duration;

use bytes::Bytes;
use laneway_core::store::{JobResult, JobState, Stash};
use laneway_core::{EventId, JobNumber, Nonce, Partition, Shard, StoreError, limits};

use super::expect::{expect_error, expect_refused};
use crate::bench::{Bench, Place, job_draft, job_end, passed};

fn chunk(place: &Place, id: EventId, nonce: Nonce, index: u32, text: &str) -> Stash {
    Stash { shard: place.shard, id, nonce, index, bytes: Bytes::from(text.to_owned()) }
}

async fn stash(bench: &Bench, chunk: Stash) {
    bench.store().stash(chunk).await.expect("a chunk of a job");
}

async fn submit(bench: &Bench) -> (Place, EventId) {
    let place = bench.place().await;
    let id = bench.send_one(&place, job_draft("a", "job", place.seat.processor)).await;
    (place, id)
}

async fn end(bench: &Bench, place: &Place, id: EventId, result: JobResult) {
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    commit.jobs = vec![job_end(id, result)];
    bench.commit(commit).await;
}

async fn result(bench: &Bench, place: &Place, id: EventId) -> Option<Bytes> {
    match bench.job(place.shard, JobNumber::Event(id)).await {
        JobState::Ended { result, .. } => result,
        other => panic!("the job has ended: {other:?}"),
    }
}

/// Contract 3.11: the chunks that a commit names are the result, in order of their index.
pub async fn named_chunks_are_the_result(bench: &Bench) {
    let (place, id) = submit(bench).await;
    let nonce = bench.nonce();
    for (index, text) in [(2, "three"), (0, "one-"), (1, "two-")] {
        stash(bench, chunk(&place, id, nonce, index, text)).await;
    }
    end(bench, &place, id, JobResult::Stashed { nonce, chunks: 3 }).await;
    assert_eq!(result(bench, &place, id).await, Some(Bytes::from_static(b"one-two-three")));
}

/// Contract 3.11: chunks are invisible until a commit names them.
pub async fn chunks_are_invisible_until_named(bench: &Bench) {
    let (place, id) = submit(bench).await;
    let before = bench.snapshot(place.shard).await;
    stash(bench, chunk(&place, id, bench.nonce(), 0, "secret")).await;
    assert_eq!(bench.snapshot(place.shard).await, before);
    let state = bench.job(place.shard, JobNumber::Event(id)).await;
    assert!(matches!(state, JobState::Pending { .. }), "{state:?}");
}

/// Contract 3.11: two runs never mix their chunks, because each has a nonce of its own.
pub async fn two_runs_do_not_mix_their_chunks(bench: &Bench) {
    let (place, id) = submit(bench).await;
    let (lost, won) = (bench.nonce(), bench.nonce());
    for (nonce, text) in [(lost, "lost-"), (won, "won-")] {
        for index in 0..2 {
            stash(bench, chunk(&place, id, nonce, index, &format!("{text}{index};"))).await;
        }
    }
    end(bench, &place, id, JobResult::Stashed { nonce: won, chunks: 2 }).await;
    assert_eq!(result(bench, &place, id).await, Some(Bytes::from_static(b"won-0;won-1;")));
}

/// Contract 3.11: a chunk may be sent again; the last bytes stand.
pub async fn a_chunk_may_be_sent_again(bench: &Bench) {
    let (place, id) = submit(bench).await;
    let nonce = bench.nonce();
    for _ in 0..2 {
        stash(bench, chunk(&place, id, nonce, 0, "same")).await;
    }
    end(bench, &place, id, JobResult::Stashed { nonce, chunks: 1 }).await;
    assert_eq!(result(bench, &place, id).await, Some(Bytes::from_static(b"same")));
}

/// Contract 3.11: a chunk has a largest size, which itself is fine.
pub async fn a_chunk_is_bounded(bench: &Bench) {
    let (place, id) = submit(bench).await;
    let nonce = bench.nonce();
    let big = "x".repeat(limits::CHUNK_BYTES_MAX);
    expect_refused!(bench.store().stash(chunk(&place, id, nonce, 0, &format!("{big}x"))).await);
    stash(bench, chunk(&place, id, nonce, 0, &big)).await;
    end(bench, &place, id, JobResult::Stashed { nonce, chunks: 1 }).await;
    assert_eq!(result(bench, &place, id).await.map(|bytes| bytes.len()), Some(limits::CHUNK_BYTES_MAX));
}

/// Contract 3.11: chunks that no commit named expire; named ones live as long as the end of their job.
pub async fn unnamed_chunks_expire_and_named_ones_do_not(bench: &Bench) {
    if !bench.clock_moves() {
        return;
    }
    let (place, id) = submit(bench).await;
    let (named, unnamed) = (bench.nonce(), bench.nonce());
    stash(bench, chunk(&place, id, unnamed, 0, "left behind")).await;
    stash(bench, chunk(&place, id, named, 0, "kept")).await;
    let fence = bench.seize(place.seat).await.progress.fence;
    let mut commit = bench.commit_of(place.seat, fence);
    commit.passed = passed(&[id]);
    let mut ended = job_end(id, JobResult::Stashed { nonce: named, chunks: 1 });
    ended.keep = 5 * limits::CHUNK_KEEP;
    commit.jobs = vec![ended];
    bench.commit(commit).await;
    assert_eq!(bench.trim(place.shard).await.rows, 0);
    bench.advance(limits::CHUNK_KEEP + Duration::from_secs(1));
    assert_eq!(bench.trim(place.shard).await.rows, 1, "the chunk that was left behind");
    assert_eq!(result(bench, &place, id).await, Some(Bytes::from_static(b"kept")));
    bench.advance(5 * limits::CHUNK_KEEP);
    assert!(bench.trim(place.shard).await.rows >= 1, "the named one goes with its job");
}

/// Contract 2, stash: no such shard.
pub async fn stashing_in_an_unknown_shard_is_not_found(bench: &Bench) {
    let (place, id) = submit(bench).await;
    let mut lost = chunk(&place, id, bench.nonce(), 0, "x");
    lost.shard = Shard { partition: Partition(3), ..place.shard };
    expect_error!(bench.store().stash(lost).await, StoreError::NotFound { .. });
}
