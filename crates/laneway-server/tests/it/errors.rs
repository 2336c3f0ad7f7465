//! Every code of an error is provoked once, and is documented.

use std::collections::BTreeSet;

use http::Method;
use http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use laneway_client::Client;
use serde_json::{Value, json};

use crate::program::{Program, paste};
use crate::seam;

/// The code of faults that no call can cause from outside; the map in `http/error.rs` has tests of its own for it.
const FROM_INSIDE: &str = "internal";

/// The codes in the reference.
fn documented() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

/// Calls that must fail, and what they must say.
struct Provoked {
    client: Client,
    codes: BTreeSet<String>,
}

impl Provoked {
    async fn check(&mut self, method: Method, path: &str, body: &str, code: &str, says: &str) {
        self.check_with(method, path, &[], Some(body.to_owned()), code, says).await;
    }

    async fn check_with(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Option<String>,
        code: &str,
        says: &str,
    ) {
        refused(&self.client, method, path, headers, body, code, says).await;
        self.codes.insert(code.to_owned());
    }
}

/// Checks that a call is refused with this code, in the words and the form that every refusal has.
pub(crate) async fn refused(
    client: &Client,
    method: Method,
    path: &str,
    headers: &[(HeaderName, &str)],
    body: Option<String>,
    code: &str,
    says: &str,
) {
    let body = body.filter(|body| !body.is_empty()).map(String::into_bytes);
    let answer = client.send(method.clone(), path, headers, body).await.unwrap();
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    assert_eq!(told["code"], code, "{method} {path}: {told}");
    assert!(told["detail"].as_str().unwrap().contains(says), "{method} {path}: {told}");
    assert_eq!(told["status"], answer.status.as_u16(), "{told}");
    assert_eq!(told["type"], format!("urn:laneway:error:{code}"));
    assert_eq!(answer.headers[CONTENT_TYPE], "application/problem+json");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_code_is_documented_and_provoked() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let mut provoked = Provoked { client: program.client(), codes: BTreeSet::new() };
    prepare(&provoked.client).await;
    bodies(&mut provoked).await;
    callers(&mut provoked).await;
    nouns(&mut provoked).await;
    expectations(&mut provoked).await;
    jobs(&mut provoked).await;
    let mut all = provoked.codes;
    // Provoked in `serve`, where a server is about to end, in `claims`, in `operations`, and below.
    all.extend(["claim_lost", "event_running", "shutting_down", "not_pull"].map(str::to_owned));
    all.extend(["processor_stopped", "dead_letter_not_found"].map(str::to_owned));
    all.extend(["successors_done", "earlier_dead", "whole_lane"].map(str::to_owned));
    // Provoked in `dead_letters`.
    all.insert("headers_full".to_owned());
    // Provoked in `follow`.
    all.extend(["event_trimmed", "too_many_followers"].map(str::to_owned));
    // And in `jobs` and `schedules`.
    all.extend(["job_unfinished", "schedule_not_found"].map(str::to_owned));
    // And in `cluster`, where there are several nodes, and in `redis`, where the store is another process.
    all.extend(["node_not_found", "lease_not_found", "claim_undecided"].map(str::to_owned));
    all.extend(["store_unavailable", "store_down"].map(str::to_owned));
    // Provoked in `backup`, here and beside the call.
    all.extend(["backup_unavailable", "backup_exists", "backup_running", "backup_failed"].map(str::to_owned));
    // And in the acceptance test `full_disk`.
    all.insert("store_full".to_owned());
    // Provoked in `access` and in `limits`.
    all.extend(["token_required", "scope_required", "read_only"].map(str::to_owned));
    all.extend(["invalid_encoding", "unsupported_encoding", "body_timeout"].map(str::to_owned));
    all.extend(["url_too_long", "headers_too_large", "overloaded", "rate_limited"].map(str::to_owned));
    all.insert(FROM_INSIDE.to_owned());
    assert_eq!(all, documented());
    program.stop().await;
}

async fn prepare(client: &Client) {
    let put = |path: &'static str, body: Value| async move {
        let answer = client.send(Method::PUT, path, &[], Some(body.to_string().into_bytes())).await.unwrap();
        assert_eq!(answer.status, 201, "{path}");
    };
    put("/v1/streams/orders", json!({"partitions":1})).await;
    put("/v1/streams/alone", json!({"partitions":1})).await;
    put("/v1/streams/small", json!({"partitions":1,"max_pending":1})).await;
    put("/v1/streams/pods", json!({"partitions":1,"mode":"latest"})).await;
    put("/v1/processors/charge", json!({"stream":"orders","pull":true})).await;
    put("/v1/processors/mail", json!({"stream":"orders","pull":true})).await;
    put("/v1/processors/few", json!({"stream":"small","pull":true})).await;
    put("/v1/processors/sync", json!({"stream":"pods","pull":true})).await;
}

