//! The example of a store and lanes joined by hand: it runs, goes on, and its check can fail.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "../../examples/by_hand.rs"]
#[expect(dead_code, reason = "only `run` is called; `main` belongs to the example")]
mod by_hand;

async fn run(folder: &std::path::Path) -> String {
    let mut out = Vec::new();
    let in_order = by_hand::run(folder, 2_000, &mut out).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(in_order, "{text}");
    text
}

#[tokio::test]
async fn the_example_runs_in_order_and_goes_on_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let first = run(folder.path()).await;
    for part in [
        "sent   2000 orders of 500 customers",
        "says: synced",
        "ran    2000 orders in 500 lanes",
        "order checked: every lane ran in order, one at a time",
    ] {
        assert!(first.contains(part), "{part:?} is missing in:\n{first}");
    }
    let second = run(folder.path()).await;
    assert!(second.contains("ran    2000 orders in 500 lanes"), "{second}");
    let report = laneway_embedded::file::verify(folder.path()).unwrap();
    assert!(report.is_clean() && report.events == 4_000 && report.lanes == 500, "{report}");
}

#[test]
fn the_check_of_the_example_sees_two_at_a_time_and_one_out_of_turn() {
    let (one, other) = (laneway_testkit::bench::key("one"), laneway_testkit::bench::key("other"));
    let mut witness = by_hand::Witness::default();
    witness.begin(&one, 1);
    witness.begin(&other, 7);
    witness.end(&one);
    witness.begin(&one, 2);
    assert_eq!(witness.broken, 0);
    witness.begin(&one, 3);
    assert_eq!(witness.broken, 1, "two orders of a customer at once");
    witness.end(&other);
    witness.begin(&other, 9);
    assert_eq!(witness.broken, 2, "order 8 was left out");
}
