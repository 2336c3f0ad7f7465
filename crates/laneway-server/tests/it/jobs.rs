//! Jobs over HTTP: run again, taken, forgotten, looked at and cancelled many at a time, listed page by page.

use std::time::Duration;

use http::Method;
use http::header::{HeaderName, LINK, RETRY_AFTER};
use laneway_client::wire::{Claim, ClaimRequest, Job, JobDraft, JobFilter, JobsNamed, Settle};
use laneway_client::{Answer, Client, Submission};
use serde_json::{Value, json};

use crate::program::Program;
use crate::seam;

const LONG: Option<Duration> = Some(Duration::from_secs(20));

async fn ready(program: &Program) -> Client {
    let client = program.client();
    client.put_stream("orders", &serde_json::from_str(r#"{"partitions":4}"#).unwrap()).await.unwrap();
    let settings = r#"{"stream":"orders","pull":true,"retry":{"max_attempts":1}}"#;
    client.put_processor("charge", &serde_json::from_str(settings).unwrap()).await.unwrap();
    client
}

fn draft(key: &str, kind: &str) -> JobDraft {
    serde_json::from_value(json!({"key":key,"type":kind,"data":1})).unwrap()
}

async fn submit(client: &Client, key: &str) -> String {
    match client.submit("orders", &draft(key, "t"), None, None).await.unwrap() {
        Submission::Accepted(receipt) => receipt.id,
        Submission::Settled(job) => panic!("nobody works: {job:?}"),
    }
}

async fn claim(client: &Client) -> Claim {
    let wish: ClaimRequest = serde_json::from_str(r#"{"wait":"20s"}"#).unwrap();
    client.claim("charge", &wish).await.unwrap().claims.remove(0)
}

async fn settle(client: &Client, claim: &Claim, rest: &str) {
    let settle = format!(r#"{{"settlements":[{{"claim":"{}",{rest}}}]}}"#, claim.claim);
    let settle: Settle = serde_json::from_str(&settle).unwrap();
    assert!(client.settle("charge", &settle).await.unwrap().settlements[0].accepted);
}

/// A job that has ended with a result.
async fn done(client: &Client, key: &str, result: u32) -> String {
    let id = submit(client, key).await;
    settle(client, &claim(client).await, &format!(r#""outcome":"done","result":{result}"#)).await;
    assert_eq!(client.job(&id, LONG).await.unwrap().status, "done");
    id
}

async fn send(client: &Client, method: Method, path: &str, body: Option<Value>) -> Answer {
    client.send(method, path, &[], body.map(|body| body.to_string().into_bytes())).await.unwrap()
}

fn value(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_has_ended_is_run_again_as_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let first = done(&client, "ann", 7).await;
    let key = [(HeaderName::from_static("idempotency-key"), "again")];
    let path = format!("/v1/jobs/{first}/retry");
    let retried = client.send(Method::POST, &path, &key, None).await.unwrap();
    let second = value(&retried)["id"].as_str().unwrap().to_owned();
    assert_eq!((retried.status.as_u16(), retried.location()), (202, Some(&*format!("/v1/jobs/{second}"))));
    assert_eq!(
        (value(&retried)["retry_of"].as_str(), retried.headers[RETRY_AFTER].to_str().ok()),
        (Some(&*first), Some("1"))
    );
    let again = client.send(Method::POST, &path, &key, None).await.unwrap();
    assert_eq!(value(&again)["id"], second.as_str(), "the same name is the same retry");
    let claimed = claim(&client).await;
    assert_eq!((claimed.key.as_deref(), claimed.events[0].seq), (Some("ann"), Some(2)));
    settle(&client, &claimed, r#""outcome":"done","result":8"#).await;
    let job = client.job(&second, LONG).await.unwrap();
    assert_eq!((job.status.as_str(), job.retry_of.as_deref()), ("done", Some(&*first)));
    assert_eq!(client.job(&first, None).await.unwrap().result.unwrap().get(), "7", "the first stands");
    program.stop().await;
}

/// A key is known as long as the stream says: by time, and by how many newer ones came to its partition.
#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_known_up_to_the_bound_of_its_stream() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let settings = r#"{"partitions":4,"dedup_max":3,"dedup_window":"2d"}"#;
    let stream = client.put_stream("orders", &serde_json::from_str(settings).unwrap()).await.unwrap();
    assert_eq!((stream.dedup_max, stream.dedup_window.as_str(), stream.dedup_evicted), (3, "2d", 0));
    let submit = async |key: &str| {
        let key = [(HeaderName::from_static("idempotency-key"), key)];
        let body = Some(br#"{"key":"ann","data":1}"#.to_vec());
        let answer = client.send(Method::POST, "/v1/streams/orders/jobs", &key, body).await.unwrap();
        value(&answer)["id"].as_str().unwrap().to_owned()
    };
    let first = submit("first").await;
    submit("second").await;
    submit("third").await;
    assert_eq!(submit("first").await, first, "there was room for three");
    submit("fourth").await;
    assert_ne!(submit("first").await, first, "a fourth has come since");
    let stream = client.stream("orders").await.unwrap();
    assert!(stream.dedup_evicted >= 1, "and that is told: {stream:?}");
    let metrics = client.send(Method::GET, "/metrics", &[], None).await.unwrap();
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(metrics.contains(r#"laneway_dedup_evicted_total{stream="orders"}"#), "{metrics}");
    for (field, value) in [("dedup_max", "0"), ("dedup_max", "100000001"), ("dedup_window", r#""367d""#)] {
        let wrong = format!(r#"{{"partitions":4,"{field}":{value}}}"#);
        let refused = client.put_stream("orders", &serde_json::from_str(&wrong).unwrap()).await.unwrap_err();
        assert_eq!(refused.code(), Some("invalid_value"), "{refused}");
        assert!(refused.to_string().contains(field), "{refused}");
    }
    program.stop().await;
}

/// Values that were taken without a bound: each is refused with its field, value and limit.
#[tokio::test(flavor = "multi_thread")]
async fn lengths_and_attempts_have_a_maximum() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let check = async |method: Method, path: &str, body: &str, words: &str| {
        let answer = client.send(method, path, &[], Some(body.as_bytes().to_vec())).await.unwrap();
        let told = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status == 400 && told.contains(words), "{path}: {} {told}", answer.status);
    };
    let (events, jobs) = ("/v1/streams/orders/events", "/v1/streams/orders/jobs");
    check(Method::POST, jobs, r#"{"data":1,"keep":"36500d"}"#, "keep is 36500d, must be at most 366d").await;
    let attempts = r#"{"data":1,"headers":{"laneway-max-attempts":"4294967295"}}"#;
    let words = "laneway-max-attempts is 4294967295, must be a number from 1 to 1000000";
    check(Method::POST, events, attempts, words).await;
    for (field, value) in [("keep", "36601d"), ("keep_done", "367d"), ("forget_lanes_after", "36601d")] {
        let body = format!(r#"{{"partitions":4,"{field}":"{value}"}}"#);
        check(Method::PUT, "/v1/streams/orders", &body, &format!("{field} is {value}, must be at most"))
            .await;
    }
    for (field, value, words) in [
        ("max_attempts", "4294967295", "max_attempts is 4294967295, must be 1 to 1000000"),
        ("backoff_max", r#""367d""#, "backoff_max is 367d, must be at most 366d"),
    ] {
        let body = format!(r#"{{"stream":"orders","pull":true,"retry":{{"{field}":{value}}}}}"#);
        check(Method::PUT, "/v1/processors/charge", &body, words).await;
    }
    let job = r#"{"key":"ann","data":1}"#;
    client.send(Method::POST, jobs, &[], Some(job.as_bytes().to_vec())).await.unwrap();
    let claimed = claim(&client).await;
    let late = format!(
        r#"{{"settlements":[{{"claim":"{}","outcome":"retry","retry_after":"18446744073709551615us"}}]}}"#,
        claimed.claim
    );
    let settled =
        client.send(Method::POST, "/v1/processors/charge/settle", &[], Some(late.into_bytes())).await;
    let settled = value(&settled.unwrap());
    let told = &settled["settlements"][0];
    assert_eq!((&told["accepted"], &told["code"]), (&false.into(), &"invalid_value".into()), "{settled}");
    assert!(told["detail"].as_str().unwrap().contains("must be at most 366d"), "{settled}");
    program.stop().await;
}

/// A parked job ends every wait, and a retry runs the very same job now.
#[tokio::test(flavor = "multi_thread")]
async fn a_parked_job_is_told_to_whoever_waits_and_retried_in_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let id = submit(&client, "ann").await;
    let waiting = {
        let (client, id) = (client.clone(), id.clone());
        seam::spawn(async move { client.job(&id, Some(Duration::from_secs(60))).await.unwrap() })
    };
    let refused = client.retry_job(&id, None).await.unwrap_err();
    assert_eq!(refused.code(), Some("job_unfinished"), "it waits: there is nothing to retry");
    settle(&client, &claim(&client).await, r#""outcome":"fail","error":"card refused""#).await;
    let parked = seam::guarded("the wait for a parked job", waiting).await.unwrap();
    assert_eq!((parked.status.as_str(), parked.error.as_deref()), ("parked", Some("card refused")));
    let why = parked.why.unwrap();
    assert!(why.code == "parked" && why.detail.contains("card refused"), "{why:?}");
    let Submission::Accepted(receipt) = client.retry_job(&id, None).await.unwrap() else {
        panic!("nobody works")
    };
    assert_eq!((receipt.id.as_str(), receipt.retry_of), (&*id, None));
    settle(&client, &claim(&client).await, r#""outcome":"done","result":1"#).await;
    assert_eq!(client.job(&id, LONG).await.unwrap().status, "done");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_taken_with_grace_and_forgotten_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let open = submit(&client, "bob").await;
    for (method, path) in [(Method::DELETE, ""), (Method::POST, "/take")] {
        let refused = send(&client, method, &format!("/v1/jobs/{open}{path}"), None).await;
        assert_eq!((refused.status.as_u16(), &value(&refused)["code"]), (409, &json!("job_unfinished")));
    }
    client.cancel(&open, LONG).await.unwrap();
    let id = done(&client, "ann", 7).await;
    let kept = client.job(&id, None).await.unwrap().keep_until.unwrap();
    let taken = client.take_job(&id).await.unwrap();
    assert_eq!(taken.result.unwrap().get(), "7");
    assert!(taken.keep_until.unwrap() < kept, "it lives no longer than the grace");
    assert_eq!(client.take_job(&id).await.unwrap().result.unwrap().get(), "7", "the same within the grace");
    for _ in 0..2 {
        assert_eq!(send(&client, Method::DELETE, &format!("/v1/jobs/{id}"), None).await.status, 204);
    }
    for path in ["", "/take", "/retry", "/cancel"] {
        let method = if path.is_empty() { Method::GET } else { Method::POST };
        let gone = send(&client, method, &format!("/v1/jobs/{id}{path}"), None).await;
        assert_eq!((gone.status.as_u16(), &value(&gone)["code"]), (410, &json!("job_gone")), "{path}");
    }
    let never = send(&client, Method::DELETE, "/v1/jobs/0190b3a4-0000-7000-8000-000000000000", None).await;
    assert_eq!((never.status.as_u16(), &value(&never)["code"]), (404, &json!("job_not_found")));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_jobs_are_looked_at_and_cancelled_by_ids_or_batch() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let ended = done(&client, "ann", 7).await;
    let gone = done(&client, "ann", 8).await;
    client.delete_job(&gone).await.unwrap();
    let drafts: Vec<JobDraft> = (0..5).map(|_| draft("eve", "t")).chain([draft("bob", "t")]).collect();
    let batch = client.submit_many("orders", &drafts).await.unwrap().batch.unwrap();

    let ids = vec![gone, "nonsense".to_owned(), ended.clone()];
    let by_ids = JobsNamed { ids, results: true, ..JobsNamed::default() };
    let found = client.query_jobs(&by_ids).await.unwrap();
    let code = |index: usize| found[index].problem.as_ref().map(|problem| problem.code.as_str());
    assert_eq!((code(0), code(1), code(2)), (Some("job_gone"), Some("job_not_found"), None));
    let job = found[2].job.as_ref().unwrap();
    assert_eq!((job.id.as_str(), job.result.as_ref().unwrap().get()), (&*ended, "7"));

    let by_batch = JobsNamed { batch: Some(batch.clone()), ..JobsNamed::default() };
    let held = claim(&client).await;
    let found = client.query_jobs(&by_batch).await.unwrap();
    let running = found.iter().filter(|found| found.job.as_ref().unwrap().status == "running").count();
    assert_eq!((found.len(), running), (6, 1), "the one that a worker has");

    let cancelled = client.cancel_jobs(&by_batch, LONG).await.unwrap();
    assert_eq!(cancelled.count, 6);
    let words: Vec<Option<&str>> = cancelled.items.iter().map(|item| item.status.as_deref()).collect();
    assert_eq!(words, vec![Some("cancelled"); 6], "also what {:?} had", held.key);
    let again = client.cancel_jobs(&by_batch, None).await.unwrap();
    assert!(
        again.count == 0 && again.items.iter().all(|item| item.code.as_deref() == Some("already_finished"))
    );

    let both = json!({"ids":[ended],"batch":batch});
    for (path, body, says) in [
        ("/v1/jobs/query", json!({}), "ids is absent"),
        ("/v1/jobs/query", both, "the only one of the two"),
        ("/v1/jobs/query", json!({"batch":"nonsense"}), "batch is nonsense"),
        ("/v1/jobs/query", json!({"ids":vec!["x"; 1_001]}), "1 to 1000"),
        ("/v1/jobs/cancel", json!({"ids":["x"],"results":true}), "only a query"),
    ] {
        let refused = send(&client, Method::POST, path, Some(body)).await;
        let told = value(&refused);
        assert_eq!((refused.status.as_u16(), &told["code"]), (400, &json!("invalid_value")), "{told}");
        assert!(told["detail"].as_str().unwrap().contains(says), "{told}");
    }
    program.stop().await;
}

async fn all_pages(client: &Client, filter: &JobFilter) -> Vec<Job> {
    let (mut filter, mut jobs) = (filter.clone(), Vec::new());
    loop {
        let page = client.jobs(&filter).await.unwrap();
        assert!(page.items.len() <= filter.limit.unwrap_or(100));
        jobs.extend(page.items);
        let Some(next) = page.next else { return jobs };
        filter.cursor = Some(next);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed_page_by_page_by_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let ended = done(&client, "ann", 7).await;
    let keys: Vec<String> = (0..7).map(|number| format!("k{number}")).collect();
    for key in &keys {
        submit(&client, key).await;
    }
    let odd = client.submit_many("orders", &[draft("x", "odd.one"), draft("y", "odd.two")]).await.unwrap();
    let held = claim(&client).await;
    let ids = async |filter: JobFilter| {
        let jobs = all_pages(&client, &JobFilter { limit: Some(3), ..filter }).await;
        let mut ids: Vec<String> = jobs.into_iter().map(|job| job.id).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(JobFilter::default()).await.len(), 10);
    let status = |word: &str| JobFilter { status: Some(word.to_owned()), ..JobFilter::default() };
    assert_eq!(ids(status("done")).await, std::slice::from_ref(&ended));
    assert_eq!(ids(status("running")).await, [held.events[0].job.clone().unwrap()]);
    assert_eq!(ids(status("waiting")).await.len(), 8);
    let by_key = JobFilter { key: Some(b"ann".to_vec()), ..JobFilter::default() };
    assert_eq!(ids(by_key).await, [ended]);
    let mut expected: Vec<String> = odd.jobs.iter().map(|job| job.id.clone().unwrap()).collect();
    expected.sort();
    assert_eq!(ids(JobFilter { kind: Some("odd.*".to_owned()), ..JobFilter::default() }).await, expected);
    assert_eq!(ids(JobFilter { batch: odd.batch, ..JobFilter::default() }).await, expected);
    let later = JobFilter { since: Some("2999-01-01T00:00:00Z".to_owned()), ..JobFilter::default() };
    assert!(ids(later).await.is_empty());

    let page = send(&client, Method::GET, "/v1/jobs?stream=orders&limit=2", None).await;
    let next = value(&page)["next"].as_str().unwrap().to_owned();
    let link = format!("</v1/jobs?stream=orders&limit=2&cursor={next}>; rel=\"next\"");
    assert_eq!(page.headers[LINK], link.as_str());
    for (query, code, says) in [
        (format!("limit=2&cursor={next}"), "invalid_value", "used for the same list"),
        ("status=finished".to_owned(), "invalid_value", "one of scheduled, waiting"),
        ("limit=0".to_owned(), "invalid_value", "1 to 1000"),
        ("since=yesterday".to_owned(), "invalid_value", "a date"),
        ("stream=nope".to_owned(), "stream_not_found", "nope"),
        ("state=done".to_owned(), "unknown_field", "known are stream, status"),
    ] {
        let refused = value(&send(&client, Method::GET, &format!("/v1/jobs?{query}"), None).await);
        assert_eq!(refused["code"], code, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains(says), "{refused}");
    }
    program.stop().await;
}
