//! Bodies that are huge, deep, endless or packed: refused by the name of their limit, with no memory for them.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::program::Program;
use crate::seam;
use crate::support::Http;

/// Callers that do the same at the same time.
const CALLERS: usize = 8;
/// Most bytes of memory that all of it together may take: a sixteenth of what the callers would send at a time.
const GROWN_MAX: u64 = 128 << 20;
/// What a caller would send if nobody stopped it.
const ENDLESS: usize = 256 << 20;
/// What a packed body would be.
const UNPACKED: usize = 64 << 20;
const JSON: &str = "content-type: application/json\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n";

/// Sends the piece again and again, up to so many bytes, until there is an answer; answers it, and how much was sent.
async fn send(address: String, headers: String, piece: Vec<u8>, most: usize) -> (Value, usize) {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!("POST /v1/streams/orders/events HTTP/1.1\r\nhost: {address}\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut from, mut to) = stream.split();
    let mut sent = 0;
    let flood = async {
        // Nobody reads any more once the answer is given: then it stays here, and the answer decides.
        while sent < most && to.write_all(&piece).await.is_ok() {
            sent += piece.len();
        }
        std::future::pending::<()>().await;
    };
    let answer = async {
        let mut said = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&said).into_owned();
            let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            if let Some(Ok(problem)) = serde_json::Deserializer::from_str(body).into_iter().next() {
                return problem;
            }
            let read = from.read_buf(&mut said).await.unwrap_or_else(|error| panic!("{error}: {text}"));
            assert!(read > 0, "no answer: {text}");
        }
    };
    let answer = seam::guarded("an answer", async {
        tokio::select! {
            answer = answer => answer,
            () = flood => unreachable!("it never ends"),
        }
    });
    let answer = answer.await;
    (answer, sent)
}

async fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = async_compression::tokio::write::GzipEncoder::new(Vec::new());
    encoder.write_all(bytes).await.unwrap();
    encoder.shutdown().await.unwrap();
    encoder.into_inner()
}

fn with_length(headers: &str, length: usize) -> String {
    format!("{headers}content-length: {length}\r\n")
}

/// A piece of a body in chunks.
fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_without_measure_are_refused_by_name_and_need_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let http = Http::new(program.address());
    http.put("/v1/streams/orders", json!({"partitions":1})).await;
    let address = program.address().strip_prefix("http://").unwrap();
    let blanks = vec![b' '; 64 << 10];
    let zipped = gzip(&vec![b' '; UNPACKED]).await;
    let deep = "[".repeat(500_000);
    let too_large = ("body_too_large", "1048576");
    let packed_as = |how: &str| format!("{JSON}content-encoding: {how}\r\n");
    let bodies = [
        ("huge, and says so", too_large, with_length(JSON, 100 << 30), blanks.clone(), ENDLESS),
        ("endless", too_large, format!("{JSON}{CHUNKED}"), chunk(&blanks), ENDLESS),
        ("deep", ("json_too_deep", "64"), with_length(JSON, deep.len()), deep.into_bytes(), 1),
        ("gzip", too_large, with_length(&packed_as("gzip"), zipped.len()), zipped, 1),
        (
            "endless and no gzip",
            ("invalid_encoding", "gzip"),
            format!("{}{CHUNKED}", packed_as("gzip")),
            chunk(&blanks),
            ENDLESS,
        ),
    ];
    let before = program.peak_memory_bytes();
    for (name, (code, limit), headers, piece, most) in bodies {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| seam::spawn(send(address.to_owned(), headers.clone(), piece.clone(), most)))
            .collect();
        let mut longest = 0;
        for caller in callers {
            let (problem, sent) = caller.await.unwrap();
            assert_eq!(problem["code"], code, "{name}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains(limit), "{name}: {problem}");
            longest = sent.max(longest);
        }
        let grown = program.peak_memory_bytes().saturating_sub(before);
        println!(
            "{name}: {CALLERS} callers refused with {code}, at most {longest} bytes sent; {grown} bytes of memory more"
        );
        assert!(grown < GROWN_MAX, "{name}: {grown} bytes");
    }
    let said = http.done("/v1/streams/orders/events", json!({"key":"a","data":"x".repeat(1_000_000)})).await;
    assert_eq!(said["events"][0]["append"], "new", "whoever keeps to the limits is served");
    program.stop().await;
}

/// A line has a limit of its own: one without an end is passed over, and the next one counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_needs_no_memory_and_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    Http::new(program.address()).put("/v1/streams/orders", json!({"partitions":1})).await;
    let before = program.peak_memory_bytes();
    let call =
        "POST /v1/streams/orders/events\nContent-Type: application/x-ndjson\nTransfer-Encoding: chunked";
    let mut raw = crate::raw::Raw::call(&program, call).await;
    let piece = "x".repeat(1 << 20);
    for _ in 0..128 {
        raw.piece(&piece).await;
    }
    raw.piece("\n{\"key\":\"a\"}\n").await;
    raw.piece("").await;
    let said = raw.until("\"line\":2").await.to_owned();
    assert!(said.contains("body_too_large") && said.contains("1048576"), "{said}");
    raw.until("\"new\"").await;
    let grown = program.peak_memory_bytes().saturating_sub(before);
    println!("a line of 128 MiB was passed over; {grown} bytes of memory more");
    assert!(grown < GROWN_MAX / 2, "{grown} bytes");
    program.stop().await;
}
