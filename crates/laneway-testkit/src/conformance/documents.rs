//! Cases about the second seam: small values changed by compare-and-set.

use bytes::Bytes;
use laneway_core::{ConflictReason, limits};

use super::expect::{expect_conflict, expect_refused};
use crate::bench::Bench;

fn bytes(text: &str) -> Bytes {
    Bytes::from(text.to_owned())
}

/// Seam documents: a document that does not exist is none.
pub async fn a_missing_document_is_none(bench: &Bench) {
    assert_eq!(bench.documents().get("nodes").await.expect("readable"), None);
    assert!(bench.documents().list("").await.expect("readable").is_empty());
}

/// Seam documents: versions count changes from 1.
pub async fn a_document_counts_its_changes(bench: &Bench) {
    let documents = bench.documents();
    let mut expect = None;
    for (index, text) in ["one", "two", "two"].into_iter().enumerate() {
        let version = documents.put("nodes", expect, bytes(text)).await.expect("the version is right");
        assert_eq!(version, index as u64 + 1);
        let document = documents.get("nodes").await.expect("readable").expect("there");
        assert_eq!(
            (document.name.as_str(), document.version, document.bytes),
            ("nodes", version, bytes(text))
        );
        expect = Some(version);
    }
}

/// Seam documents: a put against another version conflicts and changes nothing.
pub async fn a_put_against_another_version_conflicts(bench: &Bench) {
    let documents = bench.documents();
    expect_conflict!(
        documents.put("nodes", Some(1), bytes("x")).await,
        ConflictReason::Version { actual: None }
    );
    documents.put("nodes", None, bytes("one")).await.expect("it does not exist");
    for wrong in [None, Some(0), Some(2)] {
        expect_conflict!(
            documents.put("nodes", wrong, bytes("x")).await,
            ConflictReason::Version { actual: Some(1) }
        );
    }
    assert_eq!(documents.get("nodes").await.expect("readable").expect("there").bytes, bytes("one"));
}

/// Seam documents: a delete names the version; versions go on growing after it, so an old writer is refused.
pub async fn versions_go_on_after_a_removal(bench: &Bench) {
    let documents = bench.documents();
    let first = documents.put("lease", None, bytes("one")).await.expect("it does not exist");
    expect_conflict!(documents.delete("lease", first + 1).await, ConflictReason::Version { actual: Some(1) });
    documents.delete("lease", first).await.expect("the version is right");
    assert_eq!(documents.get("lease").await.expect("readable"), None);
    expect_conflict!(documents.delete("lease", first).await, ConflictReason::Version { actual: None });
    expect_conflict!(
        documents.put("lease", Some(first), bytes("late")).await,
        ConflictReason::Version { actual: None }
    );
    let second = documents.put("lease", None, bytes("two")).await.expect("it does not exist");
    assert!(second > first, "{second} after {first}");
}

/// Seam documents: a list has every document whose name begins so, by name.
pub async fn documents_are_listed_by_prefix(bench: &Bench) {
    let documents = bench.documents();
    for name in ["task/b", "task/a", "node/a", "task", "tasks"] {
        documents.put(name, None, bytes(name)).await.expect("it does not exist");
    }
    let names = async |prefix: &str| {
        let listed = documents.list(prefix).await.expect("readable");
        listed.into_iter().map(|document| document.name).collect::<Vec<_>>()
    };
    assert_eq!(names("task/").await, ["task/a", "task/b"]);
    assert_eq!(names("task").await, ["task", "task/a", "task/b", "tasks"]);
    assert_eq!(names("").await.len(), 5);
    assert!(names("x").await.is_empty());
}

/// Seam documents: of several writers against one version exactly one wins.
pub async fn one_of_many_writers_wins(bench: &Bench) {
    let documents = bench.documents();
    let puts = (0..8).map(|index| {
        let documents = documents.clone();
        crate::seam::spawn(
            async move { documents.put("lease", None, bytes(&index.to_string())).await.is_ok() },
        )
    });
    let mut winners = 0;
    for put in puts.collect::<Vec<_>>() {
        winners += usize::from(put.await.expect("a put does not panic"));
    }
    assert_eq!(winners, 1);
    assert_eq!(documents.get("lease").await.expect("readable").expect("there").version, 1);
}

/// Invariant C1: names have a longest length, which itself is fine.
pub async fn document_names_are_bounded(bench: &Bench) {
    let documents = bench.documents();
    let long = "n".repeat(limits::DOCUMENT_NAME_BYTES_MAX + 1);
    expect_refused!(documents.put(&long, None, bytes("x")).await);
    documents.put(&long[1..], None, bytes("x")).await.expect("the limit itself is fine");
}

/// Contract 5: where a store has a clock, it is the one it goes by.
pub async fn the_clock_is_the_stores(bench: &Bench) {
    let clock = bench.documents().clock().await.expect("readable");
    if bench.clock_moves() {
        assert!(clock.is_none_or(|time| time == bench.now()), "{clock:?}");
        bench.advance(std::time::Duration::from_secs(3));
        let clock = bench.documents().clock().await.expect("readable");
        assert!(clock.is_none_or(|time| time == bench.now()), "{clock:?}");
    }
}
