//! Kills of the server, or of one of three after the other, while clients append and handlers run, and an end in good
//! order at last.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderName, Method};
use serde_json::json;
use tokio::sync::watch;

use crate::seam;
use crate::support::{Http, Receipt, Server, Step};

const CLIENTS: u64 = 8;
const LANES: u64 = 16;

/// Where the load and the test meet.
struct Load {
    /// How often the server was started; 0 when no more shall be sent.
    starts: watch::Sender<u64>,
    acknowledged: watch::Sender<u64>,
}

/// What a client sends again until it is acknowledged: the name that it has makes it one, however often it is sent.
struct Wish {
    path: &'static str,
    name: String,
    key: String,
}

impl Wish {
    /// Three appends, and then a job whose end is waited for: so clients are never far ahead of the handlers.
    fn new(client: u64, number: u64, random: &mut fastrand::Rng) -> Self {
        let path = if number % 4 == 3 { "/v1/streams/orders/jobs" } else { "/v1/streams/orders/events" };
        Self { path, name: format!("{client}-{number}"), key: format!("lane-{}", random.u64(0..LANES)) }
    }

    /// What the server acknowledged; nothing if it was killed, or is about to end.
    async fn send(&self, http: &Http) -> Option<Receipt> {
        let event = json!({"key":self.key,"dedup_id":self.name,"data":{"ms":4}});
        let prefer = [(HeaderName::from_static("prefer"), "wait=40")];
        let said = http.try_call(Method::POST, self.path, &prefer, Some(&event)).await?;
        // A server that ends takes nothing new, and tells who waits how things stand.
        if matches!(said.status, 202 | 503) {
            return None;
        }
        assert!(matches!(said.status, 200 | 201), "{}", said.body);
        if self.path.ends_with("events") {
            return Some(Receipt::read(&self.key, &said.body["events"][0]));
        }
        Some(Receipt::of_job(&self.key, &said.body))
    }
}

/// Sends one wish after the other; answers what was acknowledged.
async fn send(http: Http, client: u64, load: Arc<Load>) -> Vec<Receipt> {
    let mut starts = load.starts.subscribe();
    let mut random = fastrand::Rng::with_seed(client);
    let mut receipts = Vec::new();
    for number in 0.. {
        let wish = Wish::new(client, number, &mut random);
        loop {
            let start = *starts.borrow_and_update();
            if start == 0 {
                return receipts;
            }
            if let Some(receipt) = wish.send(&http).await {
                receipts.push(receipt);
                load.acknowledged.send_modify(|count| *count += 1);
                break;
            }
            // The next one gets it.
            starts.wait_for(|now| *now != start).await.unwrap();
        }
    }
    unreachable!("a client ends when it is told to")
}

/// Waits until so many more were acknowledged.
async fn acknowledged(load: &Load, more: u64) {
    let mut count = load.acknowledged.subscribe();
    let enough = *count.borrow_and_update() + more;
    seam::guarded("appends", count.wait_for(|count| *count >= enough)).await.unwrap();
}

/// The fences of runs that began and did not end.
fn open(steps: &[Step]) -> BTreeSet<&str> {
    let mut open = BTreeSet::new();
    for step in steps {
        if step.outcome.is_none() {
            open.insert(step.fence.as_str());
        } else {
            open.remove(step.fence.as_str());
        }
    }
    open
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_kills_and_a_drain_under_load_lose_nothing_and_settle_nothing_twice() {
    kills(Server::start("", "").await, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_of_each_of_three_nodes_under_load_loses_nothing_and_settles_nothing_twice() {
    kills(Server::start_three("", "").await, 3).await;
}

async fn kills(mut server: Server, kills: usize) {
    let load = Arc::new(Load { starts: watch::Sender::new(1), acknowledged: watch::Sender::new(0) });
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| seam::spawn(send(server.http(), client, Arc::clone(&load)))).collect();
    let mut random = fastrand::Rng::with_seed(20);
    for _ in 0..kills {
        acknowledged(&load, random.u64(4 * CLIENTS..20 * CLIENTS)).await;
        server.kill_and_start().await;
        load.starts.send_modify(|starts| *starts += 1);
    }
    // What begins from here on is killed no more.
    let killed = server.steps().len();
    acknowledged(&load, 200).await;
    let began = server.steps().len();
    server.drain().await;
    let drained = server.steps();
    server.start_again().await;
    load.starts.send_modify(|starts| *starts = 0);
    let mut all = Vec::new();
    for client in clients {
        all.extend(seam::guarded("a client", client).await.unwrap());
    }
    all.extend(server.finish((0..LANES).map(|lane| format!("lane-{lane}"))).await);

    let history = server.history(all).await;
    let violations = history.violations();
    let runs = history.steps.iter().filter(|step| step.outcome.is_none()).count();
    println!(
        "{kills} kills and 1 drain, {} events acknowledged of {}, {runs} runs, {} violations",
        history.acknowledged.len(),
        history.stored.len(),
        violations.len()
    );
    assert_eq!(violations, Vec::<String>::new());
    // An end in good order waits for what runs, and settles it: nobody runs it again, here or on another node.
    let cut = open(&drained[killed..]);
    assert!(drained.len() > began && cut.is_empty(), "cut by the end: {cut:?}");
    let mut ended = BTreeSet::new();
    let mut ends = history.steps[began..].iter().filter(|step| step.outcome.is_some());
    let again = ends.find(|step| !ended.insert(step.reference.as_str()));
    assert!(again.is_none(), "settled before the end, and run again: {again:?}");
    server.stop().await;
}
