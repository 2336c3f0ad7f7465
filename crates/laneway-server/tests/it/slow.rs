//! Ten thousand connections that send as little as they can, beside callers who work.

use std::time::Duration;

use http::Method;
use laneway_client::Client;
use laneway_client::wire::{ClaimRequest, EventDraft, ProcessorSettings, Settle, StreamSettings};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::program::Program;
use crate::raw::Raw;
use crate::seam;

/// Connections of each kind: half a head, a body that does not come, and nothing after an answer.
const EACH: usize = 3_334;
const HALF_HEAD: &str = "GET /v1/streams HTTP/1.1\r\nhost: localhost\r\nx-half: ";
const HALF_BODY: &str = "POST /v1/streams/orders/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
     content-length: 900000\r\n\r\n{\"key\":";
const WHOLE: &str = "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n";
/// How long callers are measured at a time.
const MEASURED: Duration = Duration::from_secs(2);
/// Bytes of memory that one connection may take.
const BYTES_PER_CONNECTION: u64 = 48 << 10;

/// What callers get done while nobody or everybody is slow.
#[derive(Debug, Clone, Copy)]
struct Measured {
    settled: usize,
    p99: Duration,
}

async fn measure(client: &Client) -> Measured {
    let until = seam::later(MEASURED);
    let worker = async |name: &str| {
        let mut settled = 0;
        while !until.is_over() {
            let event = EventDraft { key: Some(name.to_owned()), ..EventDraft::default() };
            client.append("orders", &[event]).await.unwrap();
            let claim = ClaimRequest { wait: Some("5s".to_owned()), ..ClaimRequest::default() };
            for claim in client.claim("charge", &claim).await.unwrap().claims {
                let done = serde_json::json!({"settlements": [{"claim": claim.claim, "outcome": "done"}]});
                let done: Settle = serde_json::from_value(done).unwrap();
                client.settle("charge", &done).await.unwrap();
                settled += 1;
            }
        }
        settled
    };
    let looker = async {
        let mut took = Vec::new();
        while !until.is_over() {
            let begun = seam::later(Duration::ZERO);
            assert_eq!(client.send(Method::GET, "/v1/streams", &[], None).await.unwrap().status, 200);
            took.push(begun.passed());
        }
        took.sort_unstable();
        took[took.len() * 99 / 100]
    };
    let (one, two, p99) = tokio::join!(worker("a"), worker("b"), looker);
    Measured { settled: one + two, p99 }
}

/// So many connections that all say this and then nothing.
async fn slow(address: &str, count: usize, says: &str) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(says.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

async fn prepared(program: &Program) -> Client {
    let client = program.client();
    let stream = StreamSettings { partitions: Some(2), ..StreamSettings::default() };
    client.put_stream("orders", &stream).await.unwrap();
    let pull = ProcessorSettings { stream: "orders".to_owned(), pull: true, ..ProcessorSettings::default() };
    client.put_processor("charge", &pull).await.unwrap();
    client
}

/// As many as the machine lets this process open.
#[expect(clippy::print_stdout, reason = "what a machine cannot do is said in the output")]
fn of_each() -> usize {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let files = maximum.map_or(usize::MAX, |files| usize::try_from(files).unwrap());
    let each = EACH.min(files.saturating_sub(2_000) / 3);
    if each < EACH {
        println!("the limit of open files allows {} slow connections instead of {}", 3 * each, 3 * EACH);
    }
    each
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_slow_connections_hold_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let each = of_each();
    let variables = [("LANEWAY_HTTP_CONNECTIONS_MAX", "11000"), ("LANEWAY_HTTP_HEADER_TIMEOUT", "12s")];
    let mut program = Program::serve_as(folder.path(), &[], &variables).await;
    let client = prepared(&program).await;
    let address = program.address().strip_prefix("http://").unwrap().to_owned();
    // A server that has no slow connections, at the same time: the machine is as busy for both.
    let calm_folder = tempfile::tempdir().unwrap();
    let calm = Program::serve(calm_folder.path()).await;
    let calm_client = prepared(&calm).await;
    tokio::join!(measure(&client), measure(&calm_client));
    let memory = program.memory_bytes();

    let bodies = slow(&address, each, HALF_BODY).await;
    let idle = slow(&address, each, WHOLE).await;
    let heads = slow(&address, each, HALF_HEAD).await;
    let taken = program.memory_bytes().saturating_sub(memory);
    assert!(taken < 3 * each as u64 * BYTES_PER_CONNECTION, "{taken} bytes for {} connections", 3 * each);
    let mut told = Vec::new();
    let mut is_good = false;
    for _ in 0..3 {
        let (beside, alone) = tokio::join!(measure(&client), measure(&calm_client));
        told.push(format!("beside {} slow connections {beside:?}, without them {alone:?}", 3 * each));
        is_good = good(alone, beside);
        if is_good {
            break;
        }
    }
    println!("{told:?}; {taken} bytes");
    assert!(is_good, "{told:?}");
    calm.stop().await;

    for mut head in heads {
        let mut rest = Vec::new();
        let closed = seam::guarded("the end of half a head", head.read_to_end(&mut rest)).await;
        // A connection is closed or reset, depending on what was still on its way.
        assert!(closed.is_err() || rest.is_empty(), "{rest:?}");
    }
    assert_eq!(client.send(Method::GET, "/livez", &[], None).await.unwrap().status, 200);

    program.signal(Signal::TERM);
    assert!(program.ended().await.success());
    assert!(!program.errors().contains("connections were cut"), "{}", program.errors());
    drop((bodies, idle));
}

/// Within 20 % of the rate, and in 100 ms, unless the machine is slower than that for everybody.
fn good(alone: Measured, beside: Measured) -> bool {
    let p99_max = Duration::from_millis(100).max(alone.p99 * 2);
    beside.settled * 10 >= alone.settled * 8 && beside.p99 < p99_max
}

/// With every place taken by slow ones, a caller that sends its request gets one.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_finds_a_place_among_connections_that_do_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve_as(folder.path(), &[], &[("LANEWAY_HTTP_CONNECTIONS_MAX", "32")]).await;
    let address = program.address().strip_prefix("http://").unwrap().to_owned();
    let mut kept = Vec::new();
    for says in [HALF_HEAD, HALF_BODY, WHOLE, HALF_HEAD, HALF_BODY, WHOLE] {
        kept.extend(slow(&address, 50, says).await);
        let fresh = program.client();
        assert_eq!(fresh.send(Method::GET, "/v1/streams", &[], None).await.unwrap().status, 200);
    }
    // Those that were there first were closed for those that came later.
    let mut rest = Vec::new();
    let first = seam::guarded("the end of the first", kept[0].read_to_end(&mut rest)).await;
    assert!(first.is_err() || rest.is_empty());
    program.stop().await;
}

/// When every place is taken by a call under way, one more is told so, and which setting it is about.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_finds_no_place_is_told_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve_as(folder.path(), &[], &[("LANEWAY_HTTP_CONNECTIONS_MAX", "2")]).await;
    prepared(&program).await;
    let call = "GET /v1/streams/orders/events\nAccept: text/event-stream";
    let mut followers = Vec::new();
    for _ in 0..2 {
        let mut follower = Raw::call(&program, call).await;
        follower.until("retry: ").await;
        followers.push(follower);
    }
    let address = program.address().strip_prefix("http://").unwrap();
    let mut told = String::new();
    let mut one_more = TcpStream::connect(address).await.unwrap();
    seam::guarded("the refusal", one_more.read_to_string(&mut told)).await.unwrap();
    for says in ["HTTP/1.1 503 ", "\"code\":\"overloaded\"", "http.connections_max", "retry-after: "] {
        assert!(told.contains(says), "{says}: {told}");
    }
}
