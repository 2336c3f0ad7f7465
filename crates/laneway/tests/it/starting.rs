//! Opening, starting, stopping.

use std::sync::Arc;

use laneway::core::StreamSettings;
use laneway::engine::handler::{LaneAnswer, Run};
use laneway::engine::{ProcessorSettings, Registration};
use laneway::prelude::*;

#[derive(Record, Serialize, Deserialize)]
#[record(key = "account")]
struct Payment {
    account: String,
    cents: i64,
}

#[derive(Record, Serialize, Deserialize)]
#[record(key = "account")]
struct Refused {
    account: String,
}

struct Bank;

async fn book(Event(_): Event<Payment>, State(_): State<Bank>, _: Emit<Refused>) -> Result<()> {
    Ok(())
}

async fn count(Event(_): Event<Payment>, mut count: LaneState<u32>) -> Result<u32> {
    *count += 1;
    Ok(*count)
}

fn payment() -> Payment {
    Payment { account: "a1".to_owned(), cents: 5 }
}

#[tokio::test]
async fn unknown_stores_are_refused_with_the_known_ones() {
    for (url, wrong) in [
        ("data", r#"store url "data": has no scheme, known are memory:, file:PATH"#),
        ("ftp://x", r#"store url "ftp://x": unknown scheme "ftp", known are memory:, file:PATH"#),
        ("file:", r#"store url "file:": file: needs a folder, such as file:./data"#),
        ("memory:x", r#"store url "memory:x": memory: takes nothing behind it"#),
    ] {
        // What other features bring is behind that.
        let refused = Laneway::open(url).await.expect_err("refused").to_string();
        assert!(refused.starts_with(wrong), "{refused}");
    }
}

#[tokio::test]
async fn start_tells_all_faults_at_once_and_runs_nothing() {
    let app = Laneway::open("memory:").await.expect("opened");
    let payments = app.stream::<Payment>("payments").partitions(0);
    app.processor("book", &payments, book).concurrency(0);
    app.processor("count", &payments, count).timeout(secs(0));
    app.processor("count", &payments, count);
    let elsewhere = app.stream::<Refused>("elsewhere");
    async fn refuse(Event(_): Event<Refused>) -> Result<()> {
        Ok(())
    }
    app.stream::<Refused>("refused");
    app.processor("wide", &payments, count).and(&elsewhere, refuse);
    let mut faults = app.start().await.expect_err("faults").faults;
    faults.sort();
    assert_eq!(
        faults,
        [
            r#"processor "book": concurrency is 0, must be 1 to 100,000"#,
            r#"processor "book": its handler takes Emit<it::starting::Refused>, and several streams carry it: ["elsewhere", "refused"]"#,
            r#"processor "book": its handler takes State<it::starting::Bank>, and no such value was given to Laneway::state"#,
            r#"processor "count": declared 2 times"#,
            r#"processor "count": timeout is 0, must be more than nothing (leave it out for no limit)"#,
            r#"processor "wide": it runs on stream "payments" and cannot take refused from stream "elsewhere""#,
            r#"stream "payments": partitions is 0, must be 1 to 4096"#,
        ]
    );
}

#[tokio::test]
async fn settings_that_are_not_mentioned_stay_as_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("file:{}", folder.path().display());
    let first = Laneway::open(&url).await.expect("opened");
    let payments = first.stream::<Payment>("payments").partitions(3).keep(days(2));
    payments.send(&payment()).await.expect("sent");
    drop((first, payments));
    let second = Laneway::open(&url).await.expect("opened again");
    second.stream::<Payment>("payments").max_pending(9_000).send(&payment()).await.expect("sent");
    let info = second.engine().catalogue().stream("payments").await.expect("it is there");
    let settings = (info.settings.partitions, info.settings.keep, info.settings.max_pending);
    assert_eq!(settings, (3, days(2), Some(9_000)));
}

#[tokio::test]
async fn an_app_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("file:{}", folder.path().display());
    for expected in 1..=3 {
        let app = Laneway::open(&url).await.expect("opened");
        let payments = app.stream::<Payment>("payments").partitions(2);
        app.processor("count", &payments, count);
        app.start().await.expect("it starts");
        let job = payments.submit_as::<u32>(&payment()).await.expect("submitted");
        assert_eq!(job.wait(secs(30)).await.expect("done"), expected);
        app.stop(secs(10)).await;
    }
}

#[tokio::test]
async fn what_changes_after_the_start_is_a_fault_until_it_counts() {
    let app = Laneway::open("memory:").await.expect("opened");
    let payments = app.stream::<Payment>("payments");
    let processor = app.processor("count", &payments, count);
    app.start().await.expect("it starts");
    processor.concurrency(3);
    let faults = app.start().await.expect_err("faults").faults;
    let late = "it was changed after its start; that counts when the app is stopped and started again";
    assert_eq!(faults, [format!(r#"processor "count": {late}"#)]);
    app.stop(secs(5)).await;
    app.start().await.expect("what was changed counts now");
    let _late = payments.partitions(9).keep(days(1));
    for _ in 0..2 {
        let faults = app.start().await.expect_err("nobody mended it").faults;
        assert_eq!(faults, [r#"stream "payments": its settings were changed after its first use"#]);
    }
    app.stop(secs(5)).await;
}

#[tokio::test]
async fn what_the_store_would_refuse_is_told_with_all_other_faults_and_changes_nothing() {
    let app = Laneway::open("memory:").await.expect("opened");
    let three = StreamSettings { partitions: 3, ..StreamSettings::default() };
    app.engine().define_stream("payments", three.clone()).await.expect("made");
    app.engine().define_stream("other", three.clone()).await.expect("made");
    app.engine().register(&Registration::new("count", "other")).await.expect("made");
    let payments = app.stream::<Payment>("payments").partitions(5).keep(days(1));
    let bad = app.stream::<Payment>("bad name");
    app.stream::<Refused>("refused");
    app.processor("count", &payments, count);
    app.processor("book", &payments, book);
    app.processor("no name", &bad, count);
    let expected = [
        r#"processor "book": its handler takes State<it::starting::Bank>, and no such value was given to Laneway::state"#,
        r#"processor "count": name of a processor is count, must be unique; it is registered on stream other"#,
        r#"processor "no name": name of a processor is "no name", must be 1 to 128 letters, digits, '.', '_' or '-'"#,
        r#"stream "bad name": name of a stream is "bad name", must be 1 to 128 letters, digits, '.', '_' or '-'"#,
        r#"stream "payments": partitions is 5, must be 3, which never changes"#,
    ];
    for _ in 0..2 {
        let mut faults = app.start().await.expect_err("nobody mended them").faults;
        faults.sort();
        assert_eq!(faults, expected);
    }
    let streams = app.engine().catalogue().streams().await.expect("read");
    let streams: Vec<_> = streams.iter().map(|info| (info.name.as_str(), &info.settings)).collect();
    assert_eq!(streams, [("other", &three), ("payments", &three)]);
}

#[tokio::test]
async fn start_that_fails_leaves_alone_what_ran_before() {
    let app = Laneway::open("memory:").await.expect("opened");
    let payments = app.stream::<Payment>("payments").partitions(1);
    app.processor("first", &payments, count);
    app.start().await.expect("it starts");
    let taken = |run: Run| async move { run.lanes.iter().map(LaneAnswer::all_done).collect() };
    app.engine().process("taken", "payments", ProcessorSettings::default(), Arc::new(taken)).await.unwrap();
    app.processor("second", &payments, count);
    app.processor("taken", &payments, count);
    let faults = app.start().await.expect_err("the name is taken").faults;
    assert_eq!(faults, [r#"processor "taken": processor "taken" runs on this node already"#]);
    let runs = app.engine().processors().await.expect("read");
    let runs: Vec<_> = runs.iter().filter(|view| view.runs_here).map(|view| view.name.as_str()).collect();
    assert_eq!(runs, ["first", "taken"]);
    let job = payments.submit_as::<u32>(&payment()).processor("first").await.expect("submitted");
    assert_eq!(job.wait(secs(30)).await.expect("done"), 1);
    app.stop(secs(5)).await;
}
