//! A collector on this machine gets the spans of a send and of the run it caused, in the trace of whoever sent it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use laneway::TraceContext;
use laneway::prelude::*;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

const TRACE: [u8; 16] =
    [0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c];
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[derive(Record, Serialize, Deserialize)]
#[record(key = "customer")]
struct Order {
    customer: String,
}

async fn charge(Event(_): Event<Order>) -> Result<u64> {
    Ok(1)
}

/// Takes posts until there is what is wanted: all bytes that came.
fn collect(listener: &TcpListener, until: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut all = Vec::new();
    while !until(&all) {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let mut request = Vec::new();
        loop {
            let mut piece = [0; 4096];
            let read = stream.read(&mut piece).expect("a request");
            request.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
            let length = text
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next()?.parse::<usize>().ok());
            let head = request.windows(4).position(|window| window == b"\r\n\r\n");
            if let (Some(length), Some(head)) = (length, head)
                && request.len() >= head + 4 + length
            {
                break;
            }
            assert!(read > 0, "the post was cut");
        }
        assert!(request.starts_with(b"POST /v1/traces "), "{}", String::from_utf8_lossy(&request));
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .expect("the caller listens");
        all.extend(request);
    }
    all
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_the_spans_of_the_callers_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (spans, exporting) = laneway_otlp::begin(&endpoint, "orders-service").unwrap();
    tracing_subscriber::registry().with(spans).init();

    let app = Laneway::open("memory:").await.unwrap();
    let orders = app.stream::<Order>("orders");
    app.processor("charge", &orders, charge);
    app.start().await.unwrap();
    let order = Order { customer: "ann".to_owned() };
    let sent = async { orders.submit_as::<u64>(&order).await.unwrap().wait(secs(20)).await.unwrap() };
    assert_eq!(TraceContext::parse(PARENT, None).unwrap().within(sent).await, 1);
    app.stop(secs(5)).await;

    let wanted = |bytes: &[u8]| has(bytes, &TRACE) && has(bytes, b"process orders");
    let got = std::thread::scope(|scope| {
        let collected = scope.spawn(|| collect(&listener, wanted));
        exporting.end().unwrap();
        collected.join().unwrap()
    });
    assert!(has(&got, b"orders-service") && has(&got, b"messaging.system"));
}
