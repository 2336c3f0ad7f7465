//! In a stream of mode latest the newest generation of each lane wins, in whatever order and however fast they come.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::seam;
use crate::support::{Http, Server, Step, by_lane};

const CLIENTS: u64 = 8;
const KEYS: u64 = 5;
/// Generations that each client sends to each lane.
const EACH: u64 = 12;
const LAST: u64 = 1_000;

/// Sends its share of all generations in an order of its own; answers what became of each.
async fn send(http: Http, client: u64) -> Vec<(String, u64, Value)> {
    let mut random = fastrand::Rng::with_seed(client);
    let mut generations: Vec<(u64, u64)> =
        (0..KEYS * EACH).map(|number| (number % KEYS, 1 + number / KEYS * CLIENTS + client)).collect();
    // Mostly growing, as clients do, with some of them late.
    for _ in 0..generations.len() {
        let at = random.usize(0..generations.len() - 8);
        generations.swap(at, at + random.usize(1..8));
    }
    let mut sent = Vec::new();
    for (key, generation) in generations {
        let key = format!("lane-{key}");
        let event = json!({"key":key,"generation":generation,"data":{"ms":6,"n":generation}});
        let said = http.post("/v1/streams/orders/events", event).await;
        let told = match said.status {
            201 => said.body["events"][0].clone(),
            409 => said.body["events"][0].clone(),
            _ => panic!("{said:?}"),
        };
        sent.push((key, generation, told));
    }
    sent
}

/// The generations of a lane that ran, in the order in which they began; no run begins before the one before has ended.
fn ran(key: &str, steps: &[&Step]) -> Vec<u64> {
    let mut generations = Vec::new();
    for pair in steps.chunks(2) {
        let [begin, end] = pair else { panic!("lane {key}: {pair:?}") };
        assert!(
            begin.outcome.is_none() && end.outcome.is_some() && begin.fence == end.fence,
            "{key}: {pair:?}"
        );
        generations.push(begin.data["n"].as_u64().unwrap());
    }
    generations
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_generation_wins_whatever_order_it_comes_in() {
    newest_wins(Server::start("mode = \"latest\"", "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_generation_wins_through_any_node() {
    newest_wins(Server::start_three("mode = \"latest\"", "").await).await;
}

async fn newest_wins(server: Server) {
    let http = server.http();
    let clients: Vec<_> = (0..CLIENTS).map(|client| seam::spawn(send(server.http(), client))).collect();
    let mut newest: BTreeMap<String, u64> = BTreeMap::new();
    let (mut accepted, mut stale) = (0, 0);
    for client in clients {
        for (key, generation, told) in seam::guarded("a client", client).await.unwrap() {
            if told["append"] == "stale" {
                assert!(told["newest_generation"].as_u64() > Some(generation), "{generation}: {told}");
                stale += 1;
            } else {
                assert_eq!(told["append"], "new", "{told}");
                let newest = newest.entry(key).or_default();
                *newest = generation.max(*newest);
                accepted += 1;
            }
        }
    }
    assert!(newest.values().all(|newest| *newest == CLIENTS * EACH), "the newest is never stale: {newest:?}");
    for key in newest.keys() {
        let job = json!({"key":key,"generation":LAST,"data":{"n":LAST}});
        assert_eq!(http.submit(job.clone()).await["status"], "done");
        let old = json!({"key":key,"generation":LAST - 1,"data":{"n":LAST - 1}});
        let said = http.post("/v1/streams/orders/events", old).await;
        assert_eq!(said.body["events"][0]["newest_generation"], LAST, "also when nothing waits: {said:?}");
    }

    let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
    for event in http.events("orders").await {
        let status = event["processors"][0]["status"].as_str().unwrap().to_owned();
        *statuses.entry(status).or_default() += 1;
    }
    let steps = server.steps();
    let mut runs = 0;
    for (key, steps) in by_lane(&steps, |step| &step.key) {
        let ran = ran(key, &steps);
        assert!(
            ran.is_sorted_by(|before, after| before < after),
            "an older one ran after a newer one: {key} {ran:?}"
        );
        assert_eq!(ran.last(), Some(&LAST));
        runs += ran.len() as u64;
    }
    println!("{accepted} generations accepted, {stale} stale, {runs} runs, {statuses:?}");
    assert_eq!(statuses.keys().collect::<Vec<_>>(), ["done", "superseded"], "{statuses:?}");
    assert_eq!(statuses["done"], runs, "{statuses:?}");
    assert_eq!(statuses.values().sum::<u64>(), accepted + KEYS);
    assert!(stale > 0 && accepted + stale == CLIENTS * KEYS * EACH);
    server.stop().await;
}
