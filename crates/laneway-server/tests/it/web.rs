//! A web endpoint as the handler.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use laneway_client::Submission;
use laneway_client::wire::{Job, JobDraft, json};
use parking_lot::Mutex;

use crate::program::Program;
use crate::seam;

type Seen = Arc<Mutex<Vec<HeaderMap>>>;

/// An endpoint that answers as the data says.
async fn endpoint() -> (String, Seen) {
    let seen = Seen::default();
    let calls = Arc::clone(&seen);
    let handle = move |headers: HeaderMap, body: String| {
        let calls = Arc::clone(&calls);
        async move {
            calls.lock().push(headers.clone());
            answer(&headers, &body).await
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/charge", listener.local_addr().unwrap());
    seam::spawn(async move { axum::serve(listener, Router::new().route("/charge", post(handle))).await });
    (url, seen)
}

async fn answer(headers: &HeaderMap, body: &str) -> Response {
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    match body {
        "\"busy\"" if text("laneway-attempt") == "1" => {
            (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")], "busy").into_response()
        }
        "\"bad\"" => (StatusCode::UNPROCESSABLE_ENTITY, "no such order").into_response(),
        "\"elsewhere\"" => (StatusCode::FOUND, [("location", "http://169.254.169.254/")]).into_response(),
        "\"slow\"" => std::future::pending().await,
        "\"emit\"" => {
            let settlement = serde_json::json!({
                "claim": text("laneway-ref"), "outcome": "done", "result": 5, "emit": [{"stream": "bills", "data": 9}],
            });
            ([("content-type", "application/vnd.laneway.settlement+json")], settlement.to_string())
                .into_response()
        }
        _ => format!("{{\"got\":{body}}}").into_response(),
    }
}

async fn serve(folder: &std::path::Path, url: &str) -> Program {
    let config = format!(
        "[[stream]]\nname = \"orders\"\npartitions = 1\n[[stream]]\nname = \"bills\"\npartitions = 1\n[[processor]]\n\
         name = \"charge\"\nstream = \"orders\"\nhttp = \"{url}\"\nhttp_secret_file = \"secret\"\ntimeout = \"2s\"\nretry \
         = {{ max_attempts = 2, backoff = \"10ms\", backoff_max = \"1s\" }}\n"
    );
    std::fs::write(folder.join("secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    Program::configured(folder, &config).await
}

async fn submit(program: &Program, key: &str, data: &str) -> Job {
    let job = JobDraft {
        key: Some(key.to_owned()),
        kind: Some("order.paid".to_owned()),
        data: Some(json(&data).unwrap()),
        ..JobDraft::default()
    };
    match program.client().submit("orders", &job, Some(Duration::from_secs(30)), None).await.unwrap() {
        Submission::Settled(job) => *job,
        Submission::Accepted(receipt) => panic!("still {}", receipt.status),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_gets_events_as_cloud_events_and_its_status_decides() {
    let folder = tempfile::tempdir().unwrap();
    let (url, seen) = endpoint().await;
    let program = serve(folder.path(), &url).await;
    let plain = submit(&program, "ann", "a").await;
    assert_eq!(plain.result.unwrap().get(), "{\"got\":\"a\"}");
    let headers = seen.lock()[0].clone();
    for (name, value) in [
        ("ce-specversion", "1.0"),
        ("ce-id", plain.reference.as_deref().unwrap()),
        ("ce-type", "order.paid"),
        ("ce-source", "/laneway/orders"),
        ("content-type", "application/json"),
        ("laneway-ref", plain.reference.as_deref().unwrap()),
        ("laneway-key", "ann"),
        ("laneway-seq", "1"),
        ("laneway-attempt", "1"),
        ("webhook-id", plain.reference.as_deref().unwrap()),
    ] {
        assert_eq!(headers[name], value, "{name}");
    }
    assert!(
        headers["webhook-signature"].to_str().unwrap().starts_with("v1,")
            && headers.contains_key("laneway-fence")
    );
    assert!(!headers.contains_key("laneway-prev"), "it is the first of its lane");
    submit(&program, "a b", "a").await;
    assert_eq!(seen.lock().last().unwrap()["laneway-key-b64"], "YSBi");

    let busy = submit(&program, "bob", "busy").await;
    assert_eq!((busy.status.as_str(), busy.attempt), ("done", 2));
    let bad = submit(&program, "cid", "bad").await;
    assert_eq!((bad.status.as_str(), bad.attempt), ("parked", 1));
    assert_eq!(bad.error.as_deref(), Some("422 Unprocessable Entity: no such order"));
    let elsewhere = submit(&program, "dan", "elsewhere").await;
    assert_eq!((elsewhere.status.as_str(), elsewhere.error.as_deref()), ("parked", Some("302 Found")));
    let slow = submit(&program, "eve", "slow").await;
    assert_eq!((slow.status.as_str(), slow.attempt), ("parked", 2));
    assert!(slow.error.unwrap().starts_with("timed out"));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_may_answer_with_a_settlement() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _seen) = endpoint().await;
    let program = serve(folder.path(), &url).await;
    assert_eq!(submit(&program, "ann", "emit").await.result.unwrap().get(), "5");
    let client = program.client();
    let bill = seam::until("the emitted event", || async {
        client.events("bills", 0, 0, 10).await.unwrap().events.pop()
    })
    .await;
    assert_eq!(bill.data.unwrap().get(), "9");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_not_there_is_tried_again_and_then_parked() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), "http://127.0.0.1:1/charge").await;
    let job = submit(&program, "ann", "a").await;
    assert_eq!((job.status.as_str(), job.attempt), ("parked", 2));
    assert!(job.error.unwrap().starts_with("no answer: "));
    assert!(!program.errors().contains("MfKQ9r8"), "the secret is not told");
    program.stop().await;
}
