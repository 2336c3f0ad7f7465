//! Events as they come, over a connection that is cut in the middle of what it says, and taken up again where it was.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::seam;
use crate::support::Server;

const CUTS: usize = 20;
/// Events before each cut: more than a connection can tell of before it is cut.
const EACH: usize = 60;

/// What a reader of server-sent events knows.
#[derive(Default)]
struct Reader {
    last_id: Option<String>,
    refs: Vec<String>,
}

impl Reader {
    /// Connects and reads until so many bytes came or so many events are known; then the connection is gone.
    async fn follow(&mut self, address: &str, bytes: usize, events: usize) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let (query, last) = match &self.last_id {
            Some(id) => ("", format!("Last-Event-ID: {id}\r\n")),
            None => ("?after=0", String::new()),
        };
        let call = format!(
            "GET /v1/streams/orders/events{query} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{last}\r\n"
        );
        stream.write_all(call.as_bytes()).await.unwrap();
        let (mut said, known) = (Vec::new(), self.refs.len());
        while said.len() < bytes && self.refs.len() < events {
            let mut piece = vec![0; 4096.min(bytes - said.len())];
            let read = seam::guarded("more events", stream.read(&mut piece)).await.unwrap();
            assert!(read > 0, "it ended by itself: {}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&piece[..read]);
            self.refs.truncate(known);
            self.take(&body(&said));
        }
    }

    /// Takes the whole messages of a body; what was cut short is none.
    fn take(&mut self, body: &str) {
        let Some((whole, _)) = body.rsplit_once("\n\n") else { return };
        for message in whole.split("\n\n") {
            let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name));
            if let Some(data) = field("data: ") {
                let event: Value = serde_json::from_str(data).unwrap();
                self.refs.push(event["ref"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned());
            }
            self.last_id = field("id: ").map(str::to_owned).or_else(|| self.last_id.take());
        }
    }
}

/// The body of an answer in chunks, as far as it came.
fn body(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let Some((head, mut rest)) = said.split_once("\r\n\r\n") else { return String::new() };
    assert!(head.starts_with("HTTP/1.1 200"), "{said}");
    let mut body = String::new();
    while let Some((len, chunk)) = rest.split_once("\r\n") {
        let len = usize::from_str_radix(len, 16).unwrap();
        body.push_str(&chunk[..len.min(chunk.len())]);
        rest = chunk.get(len + 2..).unwrap_or_default();
    }
    body
}

/// What is wrong with what was told of each partition, in comparison with what is there.
fn wrong(refs: &[String], events: &[Value]) -> Vec<String> {
    let mut told: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for reference in refs {
        told.entry(reference.rsplit_once('/').unwrap().0).or_default().push(reference);
    }
    let mut there: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for event in events {
        let reference = event["ref"].as_str().unwrap();
        there.entry(reference.rsplit_once('/').unwrap().0).or_default().push(reference);
    }
    let partitions = told.keys().chain(there.keys());
    partitions.filter(|name| told.get(*name) != there.get(*name)).map(|name| (*name).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_is_cut_twenty_times_gets_every_event_once_and_in_order() {
    follow(Server::empty().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_gets_every_event_once_and_in_order_through_any_node() {
    follow(Server::empty_three().await).await;
}

async fn follow(mut server: Server) {
    let http = server.http();
    http.put("/v1/streams/orders", json!({"partitions":4})).await;
    let address = server.host();
    let (mut reader, mut random) = (Reader::default(), fastrand::Rng::with_seed(10));
    for cut in 0..CUTS {
        let events = (0..EACH).map(|number| json!({"key":format!("k{number}"),"data":cut * EACH + number}));
        http.done("/v1/streams/orders/events", events.collect()).await;
        reader.follow(&address, random.usize(300..5_000), usize::MAX).await;
        if cut == CUTS / 2 {
            // The other end may be what is gone.
            server.kill_and_start().await;
        }
    }
    let before = reader.refs.len();
    assert!(0 < before && before < CUTS * EACH, "{before}: cut in the middle");
    reader.follow(&address, usize::MAX, CUTS * EACH).await;
    let events = http.events("orders").await;
    println!(
        "{CUTS} cuts and 1 kill, {} events told of {}, {before} before the last connection",
        reader.refs.len(),
        events.len()
    );
    assert_eq!(events.len(), CUTS * EACH);
    assert_eq!(wrong(&reader.refs, &events), Vec::<String>::new());
    // The controls: one that is missing, one that came twice, and two that changed places.
    let (mut lost, mut twice, mut mixed) = (reader.refs.clone(), reader.refs.clone(), reader.refs.clone());
    lost.remove(before);
    twice.insert(before, twice[before].clone());
    mixed.sort();
    mixed.reverse();
    for refs in [lost, twice, mixed] {
        assert!(!wrong(&refs, &events).is_empty());
    }
    server.stop().await;
}
