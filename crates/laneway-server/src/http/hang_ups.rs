//! Every call that changes something is dropped at every await point, as hyper drops it when its caller hangs up. What is
//! there afterwards is what was there before, or what a call leaves whose caller waited.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use laneway::Laneway;
use laneway::core::Partition;
use laneway::core::store::{Query, Rows};
use laneway::engine::handler::{LaneAnswer, OnFailure, Retry, Run};
use laneway::engine::{ProcessorSettings, Registration, Stores};
use laneway_testkit::fault::{Yielding, polled};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::gate::{Gate, Limits, Mode};
use super::guard::Hosts;
use super::router::router;
use super::scopes::CHANGES;
use crate::access::Book;
use crate::duties::Duties;
use crate::handlers::{Rules, Secret};
use crate::listen::Exposure;
use crate::node::{Ending, Node};
use crate::seam;

/// How long a world may take to come to rest.
const QUIET_WITHIN: Duration = Duration::from_secs(60);

/// A server without a network: streams, processors, dead letters, jobs and a schedule, on a store that suspends every call.
struct World {
    node: Node,
    gate: Arc<Gate>,
    router: TowerToHyperService<Router>,
    /// A job of `parcels` that waits, one that has ended, and a claim on a third.
    waiting: String,
    ended: String,
    claim: String,
    /// Without it the server would be about to end.
    _ending: watch::Sender<Ending>,
}

impl World {
    async fn new(rules: &Arc<Rules>) -> Self {
        let memory = Laneway::open("memory:").await.expect("a store in memory");
        let Stores { store, documents, wakeups } = memory.engine().stores().clone();
        let yielding = Yielding::new(store, documents);
        let app = Laneway::with_store(Stores { store: yielding.clone(), documents: yielding, wakeups });
        let (node, ending) = Node::new(app, Duties::all(), Some(Arc::clone(rules)), None);
        let hosts = Hosts::new(Exposure::Machine, Vec::new());
        let gate = Gate::new(hosts, Book::empty(), Mode::ReadWrite, Limits::default());
        let router = TowerToHyperService::new(router(node.clone(), Arc::clone(&gate)));
        let (waiting, ended, claim) = (String::new(), String::new(), String::new());
        let mut world = Self { node, gate, router, waiting, ended, claim, _ending: ending };
        world.furnish().await;
        world
    }

    async fn furnish(&mut self) {
        self.ask("PUT", "/v1/streams/orders", json!({"partitions": 4})).await;
        self.ask("PUT", "/v1/streams/parcels", json!({"partitions": 1})).await;
        self.ask("PUT", "/v1/streams/mails", json!({"partitions": 2})).await;
        let broken = Arc::new(AtomicBool::new(true));
        let is_broken = Arc::clone(&broken);
        let handler = move |run: Run| {
            let is_broken = is_broken.load(Ordering::Relaxed);
            async move {
                let failed = |_: &_| LaneAnswer::failed("closed", Retry::Never);
                let answers = run.lanes.iter();
                if is_broken {
                    answers.map(failed).collect()
                } else {
                    answers.map(LaneAnswer::all_done).collect()
                }
            }
        };
        let mut settings = ProcessorSettings::default();
        settings.policy.on_failure = OnFailure::DeadLetter;
        let charge = Registration { settings, ..Registration::new("charge", "orders") };
        self.node.engine().process_as(charge, Arc::new(handler)).await.unwrap();
        self.ask("PUT", "/v1/processors/ship", json!({"stream": "parcels", "pull": true})).await;
        let mail = json!({"stream": "mails", "http": "https://one.mail.example/"});
        self.ask("PUT", "/v1/processors/mail", mail).await;
        let orders: Vec<Value> = (0..8).map(|key| json!({"key": format!("k{key}"), "data": key})).collect();
        self.ask("POST", "/v1/streams/orders/events", json!(orders)).await;
        self.until_quiet().await;
        broken.store(false, Ordering::Relaxed);
        for key in ["p1", "p2", "p3"] {
            let job = self.ask("POST", "/v1/streams/parcels/jobs", json!({"key": key, "data": 1})).await;
            let id = job["id"].as_str().unwrap().to_owned();
            match key {
                "p1" => self.ended = id,
                "p2" => {}
                _ => self.waiting = id,
            }
        }
        for key in ["p1", "p2"] {
            let claimed = json!({"max_lanes": 1, "wait": "10s", "lease": "1h"});
            let claimed = self.ask("POST", "/v1/processors/ship/claim", claimed).await;
            let claim = &claimed["claims"][0];
            assert_eq!(claim["key"], key);
            self.claim = claim["claim"].as_str().unwrap().to_owned();
            if key == "p1" {
                self.ask("POST", "/v1/processors/ship/settle", self.settlement()).await;
            }
        }
        let schedule = json!({"stream": "parcels", "cron": "0 0 1 1 *", "key": "new year", "data": 1});
        self.ask("PUT", "/v1/schedules/yearly", schedule).await;
        self.until_quiet().await;
    }

