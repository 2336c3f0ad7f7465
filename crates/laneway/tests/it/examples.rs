//! Every example runs to its end and says what it is meant to say.

#[expect(dead_code, reason = "an example's main is not called from here")]
#[path = "../../examples/newest_wins.rs"]
mod newest_wins;
#[expect(dead_code, reason = "an example's main is not called from here")]
#[path = "../../examples/orders.rs"]
mod orders;
#[expect(dead_code, reason = "an example's main is not called from here")]
#[path = "../../examples/outbox.rs"]
mod outbox;
#[expect(dead_code, reason = "an example's main is not called from here")]
#[path = "../../examples/poison.rs"]
mod poison;
#[expect(dead_code, reason = "an example's main is not called from here")]
#[path = "../../examples/progress.rs"]
mod progress;

#[track_caller]
fn check(said: &[u8], expected: &[&str]) {
    let said = String::from_utf8_lossy(said);
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn orders_keep_their_totals_over_a_restart() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut said = Vec::new();
    orders::run(folder.path(), &mut said).await.expect("the first run");
    check(
        &said,
        &[
            "sent   ann's order number 1, synced",
            "sent   ann's order number 2, synced",
            "sent   bob's order number 1, synced",
            "sent   bob's order number 2, synced",
            "done   ann: 3 orders, 1050 cents",
            "done   bob: 3 orders, 420 cents",
            "letter dear ann, you have passed the limit with 1050 cents",
        ],
    );
    said.clear();
    orders::run(folder.path(), &mut said).await.expect("the second run");
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("done   ann: 6 orders, 2100 cents"), "{said}");
    assert!(!said.contains("letter dear ann"), "once is enough: {said}");
}

#[tokio::test]
async fn newest_wins_runs_the_first_and_the_last_change() {
    let mut said = Vec::new();
    newest_wins::run(&mut said).await.expect("it runs");
    check(
        &said,
        &[
            "sync   web: nothing -> revision 1",
            "stale  web: revision 50 came after revision 100",
            "sync   web: revision 1 -> revision 100",
            "job    web: revision 2 was superseded and never ran",
            "sync   web: revision 100 -> gone",
        ],
    );
}

#[tokio::test]
async fn progress_shows_while_a_job_runs() {
    let mut said = Vec::new();
    progress::run(&mut said).await.expect("it runs");
    check(
        &said,
        &[
            "asked  twice, one job: true",
            "first  is running, 60 of 120: lines of a1",
            "second is waiting",
            "second is cancelled",
            "result 120 lines on 3 pages",
        ],
    );
}

#[tokio::test]
async fn poison_stops_its_lane_until_somebody_decides() {
    let mut said = Vec::new();
    poison::run(&mut said).await.expect("it runs");
    check(
        &said,
        &[
            "first  is parked after 3 attempts",
            "booked ann 3",
            "parked lane bob: account bob is closed",
            "second is waiting: an event is parked: account bob is closed",
            "booked bob 1, bob 2, in order, after a retry",
            "poison is failed",
            "dead   account bob is closed",
            "booked bob 5, bob 4, bob 6",
        ],
    );
}

#[tokio::test]
async fn outbox_changes_value_and_events_together() {
    let mut said = Vec::new();
    outbox::run(&mut said).await.expect("it runs");
    check(
        &said,
        &[
            "seen   version 0",
            "sent   event 1 with version 1",
            "sent   event 2 with version 1",
            "clash  expect_object_version: the object has version 1",
            "sent   event 3",
            "label  ann, Chur (moved to Chur, 3 moves)",
        ],
    );
}
