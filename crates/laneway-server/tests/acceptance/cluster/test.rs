//! Three nodes on one Redis while nodes die, freeze and are cut off, and the Redis dies and freezes too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use laneway_testkit::fault::Road;
use rustix::process::Signal;
use serde_json::json;

use crate::seam;
use crate::support::{Cluster, Http, Receipt, in_time};

const NODES: usize = 3;
const CLIENTS: u64 = 6;
const LANES: u64 = 12;
/// Events that must be acknowledged between two faults, so that each meets work.
const BETWEEN: u64 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillNode,
    FreezeNode,
    BlackHole,
    Cut,
    RepliesLost,
    KillRedis,
    FreezeRedis,
}

/// Thirty in all, one kind after the other in turn.
const FAULTS: [(Fault, usize); 7] = [
    (Fault::KillNode, 7),
    (Fault::FreezeNode, 6),
    (Fault::BlackHole, 5),
    (Fault::Cut, 4),
    (Fault::RepliesLost, 4),
    (Fault::KillRedis, 2),
    (Fault::FreezeRedis, 2),
];

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
                    let said = in_time(sending).await??;
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

/// Makes a fault, waits until others have taken over, and mends it. Answers how long that took.
async fn suffer(cluster: &mut Cluster, fault: Fault, node: usize) -> Duration {
    let other = (node + 1) % NODES;
    let began = seam::later(Duration::ZERO);
    match fault {
        Fault::KillNode => cluster.signal(node, Signal::KILL),
        Fault::FreezeNode => cluster.signal(node, Signal::STOP),
        Fault::BlackHole => cluster.spoil(node, Road::BlackHole),
        Fault::Cut => cluster.spoil(node, Road::Cut),
        Fault::RepliesLost => cluster.spoil(node, Road::RepliesLost),
        Fault::KillRedis => cluster.redis.kill(),
        Fault::FreezeRedis => {
            cluster.redis.signal("STOP");
            let http = cluster.http(other);
            seam::until("a node notices it", || async {
                let ready = in_time(http.try_get("/readyz")).await.flatten();
                ready.is_none().then_some(())
            })
            .await;
            cluster.redis.signal("CONT");
        }
    }
    if !matches!(fault, Fault::KillRedis | Fault::FreezeRedis) {
        cluster.until_owned(other, node, false).await;
    }
    let took = began.passed();
    match fault {
        Fault::KillNode => cluster.start_again(node).await,
        Fault::FreezeNode => cluster.signal(node, Signal::CONT),
        _ => cluster.spoil(node, Road::Open),
    }
    cluster.until_calm().await;
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_faults_of_nodes_roads_and_redis_break_no_promise() {
    let mut cluster = Cluster::start(NODES).await;
    cluster.until_calm().await;
    let load = Arc::new(Load { sends: AtomicBool::new(true), acknowledged: AtomicU64::new(0) });
    let clients: Vec<_> =
        (0..CLIENTS).map(|client| seam::spawn(Arc::clone(&load).send(cluster.all(), client))).collect();
    let mut recovery: BTreeMap<Fault, Vec<Duration>> = BTreeMap::new();
    for round in 0..FAULTS.iter().map(|(_, count)| *count).max().unwrap() {
        for (fault, _) in FAULTS.into_iter().filter(|(_, count)| round < *count) {
            load.until_more().await;
            let took = suffer(&mut cluster, fault, round % NODES).await;
            recovery.entry(fault).or_default().push(took);
        }
    }
    load.until_more().await;
    load.sends.store(false, Ordering::Relaxed);
    let mut all = Vec::new();
    for client in clients {
        all.extend(seam::guarded("a client", client).await.unwrap());
    }
    all.extend(cluster.finish((0..LANES).map(|lane| format!("lane-{lane}"))).await);
    let history = cluster.history(all).await;
    let violations = history.violations();
    for (fault, times) in &mut recovery {
        times.sort_unstable();
        let (half, max) = (times[times.len() / 2], times[times.len() - 1]);
        println!("{fault:?}: {} times, taken over after {half:.1?} (p50), {max:.1?} (max)", times.len());
    }
    println!(
        "30 faults, {} events acknowledged of {}, {} violations",
        history.acknowledged.len(),
        history.stored.len(),
        violations.len()
    );
    assert_eq!(violations, Vec::<String>::new());
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
