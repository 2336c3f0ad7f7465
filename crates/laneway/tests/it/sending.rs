//! Sending and submitting: what is refused, what is told of many, what a repeat does.

use laneway::prelude::*;
use laneway::testing::App;
use laneway::{Append, JobError, SendError, SubmitError};

#[derive(Record, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[record(key = "pod")]
struct Pod {
    pod: Option<String>,
    number: usize,
}

fn pod(name: &str, number: usize) -> Pod {
    Pod { pod: Some(name.to_owned()), number }
}

#[tokio::test]
async fn expected_version_without_an_object_is_refused() {
    let app = App::new();
    let pods = app.stream::<Pod>("pods");
    let wrong = "expect_object_version is 7, must be absent unless an object is written or removed along";
    let one = pods.send(&pod("web", 1)).expect_object_version(7).await.expect_err("one");
    assert_eq!(one.to_string(), wrong);
    let many = pods.send_many(&[pod("web", 1)]).expect_object_version(7).await.expect_err("many");
    assert_eq!(many.to_string(), wrong);
    assert!(app.sent(&pods).await.is_empty());
}

#[tokio::test]
async fn object_without_a_record_is_refused() {
    let app = App::new();
    let none = app.stream::<Pod>("pods").send_many(&[]).object(&"web").await.expect_err("no lane");
    assert_eq!(none.to_string(), "events with one object is 0, must be 1 to 1000");
}

/// Two thousand records, the one at `keyless` without a key.
fn two_thousand(keyless: usize) -> Vec<Pod> {
    let pod = |number: usize| {
        if number == keyless { Pod { pod: None, number } } else { pod(&format!("p{}", number % 50), number) }
    };
    (0..2_000).map(pod).collect()
}

#[tokio::test]
async fn one_that_can_never_be_appended_keeps_all_from_being_sent() {
    let app = App::new();
    let pods = app.stream::<Pod>("pods").mode(Mode::Latest);
    let error = pods.send_many(&two_thousand(1_500)).await.expect_err("a keyless one");
    assert!(matches!(error, SendError::OneOf { index: 1_500, .. }), "{error:?}");
    assert_eq!(error.to_string(), "record 1500: key is absent, must be given in a stream of mode latest");
    assert!(app.sent(&pods).await.is_empty(), "the thousand before it was not sent");
    let long = [pod("web", 1), pod(&"x".repeat(513), 2)];
    let error = pods.send_many(&long).await.expect_err("a key that is too long");
    assert!(error.to_string().starts_with("record 1: key is 513 bytes, must be 1 to 512"), "{error}");
    let jobs = pods.submit_many_as::<()>(&long).await.expect_err("a key that is too long");
    assert!(matches!(jobs, SubmitError::Send(SendError::OneOf { index: 1, .. })), "{jobs:?}");
}

#[tokio::test]
async fn nothing_is_tried_behind_a_thousand_that_was_not_appended() {
    let app = App::new();
    let pods = app.stream::<Pod>("pods").partitions(1).max_pending(1_200);
    let receipts = pods.send_many(&two_thousand(0)).await.expect("all could be appended");
    assert_eq!(receipts.len(), 2_000);
    assert!(receipts[..1_000].iter().all(Result::is_ok), "there is room for a thousand");
    assert!(receipts[1_000..].iter().all(|receipt| matches!(receipt, Err(SendError::Full(_)))));
    let mut three = two_thousand(0);
    three.extend(two_thousand(0));
    let receipts = pods.send_many(&three).await.expect("all could be appended");
    assert!(receipts[..1_000].iter().all(|receipt| matches!(receipt, Err(SendError::Full(_)))));
    assert!(receipts[1_000..].iter().all(|receipt| matches!(receipt, Err(SendError::Behind))));
    assert_eq!(receipts.len(), 4_000);
}

