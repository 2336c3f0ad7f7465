//! Limits: what is too large, too slow or too much is refused, and the refusal names the limit.

use http::header::CONTENT_ENCODING;
use http::{HeaderName, Method};
use laneway_client::wire::{ProcessorSettings, StreamSettings};
use laneway_client::{Answer, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::program::Program;
use crate::seam;

const EVENTS: &str = "/v1/streams/orders/events";

fn told(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn check(answer: &Answer, status: u16, code: &str, says: &str) {
    let told = told(answer);
    assert_eq!((answer.status.as_u16(), told["code"].as_str()), (status, Some(code)), "{told}");
    assert!(told["detail"].as_str().unwrap().contains(says), "{told}");
}

async fn with_stream(program: &Program) -> Client {
    let client = program.client();
    let settings = StreamSettings { partitions: Some(1), ..StreamSettings::default() };
    client.put_stream("orders", &settings).await.unwrap();
    client
}

async fn packed(client: &Client, how: &str, body: Vec<u8>) -> Answer {
    client.send(Method::POST, EVENTS, &[(CONTENT_ENCODING, how)], Some(body)).await.unwrap()
}

async fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = async_compression::tokio::write::GzipEncoder::new(Vec::new());
    encoder.write_all(bytes).await.unwrap();
    encoder.shutdown().await.unwrap();
    encoder.into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn packed_bodies_are_taken_and_what_they_unpack_to_is_what_counts() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = with_stream(&program).await;
    let event = br#"{"key":"a","data":{"n":1}}"#;
    assert_eq!(packed(&client, "gzip", gzip(event).await).await.status, 201);
    assert_eq!(packed(&client, "X-GZIP", gzip(event).await).await.status, 201);
    assert_eq!(packed(&client, "identity", event.to_vec()).await.status, 201);

    // 200 MB of nothing, in a body of a few kilobytes to 200.
    let nothing = vec![b' '; 200 << 20];
    let before = program.peak_memory_bytes();
    let body = gzip(&nothing).await;
    assert!(body.len() < 1 << 20, "{}", body.len());
    let answer = packed(&client, "gzip", body).await;
    check(&answer, 413, "body_too_large", "more than 1048576 bytes, at most 1048576");
    let grown = program.peak_memory_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for what was refused");

    check(&packed(&client, "gzip", event.to_vec()).await, 400, "invalid_encoding", "no gzip");
    for other in ["zstd", "br", "deflate", "gzip, gzip", ""] {
        let answer = packed(&client, other, event.to_vec()).await;
        check(&answer, 415, "unsupported_encoding", "must be absent, identity or gzip");
        check(&answer, 415, "unsupported_encoding", &format!("{other:?}"));
    }
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_that_are_too_long_are_refused_with_their_limit() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let get = async |path: String, headers: &[(HeaderName, &str)]| {
        client.send(Method::GET, &path, headers, None).await.unwrap()
    };
    let long = format!("/v1/streams/orders/lane?key={}", "a".repeat(9_000));
    check(&get(long, &[]).await, 414, "url_too_long", "at most 8192");
    let names: Vec<HeaderName> = (0..70).map(|n| format!("x-{n}").parse().unwrap()).collect();
    let many: Vec<_> = names.iter().map(|name| (name.clone(), "1")).collect();
    check(&get("/livez".to_owned(), &many).await, 431, "headers_too_large", "at most 64");
    let wide = "a".repeat(17_000);
    let wide = [(names[0].clone(), wide.as_str())];
    check(&get("/livez".to_owned(), &wide).await, 431, "headers_too_large", "at most 16384");
    // What is longer than anybody needs is not even read.
    let endless = "a".repeat(200_000);
    let endless = client.send(Method::GET, "/livez", &[(names[0].clone(), endless.as_str())], None).await;
    assert!(endless.is_err() || endless.is_ok_and(|answer| answer.status == 431));
    assert_eq!(get("/livez".to_owned(), &[]).await.status, 200);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_body_is_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve_as(folder.path(), &[], &[("LANEWAY_HTTP_BODY_BYTES_MAX", "3000000")]).await;
    let client = with_stream(&program).await;
    let body = |len: usize| Some(json!({"key":"a","data":"a".repeat(len)}).to_string().into_bytes());
    let answer = client.send(Method::POST, EVENTS, &[], body(3_000_000)).await.unwrap();
    check(&answer, 413, "body_too_large", "at most 3000000");
    let answer = client.send(Method::POST, "/v1/streams/orders/jobs", &[], body(2_000_000)).await.unwrap();
    assert_ne!(answer.status, 413, "{answer:?}");
    program.stop().await;
}

/// A caller that begins a body and goes quiet gets an answer, and so does everybody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_answered_and_a_head_that_does_not_come_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let times = [
        ("LANEWAY_HTTP_BODY_TIMEOUT", "1s"),
        ("LANEWAY_HTTP_HEADER_TIMEOUT", "1s"),
        ("LANEWAY_HTTP_IDLE_TIMEOUT", "1s"),
    ];
    let program = Program::serve_as(folder.path(), &[], &times).await;
    let said = async |text: &str| {
        let address = program.address().strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        seam::guarded("the end of the connection", stream.read_to_string(&mut answer)).await.unwrap();
        answer
    };
    let body = "POST /v1/streams/orders/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"key\"";
    let answer = said(body).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("body_timeout") && answer.contains("nothing came for 1 s"), "{answer}");
    assert_eq!(said("GET /livez HTTP/1.1\r\nhost: loc").await, "");
    assert_eq!(said("").await, "");
    let idle = said("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(idle.starts_with("HTTP/1.1 200 ") && idle.ends_with("ok\n"), "{idle}");
    program.stop().await;
}

