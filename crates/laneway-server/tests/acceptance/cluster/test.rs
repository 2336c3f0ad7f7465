//! Three nodes on one Redis that are restarted one after the other while clients send through all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::Method;
use rustix::process::Signal;
use serde_json::json;

use crate::seam;
use crate::support::{Cluster, Http, Receipt};

const NODES: usize = 3;
const CLIENTS: u64 = 6;
const LANES: u64 = 12;
/// Events that must be acknowledged between two restarts, so that each meets work.
const BETWEEN: u64 = 30;

/// Clients that send until they are told to end, each event until somebody acknowledges it.
struct Load {
    sends: AtomicBool,
    acknowledged: AtomicU64,
}

impl Load {
    /// One node after the other is tried; the name of the event makes it one, however often it is sent.
    async fn send(self: Arc<Self>, nodes: Vec<Http>, client: u64) -> Vec<Receipt> {
        let mut random = fastrand::Rng::with_seed(client);
        let mut receipts = Vec::new();
        let mut turn = usize::try_from(client).unwrap();
        for number in 0.. {
            let key = format!("lane-{}", random.u64(0..LANES));
            let event = json!({"key": key, "dedup_id": format!("{client}-{number}"), "data": {"ms": 4}});
            let acknowledged = seam::until("an event is acknowledged", || {
                turn += 1;
                let http = nodes[turn % nodes.len()].clone();
                let event = event.clone();
                async move {
                    let sending = http.try_call(Method::POST, "/v1/streams/orders/events", &[], Some(&event));
                    let said = seam::in_time(sending).await??;
                    (said.status == 201).then_some(said.body)
                }
            })
            .await;
            receipts.push(Receipt::read(&key, &acknowledged["events"][0]));
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
            if !self.sends.load(Ordering::Relaxed) {
                return receipts;
            }
        }
        unreachable!("a client ends when it is told to")
    }

    async fn until_more(&self) {
        let enough = self.acknowledged.load(Ordering::Relaxed) + BETWEEN;
        seam::until("more events are acknowledged", || async {
            (self.acknowledged.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_are_restarted_under_load_and_nobody_notices() {
    let mut cluster = Cluster::start(NODES).await;
    cluster.until_calm().await;
    let load = Arc::new(Load { sends: AtomicBool::new(true), acknowledged: AtomicU64::new(0) });
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| seam::spawn(Arc::clone(&load).send(cluster.all(), client))).collect();
    for node in 0..NODES {
        load.until_more().await;
        cluster.signal(node, Signal::TERM);
        cluster.start_again(node).await;
        cluster.until_calm().await;
    }
    load.until_more().await;
    load.sends.store(false, Ordering::Relaxed);
    let mut all = Vec::new();
    for client in clients {
        all.extend(seam::guarded("a client", client).await.unwrap());
    }
    all.extend(cluster.finish((0..LANES).map(|lane| format!("lane-{lane}"))).await);
    let history = cluster.history(all).await;
    assert_eq!(history.violations(), Vec::<String>::new());
    let begun = history.steps.iter().filter(|step| step.outcome.is_none()).count();
    assert_eq!(begun, history.stored.len(), "nothing ran twice: every node handed over in good order");
}
