//! Order under load: many clients append, several workers run, and every lane is run in its order, one at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_client::Client;
use laneway_client::wire::{ClaimRequest, EventDraft, Settle, json};
use parking_lot::Mutex;

use crate::program::Program;
use crate::seam;

const CLIENTS: u64 = 16;
const EVENTS: u64 = 25;
const KEYS: u64 = 7;
const WORKERS: usize = 4;

/// What the workers saw of one lane.
#[derive(Default)]
struct Seen {
    seqs: Vec<u64>,
    fences: Vec<String>,
    running: bool,
}

/// Appends events to lanes shared with the other clients; each lane must have this client's events in their order.
async fn append(client: Client, number: u64) {
    for event in 0..EVENTS {
        let key = format!("lane-{}", (number + event) % KEYS);
        let data = Some(json(&(number, event)).unwrap());
        let draft = EventDraft { key: Some(key), data, ..EventDraft::default() };
        client.append("orders", &[draft]).await.unwrap();
    }
}

async fn work(client: Client, seen: Arc<Mutex<BTreeMap<String, Seen>>>) {
    let wish = ClaimRequest { max_lanes: Some(3), wait: Some("20s".to_owned()), ..ClaimRequest::default() };
    let done = || seen.lock().values().map(|seen| seen.seqs.len() as u64).sum::<u64>() >= CLIENTS * EVENTS;
    while !done() {
        let wish = ClaimRequest { wait: Some("1s".to_owned()), ..wish.clone() };
        let claims = client.claim("charge", &wish).await.unwrap().claims;
        for claim in &claims {
            let mut seen = seen.lock();
            let lane = seen.entry(claim.key.clone().unwrap()).or_default();
            assert!(!lane.running, "two workers have lane {:?}", claim.key);
            lane.running = true;
            lane.seqs.extend(claim.events.iter().map(|event| event.seq.unwrap()));
            lane.fences.push(claim.fence.clone());
        }
        if claims.is_empty() {
            continue;
        }
        // A lane is somebody else's from the moment on that it is settled.
        claims
            .iter()
            .for_each(|claim| seen.lock().get_mut(claim.key.as_ref().unwrap()).unwrap().running = false);
        let settlements =
            claims.iter().map(|claim| serde_json::json!({"claim": claim.claim, "outcome": "done"}));
        let settle = serde_json::json!({"settlements": settlements.collect::<Vec<_>>()});
        let settle: Settle = serde_json::from_value(settle).unwrap();
        let answers = client.settle("charge", &settle).await.unwrap();
        assert!(answers.settlements.iter().all(|answer| answer.accepted), "{answers:?}");
    }
}

fn check_lanes(seen: &BTreeMap<String, Seen>) {
    assert_eq!(seen.len() as u64, KEYS);
    for (key, lane) in seen {
        let expected: Vec<u64> = (1..=lane.seqs.len() as u64).collect();
        assert_eq!(lane.seqs, expected, "lane {key} ran in its order, each event once");
        assert!(lane.fences.is_sorted(), "later runs of lane {key} have higher fences");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_of_sixteen_clients_run_in_order_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    client.put_stream("orders", &serde_json::from_str(r#"{"partitions":4}"#).unwrap()).await.unwrap();
    let settings = r#"{"stream":"orders","pull":true}"#;
    client.put_processor("charge", &serde_json::from_str(settings).unwrap()).await.unwrap();
    let seen: Arc<Mutex<BTreeMap<String, Seen>>> = Arc::default();
    let appending: Vec<_> =
        (0..CLIENTS).map(|number| seam::spawn(append(program.client(), number))).collect();
    let working: Vec<_> =
        (0..WORKERS).map(|_| seam::spawn(work(program.client(), Arc::clone(&seen)))).collect();
    for task in appending.into_iter().chain(working) {
        seam::guarded("a client", task).await.unwrap();
    }
    check_lanes(&seen.lock());
    let mut data: BTreeMap<(u64, String), Vec<u64>> = BTreeMap::new();
    for partition in 0..4 {
        for event in client.events("orders", partition, 0, 1_000).await.unwrap().events {
            let (number, count): (u64, u64) = serde_json::from_str(event.data.unwrap().get()).unwrap();
            assert_eq!(event.processors[0].status, "done");
            data.entry((number, event.key.unwrap())).or_default().push(count);
        }
    }
    assert!(data.values().all(|counts| counts.is_sorted()), "each client's events are in its order");
    assert_eq!(data.values().map(Vec::len).sum::<usize>() as u64, CLIENTS * EVENTS);
    program.stop().await;
}
