//! One event of a batch panics: it alone is given up, and each of the others has its own result.

use std::sync::Arc;

use laneway::prelude::*;
use laneway::testing::App;
use laneway::{JobBatch, Terminal, WaitError};
use parking_lot::Mutex;

#[derive(Record, Serialize, Deserialize, Debug, Clone)]
#[record(key = "lane")]
struct Row {
    lane: String,
    what: String,
}

/// Calls of a handler, by the rows that came with each.
type Calls = Arc<Mutex<Vec<Vec<String>>>>;

fn note(calls: &Calls, rows: &[Row]) {
    calls.lock().push(rows.iter().map(|row| row.what.clone()).collect());
}

fn take(row: &Row) -> String {
    assert_ne!(row.what, "poison", "as told");
    format!("took {}", row.what)
}

async fn one(Event(row): Event<Row>, State(calls): State<Calls>) -> Result<String> {
    note(&calls, std::slice::from_ref(&row));
    Ok(take(&row))
}

async fn lane(batch: LaneBatch<Row>, State(calls): State<Calls>) -> Result<()> {
    note(&calls, &batch);
    for (index, row) in batch.iter().enumerate() {
        batch.answer(index, &take(row))?;
        batch.done_through(index + 1);
    }
    Ok(())
}

async fn heads(batch: HeadBatch<Row>, State(calls): State<Calls>) -> Result<()> {
    note(&calls, &batch);
    for (index, row) in batch.iter().enumerate() {
        batch.answer(index, &take(row))?;
    }
    Ok(())
}

const ONE_LANE: [&str; 4] = ["x"; 4];
const FOUR_LANES: [&str; 4] = ["a", "b", "c", "d"];

/// The third of four rows panics, in a processor that is begun by `with`.
async fn check(lanes: [&str; 4], with: impl AsyncFn(&App, &Stream<Row>)) -> Vec<Vec<String>> {
    let calls = Calls::default();
    let app = App::new().state(Arc::clone(&calls));
    let stream = app.stream::<Row>("rows").partitions(1);
    with(&app, &stream).await;
    app.start().await.expect("it starts");
    let operations = app.operations("take");
    operations.pause("until all are there").await.expect("it runs");
    let whats = ["one", "two", "poison", "four"];
    let rows: Vec<Row> = lanes
        .into_iter()
        .zip(whats)
        .map(|(lane, what)| Row { lane: lane.to_owned(), what: what.to_owned() })
        .collect();
    let jobs: JobBatch<String> = stream.submit_many_as(&rows).await.expect("submitted");
    operations.resume().await.expect("it runs");
    app.run_until_quiet().await;
    for (answer, what) in jobs.wait(secs(10)).await.into_iter().zip(whats) {
        match answer {
            Ok(result) => assert_eq!(result, format!("took {what}")),
            Err(WaitError::Ended { end: Terminal::Failed, .. }) if what == "poison" => {}
            other => panic!("{what}: {other:?}"),
        }
    }
    let dead = operations.dead_letters().await.expect("listed");
    assert_eq!(dead.len(), 1, "the guilty one alone: {dead:?}");
    calls.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn single_events_of_a_lane_batch_fail_alone_and_those_before_stay_done() {
    let calls = check(ONE_LANE, async |app, stream| {
        let once = Retry { max_attempts: 1, ..Retry::default() };
        app.processor("take", stream, one)
            .batch(Batch::lane(4))
            .retry(once)
            .on_failure(OnFailure::DeadLetter);
    })
    .await;
    assert_eq!(calls, ["one", "two", "poison", "four"].map(|what| vec![what.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn single_events_of_several_lanes_fail_alone() {
    let calls = check(FOUR_LANES, async |app, stream| {
        let once = Retry { max_attempts: 1, ..Retry::default() };
        app.processor("take", stream, one)
            .batch(Batch::lanes(4))
            .retry(once)
            .on_failure(OnFailure::DeadLetter);
    })
    .await;
    assert_eq!(calls.len(), 4, "no event ran twice: {calls:?}");
}

#[tokio::test(start_paused = true)]
async fn lane_batch_that_panics_settles_what_it_has_done() {
    let calls = check(ONE_LANE, async |app, stream| {
        let once = Retry { max_attempts: 1, ..Retry::default() };
        app.processor("take", stream, lane).retry(once).on_failure(OnFailure::DeadLetter);
    })
    .await;
    assert_eq!(calls, [vec!["one", "two", "poison", "four"], vec!["poison"], vec!["four"]]);
}

#[tokio::test(start_paused = true)]
async fn heads_that_were_answered_before_a_panic_stay_answered() {
    let calls = check(FOUR_LANES, async |app, stream| {
        let once = Retry { max_attempts: 1, ..Retry::default() };
        app.processor("take", stream, heads).retry(once).on_failure(OnFailure::DeadLetter);
    })
    .await;
    assert!(calls[1..].iter().all(|rows| rows.len() == 1), "those left run alone: {calls:?}");
}