    fn settlement(&self) -> Value {
        json!({"settlements": [{"claim": self.claim, "outcome": "done"}]})
    }

    /// A call with its body, for this world.
    fn request(&self, method: &str, path: &str, body: &Value) -> Request<Body> {
        let path = path.replace("{waiting}", &self.waiting).replace("{ended}", &self.ended);
        let text = body.to_string().replace("{waiting}", &self.waiting).replace("{claim}", &self.claim);
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        if body.is_null() {
            return request.body(Body::empty()).unwrap();
        }
        request.header("content-type", "application/json").body(Body::from(text)).unwrap()
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let answer = self.router.call(self.request(method, path, &body)).await.unwrap();
        let status = answer.status();
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() }
    }

    /// Waits until no call is under way, all requests are applied, and `charge` has run what there is.
    async fn until_quiet(&self) {
        let until = seam::steady().after(QUIET_WITHIN);
        loop {
            let busy = if self.gate.is_idle() { self.work().await } else { Some("a call".to_owned()) };
            let Some(busy) = busy else { return };
            assert!(seam::steady() < until, "the world does not come to rest: {busy}");
            tokio::task::yield_now().await;
        }
    }

    /// Something that is still to be done.
    async fn work(&self) -> Option<String> {
        let engine = self.node.engine();
        for info in engine.catalogue().streams().await.unwrap() {
            for partition in 0..info.settings.partitions {
                let shard = info.shard(Partition(partition));
                let store = &engine.stores().store;
                let (counts, seats) =
                    (store.query(Query::Counts(shard)).await, store.query(Query::Seats(shard)).await);
                let (Ok(Rows::Counts(counts)), Ok(Rows::Seats(about, seats))) = (counts, seats) else {
                    return Some(format!("stream {} is being removed", info.name));
                };
                let charge = info.processors.iter().find(|processor| processor.name == "charge");
                let charge =
                    seats.iter().find(|seat| charge.is_some_and(|charge| charge.id == seat.processor));
                let is_behind = charge.is_some_and(|seat| seat.progress.window.floor() < about.head);
                let asked = counts.seats.iter().any(|(_, [_, _, emits, requests])| emits + requests > 0);
                if is_behind || asked {
                    return Some(format!("{} {partition}: behind {is_behind}, asked {asked}", info.name));
                }
            }
        }
        None
    }

    /// Stops what runs, so that it takes no time from the next world.
    async fn end(self) {
        self.node.engine().drain(Duration::ZERO).await;
    }

    /// Everything that callers can see, without what is another in every world.
    async fn seen(&self) -> Value {
        let mut seen = Vec::new();
        for path in [
            "/v1/streams",
            "/v1/processors",
            "/v1/dead-letters",
            "/v1/jobs",
            "/v1/schedules",
            "/v1/streams/orders/lanes?status=paused",
        ] {
            let mut answer = self.node_has(path).await;
            strip(&mut answer);
            seen.push(json!({ path: answer }));
        }
        json!(seen)
    }

    async fn node_has(&self, path: &str) -> Value {
        let answer = self.router.call(self.request("GET", path, &Value::Null)).await.unwrap();
        // The lanes of a stream that is gone.
        if answer.status() == StatusCode::NOT_FOUND {
            return Value::Null;
        }
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }
}

/// Removes times and what is made of them.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !(name.ends_with("_at") || VARYING.contains(&name.as_str())));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

const VARYING: &[&str] = &[
    "id",
    "at",
    "since",
    "next",
    "keep_until",
    "last_job",
    "retry_of",
    "why",
    "age_seconds",
    "waiting_seconds",
];