/// Calls that wait are counted apart from calls that do not.
#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_limit_are_told_to_come_back_and_waiting_ones_do_not_count_against_others() {
    let folder = tempfile::tempdir().unwrap();
    let places = [("LANEWAY_HTTP_WAITING_MAX", "1")];
    let program = Program::serve_as(folder.path(), &[], &places).await;
    let client = with_stream(&program).await;
    let pull = ProcessorSettings { stream: "orders".to_owned(), pull: true, ..ProcessorSettings::default() };
    client.put_processor("charge", &pull).await.unwrap();
    let claim = |client: Client| async move {
        let body = Some(br#"{"wait":"20s"}"#.to_vec());
        client.send(Method::POST, "/v1/processors/charge/claim", &[], body).await.unwrap()
    };
    // Two at once: one waits, the other one is told to come back.
    let (one, two) = (seam::spawn(claim(client.clone())), seam::spawn(claim(client.clone())));
    let first = seam::guarded("a refusal", futures::future::select(one, two)).await;
    let (refused, waits) = first.factor_first();
    let refused = refused.unwrap();
    check(&refused, 503, "overloaded", "http.waiting_max");
    assert_eq!(refused.headers["retry-after"], "1");
    assert_eq!(client.send(Method::GET, "/v1/streams", &[], None).await.unwrap().status, 200);
    let event = Some(br#"{"key":"a"}"#.to_vec());
    assert_eq!(client.send(Method::POST, EVENTS, &[], event).await.unwrap().status, 201);
    assert_eq!(waits.await.unwrap().status, 200, "who waits is answered");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_calls_too_often_is_told_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let token = crate::protected::Token::new("billing", "read");
    let lines = [("LANEWAY_HTTP_TOKENS", token.line.as_str()), ("LANEWAY_HTTP_RATE_MAX", "3")];
    let program = Program::serve_as(folder.path(), &[], &lines).await;
    let client = program.client();
    let bearer = format!("Bearer {}", token.secret);
    let refused = seam::until("a refusal", async || {
        let headers = [(http::header::AUTHORIZATION, bearer.as_str())];
        let answer = client.send(Method::GET, "/v1/streams", &headers, None).await.unwrap();
        (answer.status != 200).then_some(answer)
    })
    .await;
    check(&refused, 429, "rate_limited", "3 times per second");
    assert_eq!(client.send(Method::GET, "/livez", &[], None).await.unwrap().status, 200);
    program.stop().await;
}
