//! Opening, starting, stopping.

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
        ("redis://x", r#"store url "redis://x": unknown scheme "redis", known are memory:, file:PATH"#),
        ("file:", r#"store url "file:": file: needs a folder, such as file:./data"#),
        ("memory:x", r#"store url "memory:x": memory: takes nothing behind it"#),
    ] {
        assert_eq!(Laneway::open(url).await.expect_err("refused").to_string(), wrong);
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
async fn what_changes_after_the_start_is_a_fault_of_the_next() {
    let app = Laneway::open("memory:").await.expect("opened");
    let payments = app.stream::<Payment>("payments");
    let processor = app.processor("count", &payments, count);
    app.start().await.expect("it starts");
    processor.concurrency(3);
    let _late = payments.partitions(9);
    let faults = app.start().await.expect_err("faults").faults;
    assert_eq!(
        faults,
        [
            r#"processor "count": it was changed after its start"#,
            r#"stream "payments": its settings were changed after its first use"#,
        ]
    );
    app.stop(secs(5)).await;
}