/// Every call of the API that may change something, with a body that does.
fn calls() -> Vec<(&'static str, &'static str, Value)> {
    let events: Vec<Value> = (0..8).map(|key| json!({"key": format!("n{key}"), "data": key})).collect();
    let lane = |key: &str| json!({"key": key, "processor": "charge"});
    vec![
        ("PUT", "/v1/streams/new", json!({"partitions": 3})),
        ("PUT", "/v1/streams/orders", json!({"partitions": 4, "keep": "3d"})),
        ("DELETE", "/v1/streams/orders", Value::Null),
        ("DELETE", "/v1/streams/parcels", Value::Null),
        ("POST", "/v1/streams/orders/events", json!(events)),
        ("POST", "/v1/streams/orders/lanes/pause", lane("k1")),
        ("POST", "/v1/streams/orders/lanes/resume", lane("k1")),
        ("POST", "/v1/streams/orders/lanes/retry", lane("k1")),
        ("POST", "/v1/streams/orders/lanes/skip", lane("k1")),
        ("POST", "/v1/streams/parcels/jobs", json!([{"key": "a", "data": 1}, {"key": "b", "data": 2}])),
        ("POST", "/v1/jobs/cancel", json!({"ids": ["{waiting}"]})),
        ("POST", "/v1/jobs/{waiting}/cancel", Value::Null),
        ("POST", "/v1/jobs/{ended}/retry", Value::Null),
        ("POST", "/v1/jobs/{ended}/take", Value::Null),
        ("DELETE", "/v1/jobs/{ended}", Value::Null),
        ("PUT", "/v1/processors/audit", json!({"stream": "orders", "pull": true})),
        ("PUT", "/v1/processors/ship", json!({"stream": "parcels", "pull": true, "concurrency": 3})),
        ("PUT", "/v1/processors/mail", json!({"stream": "mails", "http": "https://two.mail.example/"})),
        ("DELETE", "/v1/processors/charge", Value::Null),
        ("DELETE", "/v1/processors/ship", Value::Null),
        ("POST", "/v1/processors/charge/pause", Value::Null),
        ("POST", "/v1/processors/charge/resume", Value::Null),
        ("POST", "/v1/processors/charge/reset", json!({"start": "beginning"})),
        ("POST", "/v1/processors/ship/claim", json!({"wait": "0s"})),
        (
            "POST",
            "/v1/processors/ship/settle",
            json!({"settlements": [{"claim": "{claim}", "outcome": "done"}]}),
        ),
        ("POST", "/v1/processors/ship/extend", json!({"claims": ["{claim}"], "lease": "1h"})),
        (
            "PUT",
            "/v1/schedules/monthly",
            json!({"stream": "parcels", "cron": "0 0 1 * *", "key": "k", "data": 1}),
        ),
        ("DELETE", "/v1/schedules/yearly", Value::Null),
        ("POST", "/v1/schedules/yearly/run", Value::Null),
        ("POST", "/v1/nodes/x/drain", Value::Null),
        ("DELETE", "/v1/nodes/x/drain", Value::Null),
        ("POST", "/v1/leases/break", json!({"lease": "node/x"})),
        // Refused on a store in memory; `backup` drops the one that is made.
        ("POST", "/v1/store/backup", json!({"name": "one"})),
        ("POST", "/v1/dead-letters/redrive", json!({"filter": {"processor": "charge"}})),
        ("POST", "/v1/dead-letters/discard", json!({"filter": {"processor": "charge"}})),
    ]
}

fn rules() -> Arc<Rules> {
    let secret = Secret::new("a secret of a test");
    Arc::new(Rules::new(secret, vec![443], Vec::new(), false, None).expect("rules"))
}

/// Drops a call after every number of polls until it ends by itself. Returns how often it was dropped halfway.
async fn check(rules: &Arc<Rules>, method: &str, path: &str, body: &Value) -> usize {
    let world = World::new(rules).await;
    let before = world.seen().await;
    world.router.call(world.request(method, path, body)).await.expect("it is answered");
    world.until_quiet().await;
    let after = world.seen().await;
    world.end().await;
    for polls in 1.. {
        let world = World::new(rules).await;
        // An answer that is kept would keep its place.
        let has_ended = polled(polls, world.router.call(world.request(method, path, body))).await.is_some();
        world.until_quiet().await;
        let seen = world.seen().await;
        assert!(
            seen == before || seen == after,
            "{method} {path} dropped after {polls} polls:\n{seen}\nis neither what was before:\n{before}\nnor after:\n{after}"
        );
        world.end().await;
        if has_ended {
            return polls - 1;
        }
    }
    unreachable!("a call ends after some number of polls")
}

#[tokio::test]
async fn caller_that_hangs_up_leaves_no_change_half_done() {
    let rules = rules();
    let mut dropped = 0;
    for (method, path, body) in calls() {
        dropped += check(&rules, method, path, &body).await;
    }
    assert!(dropped > 200, "calls were dropped only {dropped} times");
}

#[test]
fn every_call_that_changes_something_is_dropped() {
    let pattern = |text: &str| -> Vec<String> { text.split('/').map(str::to_owned).collect() };
    let is_of = |listed: &str, call: &str| {
        let (listed, call) = (pattern(listed), pattern(call));
        let same = |(listed, part): (&String, &String)| listed.starts_with('{') || listed == part;
        listed.len() == call.len() && listed.iter().zip(&call).all(same)
    };
    let calls = calls();
    let missing: BTreeSet<_> = CHANGES
        .iter()
        .filter(|(_, path, _)| *path != "/v1/jobs/query")
        .filter(|(method, path, _)| {
            !calls.iter().any(|(name, call, _)| {
                Method::from_bytes(name.as_bytes()).unwrap() == **method && is_of(path, call)
            })
        })
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    assert!(missing.is_empty(), "not dropped: {missing:?}");
}