const EVENTS: &str = "/v1/streams/orders/events";

async fn bodies(provoked: &mut Provoked) {
    let post = Method::POST;
    provoked.check(post.clone(), EVENTS, r#"{"key":"#, "invalid_json", "EOF while parsing").await;
    provoked.check(post.clone(), EVENTS, "", "invalid_json", "the body is empty").await;
    let deep = format!(r#"{{"data":{}1{}}}"#, "[".repeat(64), "]".repeat(64));
    provoked.check(post.clone(), EVENTS, &deep, "json_too_deep", "more than 64 deep").await;
    provoked.check(post.clone(), EVENTS, r#"{"kye":"a"}"#, "unknown_field", "did you mean \"key\"?").await;
    provoked
        .check(post.clone(), EVENTS, r#"[{"key":"a"},{"type":7}]"#, "invalid_value", "event 1: type: ")
        .await;
    provoked
        .check(post.clone(), EVENTS, r#"{"key":""}"#, "invalid_value", "key is \"\", must be 1 to 512 bytes")
        .await;
    // A single event has no number: nobody gave it one.
    for path in [EVENTS, "/v1/streams/orders/jobs"] {
        let ours = br#"{"key":"a","processor":"charge","headers":{"laneway-caller":"me"}}"#;
        let ours = if path == EVENTS {
            br#"{"key":"a","headers":{"laneway-caller":"me"}}"#.to_vec()
        } else {
            ours.to_vec()
        };
        let answer = provoked.client.send(post.clone(), path, &[], Some(ours)).await.unwrap();
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        let detail = told["detail"].as_str().unwrap();
        assert!(detail.contains("laneway-caller") && !detail.contains("event 0"), "{path}: {told}");
    }
    let long = format!(r#"{{"key":"{}"}}"#, "k".repeat(513));
    provoked.check(post.clone(), EVENTS, &long, "invalid_value", "513 bytes").await;
    let many = format!("[{}]", vec!["{}"; 1_001].join(","));
    provoked.check(post.clone(), EVENTS, &many, "too_many_events", "1001 events, at most 1000").await;
    // So long that a server which does not read it to its end would take the answer away with the connection.
    let huge = format!(r#"{{"data":"{}"}}"#, "x".repeat(8 << 20));
    provoked.check(post.clone(), EVENTS, &huge, "body_too_large", "at most 1048576").await;
    provoked
        .check(Method::GET, "/v1/streams/orders/events?partition=9", "", "invalid_value", "must be 0 to 0")
        .await;
    provoked
        .check(Method::GET, "/v1/streams/orders/lane?kye=a", "", "unknown_field", "did you mean \"key\"?")
        .await;
    let says = "GET /v1/streams/orders/events/PARTITION/ID";
    provoked.check(Method::GET, "/v1/streams/orders/lane?key=", "", "invalid_value", says).await;
    let extend = r#"{"claims":["c"]}"#;
    let says = "lease is absent, must be set";
    provoked.check(post.clone(), "/v1/processors/charge/extend", extend, "invalid_value", says).await;
    let system = "/v1/streams/_laneway/";
    for path in ["events", "jobs"] {
        let path = format!("{system}{path}");
        provoked.check(post.clone(), &path, "{}", "invalid_value", "stream is \"_laneway\"").await;
    }
    let claim = r#"{"lease":"1ms"}"#;
    provoked
        .check(
            post,
            "/v1/processors/charge/claim",
            claim,
            "invalid_value",
            "lease is 1ms, must be 100ms to 1h",
        )
        .await;
}

async fn callers(provoked: &mut Provoked) {
    // By curl: our client always says JSON.
    let line =
        format!("curl -s -H 'Content-Type: text/plain' -d '{{}}' {}{EVENTS}", provoked.client.address());
    let answer: Value = serde_json::from_str(&paste(line)).unwrap();
    assert_eq!(answer["code"], "unsupported_media_type", "{answer}");
    provoked.codes.insert("unsupported_media_type".to_owned());
    // In pieces nobody says how long it is.
    let line = format!(
        "head -c 1048577 /dev/zero | tr '\\0' ' ' | curl -s -H 'Content-Type: application/json' \
         -H 'Transfer-Encoding: chunked' --data-binary @- {}{EVENTS}",
        provoked.client.address()
    );
    let answer: Value = serde_json::from_str(&paste(line)).unwrap();
    assert_eq!(answer["detail"], "the body has more than 1048576 bytes, at most 1048576 are taken");
    let foreign = [(HOST, "evil.example:7070")];
    provoked.check_with(Method::GET, "/v1/streams", &foreign, None, "host_not_allowed", "evil.example").await;
    let page = [(ORIGIN, "http://evil.example")];
    provoked.check_with(Method::GET, "/v1/streams", &page, None, "origin_not_allowed", "evil.example").await;
    provoked.check(Method::GET, "/v2/streams", "", "no_route", "/openapi.json").await;
    provoked.check(Method::PATCH, "/v1/streams", "", "method_not_allowed", "PATCH").await;
}

async fn nouns(provoked: &mut Provoked) {
    provoked.check(Method::POST, "/v1/nodes/one/drain", "", "node_conflict", "works alone").await;
    let says = "PUT /v1/streams/nope with {\"partitions\":16}";
    provoked.check(Method::POST, "/v1/streams/nope/events", "{}", "stream_not_found", says).await;
    provoked
        .check(Method::GET, "/v1/processors/nope", "", "processor_not_found", "PUT /v1/processors/nope")
        .await;
    provoked.check(Method::GET, "/v1/streams/orders/events/0/99", "", "event_not_found", "orders/0/99").await;
    provoked.check(Method::GET, "/v1/jobs/nope", "", "job_not_found", "job id is nope").await;
    let unknown = "/v1/jobs/01a1e5b1-d98d-7000-a010-00000000ffff";
    provoked.check(Method::GET, unknown, "", "job_not_found", "does not exist").await;
    provoked
        .check(
            Method::PUT,
            "/v1/streams/orders",
            r#"{"partitions":2}"#,
            "stream_conflict",
            "cannot be changed",
        )
        .await;
    let other = [(http::header::IF_MATCH, "\"999\"")];
    let (path, says) = ("/v1/streams/orders", "If-Match is \"999\"");
    provoked.check_with(Method::PUT, path, &other, Some("{}".to_owned()), "precondition_failed", says).await;
    provoked.check(Method::PUT, "/v1/streams/_x", "{}", "invalid_value", "does not begin with _").await;
    let moved = r#"{"stream":"alone","pull":true}"#;
    provoked.check(Method::PUT, "/v1/processors/charge", moved, "processor_conflict", "\"orders\"").await;
    let push = r#"{"stream":"orders"}"#;
    provoked.check(Method::PUT, "/v1/processors/other", push, "invalid_value", "pull is false").await;
    let batch = r#"{"stream":"orders","pull":true,"batch":{"over":"lane","max":9}}"#;
    provoked.check(Method::PUT, "/v1/processors/other", batch, "invalid_value", "max_events").await;
    let late = r#"{"stream":"orders","pull":true,"start":"end"}"#;
    let says = "began at beginning: POST /v1/processors/charge/reset";
    provoked.check(Method::PUT, "/v1/processors/charge", late, "processor_conflict", says).await;
}

async fn expectations(provoked: &mut Provoked) {
    let client = provoked.client.clone();
    let append = |stream: &'static str, event: Value| {
        let client = client.clone();
        async move { client.append(stream, &[serde_json::from_value(event).unwrap()]).await.unwrap() }
    };
    append("orders", json!({"key":"a","dedup_id":"d","data":1})).await;
    let other = r#"{"key":"a","dedup_id":"d","data":2}"#;
    provoked.check(Method::POST, EVENTS, other, "dedup_conflict", "another body").await;
    for said in [r#""type":"other""#, r#""headers":{"a":"b"}"#] {
        let other = format!(r#"{{"key":"a","dedup_id":"d","data":1,{said}}}"#);
        provoked.check(Method::POST, EVENTS, &other, "dedup_conflict", "another body").await;
    }
    let newest = r#"{"key":"a","generation":3}"#;
    let says = "generation is set, must be absent unless the stream's mode is latest";
    for path in [EVENTS, "/v1/streams/orders/jobs"] {
        provoked.check(Method::POST, path, newest, "invalid_value", says).await;
    }
    provoked
        .check(Method::POST, EVENTS, r#"{"key":"a","expect_prev":null}"#, "prev_conflict", "last id is 1")
        .await;
    let object = r#"{"key":"a","object":1,"expect_object_version":3}"#;
    provoked.check(Method::POST, EVENTS, object, "object_conflict", "version 0").await;
    append("small", json!({"key":"a"})).await;
    let (full, says) = ("/v1/streams/small/events", "its limit is 1");
    provoked.check(Method::POST, full, r#"{"key":"a"}"#, "stream_full", says).await;
    append("pods", json!({"key":"web","generation":7})).await;
    let stale = r#"{"key":"web","generation":5}"#;
    provoked.check(Method::POST, "/v1/streams/pods/jobs", stale, "stale_generation", "generation 7").await;
    let retry = "/v1/streams/orders/lanes/retry";
    let lane = r#"{"key":"nobody","processor":"charge"}"#;
    provoked.check(Method::POST, retry, lane, "nothing_waits", "nobody").await;
    provoked.check(Method::POST, retry, r#"{"key":"a"}"#, "processor_required", "charge").await;
}

async fn jobs(provoked: &mut Provoked) {
    let path = "/v1/streams/orders/jobs";
    provoked
        .check(Method::POST, path, r#"{"key":"j"}"#, "processor_required", "processors charge, mail")
        .await;
    let object = r#"{"key":"j","processor":"charge","expect_object_version":7}"#;
    let says = "expect_object_version is set, must be absent unless object is set";
    provoked.check(Method::POST, path, object, "invalid_value", says).await;
    let forgotten = r#"{"key":"j","processor":"charge","keep":"0s"}"#;
    provoked.check(Method::POST, path, forgotten, "invalid_value", "keep is 0").await;
    let (wait, many) =
        ([(HeaderName::from_static("prefer"), "wait=1")], r#"[{"key":"j","processor":"charge"}]"#);
    let says = "only one job is waited for";
    provoked.check_with(Method::POST, path, &wait, Some(many.to_owned()), "invalid_value", says).await;
    let client = provoked.client.clone();
    let job = serde_json::from_value(json!({"key":"j","processor":"charge","keep":"1ms"})).unwrap();
    let submitted = client.submit("orders", &job, None, Some("k")).await.unwrap();
    let laneway_client::Submission::Accepted(receipt) = submitted else { panic!("nobody works") };
    let key = [(HeaderName::from_static("idempotency-key"), "k")];
    let other = Some(r#"{"key":"j","processor":"charge","data":2}"#.to_owned());
    provoked.check_with(Method::POST, path, &key, other, "idempotency_conflict", "another body").await;

    let id = &receipt.id;
    // Kept so shortly, it may be gone before the answer looks at it.
    let cancelled = client.cancel(id, None).await;
    assert!(cancelled.as_ref().err().is_none_or(|error| error.code() == Some("job_gone")), "{cancelled:?}");
    seam::until("the end of a job that is kept for a millisecond", || async {
        client.job(id, None).await.is_err().then_some(())
    })
    .await;
    provoked.check(Method::GET, &format!("/v1/jobs/{id}"), "", "job_gone", "kept long enough").await;
    let lasting = serde_json::from_value(json!({"key":"j2","processor":"charge"})).unwrap();
    let laneway_client::Submission::Accepted(receipt) =
        client.submit("orders", &lasting, None, None).await.unwrap()
    else {
        panic!("nobody works")
    };
    client.cancel(&receipt.id, Some(std::time::Duration::from_secs(20))).await.unwrap();
    let cancel = format!("/v1/jobs/{}/cancel", receipt.id);
    provoked.check(Method::POST, &cancel, "", "already_finished", "has ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_worker_claims_from_a_handler_of_our_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let refused = program.client().claim("demo", &Default::default()).await.unwrap_err();
    assert_eq!(refused.code(), Some("not_pull"));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    paste(format!("mkfifo {}/go", folder.path().display()));
    let program = Program::dev(folder.path(), &["--", "sh", "-c", ": < go"]).await;
    let mut provoked = Provoked { client: program.client(), codes: BTreeSet::new() };
    let lane = r#"{"key":"long"}"#;
    provoked.client.append("orders", &[serde_json::from_str(lane).unwrap()]).await.unwrap();
    program.line("long #1  start").await;
    let skip = "/v1/streams/orders/lanes/skip";
    provoked.check(Method::POST, skip, lane, "event_running", "cancel it instead").await;
    // Ends the handler, which reads the pipe.
    std::fs::OpenOptions::new().write(true).open(folder.path().join("go")).unwrap();
    program.line("long #1  done").await;
    program.stop().await;
}
