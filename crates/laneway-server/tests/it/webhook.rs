//! Endpoints that are named over the API: signed calls, and only to where the operator allows them.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::Method;
use laneway_client::wire::{Job, JobDraft, ProcessorSettings, StreamSettings, json};
use laneway_client::{Answer, Client, Submission};
use parking_lot::Mutex;

use crate::program::Program;
use crate::seam;

const SECRET: &str = "canary-of-the-webhook-4f1c9a7be2d84c0f";

type Seen = Arc<Mutex<Vec<(HeaderMap, String)>>>;

/// An endpoint on this machine that answers as the data says, and what it was sent.
async fn endpoint() -> (u16, Seen) {
    let seen = Seen::default();
    let calls = Arc::clone(&seen);
    let handle = move |headers: HeaderMap, body: String| {
        let calls = Arc::clone(&calls);
        async move {
            calls.lock().push((headers, body.clone()));
            answer(&body)
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/hook", post(handle.clone())).route("/other", post(handle));
    seam::spawn(async move { axum::serve(listener, router).await });
    (port, seen)
}

fn answer(body: &str) -> Response {
    match body {
        "\"elsewhere\"" => {
            (StatusCode::TEMPORARY_REDIRECT, [("location", "http://169.254.169.254/latest/meta-data/")])
                .into_response()
        }
        "\"long\"" => "a".repeat(65 << 10).into_response(),
        _ => format!("{{\"got\":{body}}}").into_response(),
    }
}

async fn serve(folder: &std::path::Path, port: u16, allowed: &str) -> Program {
    let port = port.to_string();
    let variables = [
        ("LANEWAY_WEBHOOK_SECRET", SECRET),
        ("LANEWAY_WEBHOOK_PORTS", port.as_str()),
        ("LANEWAY_WEBHOOK_ALLOW_PRIVATE", allowed),
        ("LANEWAY_WEBHOOK_ALLOW_HTTP", "true"),
    ];
    let mut program = Program::serve_as(folder, &[], &variables).await;
    program.keep_secret([SECRET.to_owned()]);
    program
}

async fn put(client: &Client, url: &str) -> Answer {
    let body = serde_json::json!({"stream":"orders","http":url,"retry":{"max_attempts":1}});
    let body = Some(body.to_string().into_bytes());
    client.send(Method::PUT, "/v1/processors/hook", &[], body).await.unwrap()
}

async fn with_stream(program: &Program) -> Client {
    let client = program.client();
    let settings = StreamSettings { partitions: Some(1), ..StreamSettings::default() };
    client.put_stream("orders", &settings).await.unwrap();
    client
}

async fn submit(client: &Client, key: &str, data: &str) -> Job {
    let job = JobDraft { key: Some(key.to_owned()), data: Some(json(&data).unwrap()), ..JobDraft::default() };
    match client.submit("orders", &job, Some(Duration::from_secs(30)), None).await.unwrap() {
        Submission::Settled(job) => *job,
        Submission::Accepted(receipt) => panic!("still {}", receipt.status),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_named_over_the_api_gets_signed_events_and_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (port, seen) = endpoint().await;
    let program = serve(folder.path(), port, "127.0.0.0/8").await;
    let client = with_stream(&program).await;
    let url = format!("http://127.0.0.1:{port}/hook?token=hidden");
    let made = put(&client, &url).await;
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
    let told = client.processor("hook").await.unwrap();
    assert_eq!(told.handler, "http");
    assert_eq!(told.settings.unwrap().http.unwrap(), format!("http://127.0.0.1:{port}/hook?***"));

    let plain = submit(&client, "ann", "a").await;
    assert_eq!(plain.result.unwrap().get(), "{\"got\":\"a\"}");
    let (headers, body) = seen.lock()[0].clone();
    let text = |name: &str| headers[name].to_str().unwrap().to_owned();
    let signed = format!("{}.{}.{body}", text("webhook-id"), text("webhook-timestamp"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = text("webhook-signature");
    let signature = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        signature.strip_prefix("v1,").unwrap(),
    );
    ring::hmac::verify(&key, signed.as_bytes(), &signature.unwrap()).unwrap();

    let elsewhere = submit(&client, "bob", "elsewhere").await;
    assert_eq!(elsewhere.error.as_deref(), Some("307 Temporary Redirect"), "nothing is followed");
    let long = submit(&client, "cid", "long").await;
    assert!(long.error.unwrap().contains("more than 65536 bytes"));

    // Another URL takes its place, and is still there after a restart.
    assert_eq!(put(&client, &format!("http://127.0.0.1:{port}/other")).await.status, 200);
    program.stop().await;
    let program = serve(folder.path(), port, "127.0.0.0/8").await;
    let again = submit(&program.client(), "dan", "b").await;
    assert_eq!(again.status, "done");
    program.stop().await;

    // What is allowed no more is called no more.
    let before = seen.lock().len();
    let program = serve(folder.path(), port, "10.0.0.0/8").await;
    assert!(program.errors().contains("127.0.0.1 is loopback"), "{}", program.errors());
    assert_eq!(seen.lock().len(), before);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_not_allowed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), 443, "10.0.0.0/8").await;
    let client = with_stream(&program).await;
    for (url, says) in [
        ("http://127.0.0.1:443/", "127.0.0.1 is loopback"),
        ("https://169.254.169.254/latest", "169.254.169.254 is link-local"),
        ("https://10.0.0.1:8443/", "port 8443, must have one of 443"),
        ("https://user@example.org/", "has a user"),
        ("https://0x7f000001/?q=hidden", "must have a name"),
        ("ftp://example.org/", "must begin with https://"),
    ] {
        let refused = put(&client, url).await;
        let told = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(refused.status == 400 && told.contains(says) && !told.contains("hidden"), "{url}: {told}");
    }
    // A name is looked up when it is called, and localhost is this machine.
    assert_eq!(put(&client, "https://localhost/").await.status, 201);
    let refused = submit(&client, "ann", "a").await;
    assert!(refused.error.as_deref().unwrap().contains("is loopback"), "{refused:?}");
    let pull = ProcessorSettings { stream: "orders".to_owned(), pull: true, ..ProcessorSettings::default() };
    assert!(client.put_processor("hook", &pull).await.unwrap_err().to_string().contains("has an endpoint"));
    program.stop().await;

    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = with_stream(&program).await;
    let told = put(&client, "https://example.org/").await;
    assert!(String::from_utf8_lossy(&told.body).contains("webhook.secret is not set"), "{told:?}");
    program.stop().await;
}
