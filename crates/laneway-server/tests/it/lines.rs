//! Lines of events: each has its own answer, as soon as it is durable.

use laneway_client::wire::LineReceipt;
use serde_json::{Value, json};

use crate::program::{Program, paste};
use crate::raw::Raw;

async fn stream(program: &Program, settings: Value) {
    program.client().put_stream("orders", &serde_json::from_value(settings).unwrap()).await.unwrap();
}

const CALL: &str = "POST /v1/streams/orders/events
    Content-Type: application/x-ndjson
    Transfer-Encoding: chunked";

fn receipts(text: &str) -> Vec<LineReceipt> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_answered_before_the_next_one_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    stream(&program, json!({"partitions":1})).await;
    let mut call = Raw::call(&program, CALL).await;
    call.piece("{\"key\":\"ann\",\"data\":1}\n").await;
    let said = call.until("\"id\":1").await;
    assert!(
        said.starts_with("HTTP/1.1 200") && said.contains("content-type: application/x-ndjson"),
        "{said}"
    );
    assert!(said.contains("\"durability\":\"synced\""), "{said}");
    // A line may come in pieces.
    call.piece("{\"key\":\"an").await;
    call.piece("n\"}").await;
    call.piece("\n\n{\"kye\":1}\n").await;
    call.until("\"line\":2").await;
    let said = call.until("\"line\":4").await.to_owned();
    assert!(said.contains("did you mean \\\"key\\\"?"), "{said}");
    call.piece("{\"key\":\"bob\"}").await;
    call.piece("").await;
    call.until("\"line\":5").await;
    call.until("0\r\n\r\n").await;
    let page = program.client().events("orders", 0, 0, 10).await.unwrap();
    let events: Vec<_> = page.events.iter().map(|event| (event.id, event.seq.unwrap())).collect();
    assert_eq!(events, [(1, 1), (2, 2), (3, 1)]);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_wrong_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    stream(&program, json!({"partitions":4})).await;
    let long = "x".repeat(1 << 20);
    let deep = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    let lines = [
        r#"{"key":"a","dedup_id":"d","data":1}"#,
        r#"{"key":"a","dedup_id":"d","data":2}"#,
        r#"{"key":"a","dedup_id":"d","data":1}"#,
        r#"{"key":"a","expect_prev":77}"#,
        r#"{"key":"a","headers":{"laneway-caller":"me"}}"#,
        &format!(r#"{{"data":"{long}"}}"#),
        &format!(r#"{{"data":{deep}}}"#),
        r#"{"key":"o","object":{"a":1}}"#,
        r#"{"key":"a","delay":"1h"}"#,
        "no json",
        r#"{"key":"a"}"#,
    ];
    let file = folder.path().join("lines");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let post = format!(
        "curl -s -H 'Content-Type: application/x-ndjson' --data-binary @{} {}/v1/streams/orders/events",
        file.display(),
        program.address()
    );
    let told = receipts(&paste(post));
    let words: Vec<(u64, String, Option<String>)> = told
        .iter()
        .map(|told| {
            let word = serde_json::to_value(told.receipt.append).unwrap().as_str().unwrap().to_owned();
            (told.line, word, told.receipt.problem.as_ref().map(|problem| problem.code.clone()))
        })
        .collect();
    let expected = [
        ("new", None),
        ("conflict", Some("dedup_conflict")),
        ("duplicate", None),
        ("conflict", Some("prev_conflict")),
        ("refused", Some("invalid_value")),
        ("refused", Some("body_too_large")),
        ("refused", Some("json_too_deep")),
        ("new", None),
        ("scheduled", None),
        ("refused", Some("invalid_json")),
        ("new", None),
    ];
    let expected: Vec<(u64, String, Option<String>)> = (1..)
        .zip(expected)
        .map(|(line, (word, code))| (line, word.to_owned(), code.map(str::to_owned)))
        .collect();
    assert_eq!(words, expected);
    assert_eq!(told[7].object_version, Some(1));
    assert_eq!(told[10].receipt.prev, told[0].receipt.id, "the lane has the good lines only");
    program.stop().await;
}

/// Whoever sends no more after a cut finds the lines up to there, and none behind them.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_leaves_a_clean_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    stream(&program, json!({"partitions":1})).await;
    let mut call = Raw::call(&program, CALL).await;
    for number in 1..=100 {
        call.piece(&format!("{{\"key\":\"a\",\"data\":{number}}}\n")).await;
    }
    call.piece("{\"key\":\"a\",\"data\":101").await;
    call.until("\"line\":100").await;
    drop(call);
    let client = program.client();
    // A line behind the cut would have been there before this one.
    client
        .append("orders", &[serde_json::from_value(json!({"key":"a","data":"last"})).unwrap()])
        .await
        .unwrap();
    let page = client.events("orders", 0, 0, 1_000).await.unwrap();
    let data: Vec<&str> = page.events.iter().map(|event| event.data.as_ref().unwrap().get()).collect();
    let expected: Vec<String> =
        (1..=100).map(|number| number.to_string()).chain(["\"last\"".to_owned()]).collect();
    assert_eq!(data, expected);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_lines_ends_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::serve(folder.path()).await;
    stream(&program, json!({"partitions":1})).await;
    let mut call = Raw::call(&program, CALL).await;
    call.piece("{\"key\":\"a\"}\n").await;
    call.until("\"line\":1").await;
    program.signal(rustix::process::Signal::TERM);
    let said = call.until("shutting_down").await;
    assert!(said.contains("\"line\":2") && said.contains("send on from line 2"), "{said}");
    drop(call);
    assert!(program.ended().await.success());
}

/// A reader of answers that reads nothing holds up its own lines; memory stays where it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_million_lines_need_no_memory_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    stream(&program, json!({"partitions":4})).await;
    let send = |lines: u32| {
        let script = format!(
            "python3 -c 'import sys\nfor n in range({lines}): sys.stdout.write(\"{{\\\"key\\\":\\\"k%d\\\",\\\"data\\\":\\\"{}\\\"}}\\n\" % (n % 1000))' \
             | curl -sN -T - -X POST -H 'Content-Type: application/x-ndjson' {}/v1/streams/orders/events | grep -c '\"new\"'",
            "x".repeat(500),
            program.address()
        );
        paste(script).trim().parse::<u32>().unwrap()
    };
    assert_eq!(send(20_000), 20_000);
    let before = program.memory_bytes();
    assert_eq!(send(100_000), 100_000);
    let grown = program.memory_bytes().saturating_sub(before);
    // Sent at once they would be 50 MB, and their answers as much again.
    assert!(grown < 32 << 20, "{grown} bytes more");
    program.stop().await;
}
