//! Clients that send until they are told to end, each event until somebody acknowledges it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::{HeaderName, Method};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{Http, Receipt};
use crate::seam;

const CLIENTS: u64 = 6;
const LANES: u64 = 12;
/// Events that must be acknowledged between two faults, so that each meets work.
const BETWEEN: u64 = 30;

/// The lanes that events are sent to.
pub(crate) fn lanes() -> impl Iterator<Item = String> + Clone {
    (0..LANES).map(|lane| format!("lane-{lane}"))
}

/// A load on several nodes.
pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Vec<Acknowledged>>>,
    bursts: Vec<Acknowledged>,
}

struct Shared {
    sends: AtomicBool,
    acknowledged: AtomicU64,
    /// Odd while the store takes what it will lose.
    phase: AtomicU64,
    /// How often a node refused one and the same event, or was not there, at most.
    refusals_max: AtomicU64,
}

struct Acknowledged {
    receipt: Receipt,
    /// It was sent and acknowledged while the store kept everything.
    is_kept: bool,
}

impl Load {
    pub(crate) fn start(nodes: &[Http]) -> Self {
        let shared = Arc::new(Shared {
            sends: AtomicBool::new(true),
            acknowledged: AtomicU64::new(0),
            phase: AtomicU64::new(0),
            refusals_max: AtomicU64::new(0),
        });
        let clients = (0..CLIENTS)
            .map(|client| seam::spawn(Arc::clone(&shared).send(nodes.to_vec(), client)))
            .collect();
        Self { shared, clients, bursts: Vec::new() }
    }

    /// Waits until more events were acknowledged.
    pub(crate) async fn until_more(&self) {
        let enough = self.shared.acknowledged.load(Ordering::Relaxed) + BETWEEN;
        seam::until("more events are acknowledged", || async {
            (self.shared.acknowledged.load(Ordering::Relaxed) >= enough).then_some(())
        })
        .await;
    }

    /// Gives every lane work for a while at once, through a node that is well: whoever takes lanes over finds some.
    pub(crate) async fn burst(&mut self, http: &Http) {
        let keys: Vec<String> = lanes().cycle().take(4 * lanes().count()).collect();
        let events = keys.iter().map(|key| json!({"key": key, "data": {"ms": 120}})).collect();
        let told = http.done("/v1/streams/orders/events", events).await;
        let receipts = keys.iter().zip(told["events"].as_array().unwrap());
        self.bursts.extend(
            receipts.map(|(key, told)| Acknowledged { receipt: Receipt::read(key, told), is_kept: true }),
        );
    }

    /// Waits until every lane goes on to its end, so that one fault does not hide the recovery from another.
    pub(crate) async fn until_all_go_on(&self, http: &Http) {
        let prefer = [(HeaderName::from_static("prefer"), "wait=20")];
        for key in lanes() {
            let job = json!({"key": key, "data": {}});
            seam::until("a lane goes on", || async {
                let said =
                    http.try_call(Method::POST, "/v1/streams/orders/jobs", &prefer, Some(&job)).await?;
                (said.status == 200).then_some(())
            })
            .await;
        }
    }

    /// From now on the store may lose what it acknowledges, or not any more.
    pub(crate) fn next_phase(&self) {
        self.shared.phase.fetch_add(1, Ordering::SeqCst);
    }

    /// How often one and the same event was refused, at most.
    pub(crate) fn refusals_max(&self) -> u64 {
        self.shared.refusals_max.load(Ordering::Relaxed)
    }

    /// Ends it. What the store must still have, and what it may have lost.
    pub(crate) async fn end(self) -> (Vec<Receipt>, Vec<Receipt>) {
        self.shared.sends.store(false, Ordering::Relaxed);
        let mut all = self.bursts;
        for client in self.clients {
            all.extend(seam::guarded("a client", client).await.unwrap());
        }
        let (kept, doubtful): (Vec<_>, Vec<_>) = all.into_iter().partition(|event| event.is_kept);
        let receipts = |events: Vec<Acknowledged>| events.into_iter().map(|event| event.receipt).collect();
        (receipts(kept), receipts(doubtful))
    }
}

impl Shared {
    async fn send(self: Arc<Self>, nodes: Vec<Http>, client: u64) -> Vec<Acknowledged> {
        let mut random = fastrand::Rng::with_seed(client);
        let mut turn = usize::try_from(client).unwrap();
        let mut sent = Vec::new();
        for number in 0.. {
            let key = format!("lane-{}", random.u64(0..LANES));
            let event = json!({"key": key, "dedup_id": format!("{client}-{number}"), "data": {"ms": 4}});
            // Three appends, and then a job whose end is waited for: so clients are never far ahead of the handlers.
            let path = if number % 4 == 3 { "/v1/streams/orders/jobs" } else { "/v1/streams/orders/events" };
            // One node after the other is tried; the name of the event makes it one, however often it is sent.
            let refusals = AtomicU64::new(0);
            let acknowledged = seam::until("an event is acknowledged", || {
                turn += 1;
                self.try_send(nodes[turn % nodes.len()].clone(), path, &event, &refusals)
            });
            sent.push(acknowledged.await);
            self.refusals_max.fetch_max(refusals.load(Ordering::Relaxed), Ordering::Relaxed);
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
            if !self.sends.load(Ordering::Relaxed) {
                break;
            }
        }
        sent
    }

    async fn try_send(
        &self,
        http: Http,
        path: &str,
        event: &Value,
        refusals: &AtomicU64,
    ) -> Option<Acknowledged> {
        let before = self.phase.load(Ordering::SeqCst);
        let prefer = [(HeaderName::from_static("prefer"), "wait=1")];
        let said = seam::in_time(http.try_call(Method::POST, path, &prefer, Some(event))).await?;
        // A job that has not ended within its wait is no refusal.
        if said.as_ref().is_none_or(|said| !(200..300).contains(&said.status)) {
            refusals.fetch_add(1, Ordering::Relaxed);
        }
        let said = said?;
        let is_kept = before.is_multiple_of(2) && self.phase.load(Ordering::SeqCst) == before;
        let key = event["key"].as_str().unwrap();
        let receipt = match said.status {
            201 => Receipt::read(key, &said.body["events"][0]),
            200 => Receipt::of_job(key, &said.body),
            _ => return None,
        };
        Some(Acknowledged { receipt, is_kept })
    }
}