#[tokio::test]
async fn many_that_were_named_are_sent_once() {
    let app = App::new();
    let pods = app.stream::<Pod>("pods");
    let all = two_thousand(7);
    // The first try came no further than a thousand and a half.
    let some = pods.send_many(&all[..1_500]).dedup_id("import").await.expect("sent");
    let again = pods.send_many(&all).dedup_id("import").await.expect("sent");
    let was = |index: usize| again[index].as_ref().expect("appended").append;
    assert!((0..1_500).all(|index| was(index) == Append::Duplicate));
    assert!((1_500..2_000).all(|index| was(index) == Append::New));
    assert_eq!(again[7].as_ref().unwrap().reference, some[7].as_ref().unwrap().reference, "also the keyless");
    assert_eq!(app.sent(&pods).await.len(), 2_000);
    let mut other = all;
    other[3].number = 99;
    let answers = pods.send_many(&other[..5]).dedup_id("import").await.expect("sent");
    assert!(matches!(answers[3], Err(SendError::Conflict(_))), "another body: {:?}", answers[3]);
}

#[tokio::test]
async fn dedup_id_stands_for_type_headers_and_data() {
    #[derive(Record, Serialize, Deserialize)]
    #[record(key = "pod")]
    struct Renamed {
        pod: Option<String>,
        number: usize,
    }
    let app = App::new();
    let (pods, renamed) = (app.stream::<Pod>("pods"), app.stream::<Renamed>("pods"));
    let web = pod("web", 1);
    pods.send(&web).header("a", "1").header("b", "2").dedup_id("d").await.expect("new");
    let same = pods.send(&web).header("b", "2").header("a", "1").priority(2).dedup_id("d").await;
    assert_eq!(same.expect("headers have no order").append, Append::Duplicate);
    let headers = pods.send(&web).header("a", "1").header("b", "3").dedup_id("d").await;
    assert!(matches!(headers, Err(SendError::Conflict(_))), "{headers:?}");
    let moved = pods.send(&web).header("a", "1b").header("", "2").dedup_id("d").await;
    assert!(matches!(moved, Err(SendError::Conflict(_))), "{moved:?}");
    let other = Renamed { pod: web.pod, number: 1 };
    let kind = renamed.send(&other).header("a", "1").header("b", "2").dedup_id("d").await;
    assert!(matches!(kind, Err(SendError::Conflict(_))), "{kind:?}");
}

async fn echo(Event(pod): Event<Pod>) -> Result<usize> {
    Ok(pod.number)
}

#[tokio::test(start_paused = true)]
async fn results_of_many_jobs_come_in_the_order_of_their_records() {
    let app = App::new();
    let pods = app.stream::<Pod>("pods").partitions(8);
    app.processor("echo", &pods, echo);
    app.start().await.expect("it starts");
    let records: Vec<Pod> = (0..100).map(|number| pod(&format!("p{}", number % 13), number)).collect();
    let batch = pods.submit_many_as::<usize>(&records).idempotency_key("k").await.expect("made");
    let wait = async |batch: &laneway::JobBatch<usize>| -> Vec<usize> {
        batch.wait(secs(10)).await.into_iter().map(|result| result.expect("done")).collect()
    };
    let numbers: Vec<usize> = (0..100).collect();
    assert_eq!(wait(&batch).await, numbers);
    let again = pods.submit_many_as::<usize>(&records).idempotency_key("k").await.expect("the same");
    assert_eq!(wait(&again.clone()).await, numbers, "also the same again, and a clone");
    let mut found = wait(&app.batch(batch.id().clone())).await;
    assert_ne!(found, numbers, "the id alone keeps no order, or this test shows nothing");
    found.sort_unstable();
    assert_eq!(found, numbers);
}

#[tokio::test(start_paused = true)]
async fn one_job_and_many_are_named_the_same_way() {
    let app = App::new();
    let pods = app.stream::<Pod>("pods");
    app.processor("echo", &pods, echo);
    app.start().await.expect("it starts");
    let job = pods.submit_as::<usize>(&pod("web", 1)).idempotency_key("k").await.expect("made");
    let same = pods.submit_as::<usize>(&pod("web", 1)).idempotency_key("k").await.expect("the same");
    assert_eq!(same.id(), job.id());
    let other = pods.submit_as::<usize>(&pod("web", 2)).idempotency_key("k").await;
    assert!(matches!(other, Err(SubmitError::Job(JobError::OtherBody { .. }))), "{other:?}");
}
