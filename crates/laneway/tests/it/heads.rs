//! Handlers that take the heads of several lanes: one call, an outcome each.

use std::sync::Arc;

use laneway::prelude::*;
use laneway::testing::App;
use laneway::{JobBatch, Terminal, WaitError};
use parking_lot::Mutex;

#[derive(Record, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[record(key = "lane")]
struct Row {
    lane: String,
    what: String,
}

fn rows(rows: &[(&str, &str)]) -> Vec<Row> {
    rows.iter().map(|(lane, what)| Row { lane: (*lane).to_owned(), what: (*what).to_owned() }).collect()
}

/// What each call got.
type Calls = Arc<Mutex<Vec<String>>>;

/// Does to each row what it says.
async fn insert(rows: HeadBatch<Row>, State(calls): State<Calls>) -> Result<&'static str> {
    let mut got: Vec<String> = rows.iter().map(|row| format!("{} {}", row.lane, row.what)).collect();
    got.sort();
    calls.lock().push(got.join(", "));
    let mut others = Ok("inserted with all others");
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(rows.ctx(index).key().expect("it has one").to_string(), row.lane, "each has its own run");
        match row.what.as_str() {
            "fails twice" if rows.ctx(index).attempt() < 3 => rows.fail(index, Error::new("told to fail")),
            "broken" => rows.fail(index, Error::permanent("told to break")),
            "asks" => rows.answer(index, &format!("an answer for {}", row.lane))?,
            "is done" => rows.done(index),
            "ends all" if rows.ctx(index).attempt() == 1 => others = Err(Error::new("all others fail")),
            _ => {}
        }
    }
    others
}

async fn started(on_failure: OnFailure) -> (App, Stream<Row>, Calls) {
    let calls = Calls::default();
    let app = App::new().state(Arc::clone(&calls));
    let stream = app.stream::<Row>("rows").partitions(1);
    let batch = Batch::Lanes { max: 10, within: secs(1) };
    app.processor("insert", &stream, insert).batch(batch).on_failure(on_failure);
    app.start().await.expect("it starts");
    (app, stream, calls)
}

async fn submitted(stream: &Stream<Row>, given: &[(&str, &str)]) -> JobBatch<String> {
    stream.submit_many_as(&rows(given)).await.expect("submitted")
}

#[tokio::test(start_paused = true)]
async fn each_lane_has_an_outcome_of_its_own() {
    let (app, stream, calls) = started(OnFailure::Drop).await;
    let jobs = submitted(&stream, &[("a", "asks"), ("b", "broken"), ("c", "fails twice"), ("d", "x")]).await;
    let behind = submitted(&stream, &[("a", "y"), ("c", "z")]).await;
    let said: Vec<String> = jobs
        .wait(mins(10))
        .await
        .into_iter()
        .map(|result| match result {
            Ok(result) => result,
            Err(WaitError::Ended { end: Terminal::Failed, error, .. }) => error,
            Err(error) => panic!("{error}"),
        })
        .collect();
    let all = "inserted with all others";
    assert_eq!(said, ["an answer for a", "dropped: told to break", all, all]);
    assert!(behind.wait(mins(10)).await.iter().all(Result::is_ok));
    app.run_until_quiet().await;
    let calls = calls.lock();
    assert_eq!(calls[0], "a asks, b broken, c fails twice, d x");
    let mut runs: Vec<&str> = calls.iter().flat_map(|call| call.split(", ")).collect();
    runs.sort_unstable();
    let c = "c fails twice";
    assert_eq!(runs, ["a asks", "a y", "b broken", c, c, c, "c z", "d x"], "only what failed runs again");
}

#[tokio::test(start_paused = true)]
async fn what_was_done_stays_done_when_the_call_fails() {
    let (app, stream, calls) = started(OnFailure::Park).await;
    stream.send_many(&rows(&[("a", "is done"), ("b", "ends all"), ("c", "x")])).await.expect("sent");
    app.run_until_quiet().await;
    assert_eq!(*calls.lock(), ["a is done, b ends all, c x", "b ends all", "c x"], "what failed runs alone");
    assert!(app.operations("insert").parked().await.expect("listed").is_empty());
}

#[tokio::test(start_paused = true)]
async fn data_that_is_no_record_fails_alone() {
    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "lane", kind = "row")]
    struct Other {
        lane: String,
    }
    let (app, stream, calls) = started(OnFailure::Park).await;
    app.stream::<Other>("rows").send(&Other { lane: "a".to_owned() }).await.expect("sent");
    stream.send_many(&rows(&[("b", "x"), ("c", "y")])).await.expect("sent");
    app.run_until_quiet().await;
    assert_eq!(*calls.lock(), ["b x, c y"]);
    let parked = app.operations("insert").parked().await.expect("listed");
    assert_eq!(parked.iter().map(|lane| lane.key.clone()).collect::<Vec<_>>(), [Some(key("a"))]);
}

fn key(text: &str) -> laneway::Key {
    laneway::Key::new(text.to_owned()).expect("a key")
}

