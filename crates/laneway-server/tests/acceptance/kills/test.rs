//! Twenty kills of the server while clients append and handlers run, and an end in good order at last.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::Method;
use serde_json::json;
use tokio::sync::watch;

use crate::seam;
use crate::support::{Http, Receipt, Server, Step};

const KILLS: usize = 20;
const CLIENTS: u64 = 8;
const LANES: u64 = 16;

/// Where the load and the test meet.
struct Load {
    /// How often the server was started; 0 when no more shall be sent.
    starts: watch::Sender<u64>,
    acknowledged: watch::Sender<u64>,
}

/// Appends one event after the other, each until it is acknowledged: the dedup id makes it one, however often it is sent.
async fn append(http: Http, client: u64, load: Arc<Load>) -> Vec<Receipt> {
    let mut starts = load.starts.subscribe();
    let mut random = fastrand::Rng::with_seed(client);
    let mut receipts = Vec::new();
    for number in 0.. {
        let key = format!("lane-{}", random.u64(0..LANES));
        let event = json!({"key":key,"dedup_id":format!("{client}-{number}"),"data":{"ms":4}});
        loop {
            let start = *starts.borrow_and_update();
            if start == 0 {
                return receipts;
            }
            let path = "/v1/streams/orders/events";
            let said = http.try_call(Method::POST, path, &[], Some(&event)).await;
            if let Some(said) = said.filter(|said| said.status != 503) {
                assert!(matches!(said.status, 200 | 201), "{}", said.body);
                receipts.push(Receipt::read(&key, &said.body["events"][0]));
                load.acknowledged.send_modify(|count| *count += 1);
                break;
            }
            // Killed, or about to end: the next one gets it.
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
    let mut server = Server::start("", "").await;
    let load = Arc::new(Load { starts: watch::Sender::new(1), acknowledged: watch::Sender::new(0) });
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| seam::spawn(append(server.http(), client, Arc::clone(&load)))).collect();
    let mut random = fastrand::Rng::with_seed(20);
    for _ in 0..KILLS {
        acknowledged(&load, random.u64(10..120)).await;
        server.kill_and_start().await;
        load.starts.send_modify(|starts| *starts += 1);
    }
    acknowledged(&load, 200).await;
    let began = server.steps().len();
    server.drain().await;
    let drained = server.steps();
    let of_the_last = &drained[began..];
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
        "{KILLS} kills and 1 drain, {} events acknowledged of {}, {runs} runs, {} violations",
        history.acknowledged.len(),
        history.stored.len(),
        violations.len()
    );
    assert_eq!(violations, Vec::<String>::new());
    // An end in good order waits for what runs, and settles it.
    let term = |steps: &[Step]| steps.iter().map(|step| step.term().to_owned()).max();
    let last = term(&drained);
    let cut: Vec<&str> =
        open(&drained).into_iter().filter(|fence| Some(&fence[..16]) == last.as_deref()).collect();
    assert!(!of_the_last.is_empty() && cut.is_empty(), "cut by the end: {cut:?}");
    let ended: BTreeSet<&str> = of_the_last
        .iter()
        .filter(|step| step.outcome.is_some())
        .map(|step| step.reference.as_str())
        .collect();
    let again = history.steps[drained.len()..].iter().find(|step| ended.contains(step.reference.as_str()));
    assert!(again.is_none(), "settled before the end, and run again: {again:?}");
    server.stop().await;
}
