//! Ten thousand events of 64 clients at once, on shared lanes, with handlers that take a random time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::seam;
use crate::support::{Http, Receipt, Server};

const CLIENTS: u64 = 64;
/// Events of one append.
const EVENTS: u64 = 4;
const LANES: u64 = 50;

async fn append(http: Http, client: u64, appends: u64) -> Vec<Receipt> {
    let mut random = fastrand::Rng::with_seed(client);
    let mut receipts = Vec::new();
    for append in 0..appends {
        let keys: Vec<String> = (0..EVENTS).map(|_| format!("lane-{}", random.u64(0..LANES))).collect();
        let events = keys.iter().zip(0..).map(
            |(key, event)| json!({"key":key,"data":{"ms":2,"client":client,"n":append * EVENTS + event}}),
        );
        let told = http.done("/v1/streams/orders/events", events.collect()).await;
        let told = told["events"].as_array().unwrap();
        receipts.extend(keys.iter().zip(told).map(|(key, told)| Receipt::read(key, told)));
    }
    receipts
}

/// Lanes where the events of a client are not in the order in which it sent them.
fn mixed_up(events: &[Value]) -> Vec<String> {
    let mut sent: BTreeMap<(&str, u64), Vec<u64>> = BTreeMap::new();
    for event in events {
        if let Some(client) = event["data"]["client"].as_u64() {
            let number = event["data"]["n"].as_u64().unwrap();
            sent.entry((event["key"].as_str().unwrap(), client)).or_default().push(number);
        }
    }
    sent.into_iter().filter(|(_, numbers)| !numbers.is_sorted()).map(|lane| format!("{lane:?}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_events_of_sixty_four_clients_run_in_order_one_at_a_time() {
    order(Server::start("", "").await, 40).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_sixty_four_clients_run_in_order_through_any_node() {
    order(Server::start_three("", "").await, 4).await;
}

/// Each client appends so often.
async fn order(server: Server, appends: u64) {
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| seam::spawn(append(server.http(), client, appends))).collect();
    let mut acknowledged = Vec::new();
    for client in clients {
        acknowledged.extend(seam::guarded("a client", client).await.unwrap());
    }
    acknowledged.extend(server.finish((0..LANES).map(|lane| format!("lane-{lane}"))).await);
    let history = server.history(acknowledged).await;
    let mut violations = history.violations();
    violations.extend(mixed_up(&server.http().events("orders").await));
    println!(
        "{} events of {CLIENTS} clients in {LANES} lanes, {} runs, {} violations",
        history.stored.len(),
        history.steps.len() / 2,
        violations.len()
    );
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(history.stored.len() as u64, CLIENTS * appends * EVENTS + LANES);
    assert_eq!(history.steps.len(), 2 * history.stored.len(), "everything ran once");

    // The control: the same history with two steps of one lane exchanged.
    let mut wrong = history;
    let first = &wrong.steps[0];
    let next = (1..).find(|&at| wrong.steps[at].key == first.key && wrong.steps[at].seq == 2).unwrap();
    wrong.steps.swap(0, next);
    assert!(!wrong.violations().is_empty(), "the checker sees nothing");
    server.stop().await;
}