#[tokio::test(start_paused = true)]
async fn lanes_of_two_types_go_to_two_handlers_in_one_run() {
    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "lane")]
    struct Ask {
        lane: String,
    }
    async fn ask(Event(ask): Event<Ask>) -> Result<String> {
        Ok(format!("{} asked", ask.lane))
    }
    let calls = Calls::default();
    let app = App::new().state(Arc::clone(&calls));
    let (stream, asks) = (app.stream::<Row>("rows").partitions(1), app.stream::<Ask>("rows"));
    let batch = Batch::Lanes { max: 10, within: secs(1) };
    app.processor("insert", &stream, insert).and(&asks, ask).batch(batch);
    app.start().await.expect("it starts");
    let first = asks.submit_as::<String>(&Ask { lane: "q".to_owned() }).await.expect("submitted");
    let jobs = submitted(&stream, &[("a", "asks"), ("b", "x")]).await;
    assert_eq!(first.wait(secs(10)).await.expect("done"), "q asked");
    let said: Vec<String> = jobs.wait(secs(10)).await.into_iter().map(|said| said.expect("done")).collect();
    assert_eq!(said, ["an answer for a", "inserted with all others"]);
    assert_eq!(*calls.lock(), ["a asks, b x"]);
}

#[derive(Record, Serialize, Deserialize, Debug, PartialEq)]
#[record(key = "lane")]
struct Seen {
    lane: String,
    count: u32,
}

/// Counts the rows of each lane and tells of each; a row may fail after that.
async fn count(rows: HeadBatch<Row>, counts: Each<LaneState<u32>>, out: Each<Emit<Seen>>) -> Result<u32> {
    for (index, row) in rows.iter().enumerate() {
        let mut count = match counts.of(index).await {
            Ok(count) => count,
            Err(error) => {
                rows.fail(index, error);
                continue;
            }
        };
        *count += 1;
        out.of(index).await?.send(Seen { lane: row.lane.clone(), count: *count })?;
        match row.what.as_str() {
            "fails once" if rows.ctx(index).attempt() == 1 => rows.fail(index, Error::new("told to fail")),
            "ends" => count.remove(),
            "asks" => rows.answer(index, &*count)?,
            _ => {}
        }
    }
    Ok(0)
}

#[tokio::test(start_paused = true)]
async fn each_head_has_its_state_and_emits_that_count_if_it_is_done() {
    let app = App::new();
    let (stream, seen) = (app.stream::<Row>("rows").partitions(1), app.stream::<Seen>("seen").partitions(1));
    app.processor("count", &stream, count).batch(Batch::Lanes { max: 10, within: secs(1) });
    app.start().await.expect("it starts");
    let given = [("a", "x"), ("b", "fails once"), ("c", "x"), ("a", "ends"), ("c", "x"), ("a", "x")];
    stream.send_many(&rows(&given)).await.expect("sent");
    app.run_until_quiet().await;
    let asked = stream.submit_as::<u32>(&rows(&[("c", "asks")])[0]).await.expect("submitted");
    assert_eq!(asked.wait(secs(60)).await.expect("done"), 3);
    app.run_until_quiet().await;
    let mut told: Vec<(String, u32)> =
        app.sent(&seen).await.into_iter().map(|seen| (seen.lane, seen.count)).collect();
    told.sort();
    let of = |lane: &str, count| (lane.to_owned(), count);
    let expected = [of("a", 1), of("a", 1), of("a", 2), of("b", 1), of("c", 1), of("c", 2), of("c", 3)];
    assert_eq!(told, expected, "a failed run left neither state nor emit, a removed state begins anew");
}

#[tokio::test(start_paused = true)]
async fn head_that_can_have_no_state_fails_alone() {
    #[derive(Record, Serialize, Deserialize)]
    #[record(keyless, kind = "row")]
    struct Loose {
        lane: String,
        what: String,
    }
    let app = App::new();
    let (stream, seen) = (app.stream::<Row>("rows").partitions(1), app.stream::<Seen>("seen"));
    app.processor("count", &stream, count).batch(Batch::Lanes { max: 10, within: secs(1) });
    app.start().await.expect("it starts");
    let loose = Loose { lane: "none".to_owned(), what: "x".to_owned() };
    app.stream::<Loose>("rows").send(&loose).await.expect("sent");
    stream.send_many(&rows(&[("a", "x")])).await.expect("sent");
    app.run_until_quiet().await;
    assert_eq!(app.sent(&seen).await, [Seen { lane: "a".to_owned(), count: 1 }]);
    let parked = app.operations("count").parked().await.expect("listed");
    assert!(parked.len() == 1 && parked[0].cause.contains("no key"), "{parked:?}");
}

#[tokio::test]
async fn batch_of_one_lane_for_a_handler_of_many_is_a_fault() {
    let app = App::new().state(Calls::default());
    let stream = app.stream::<Row>("rows");
    app.processor("insert", &stream, insert).batch(Batch::lane(10));
    let faults = app.start().await.expect_err("it cannot be").faults;
    let wrong = "batch is over one lane, must be over lanes: its handler takes HeadBatch";
    assert_eq!(faults, [format!(r#"processor "insert": {wrong}"#)]);
}
