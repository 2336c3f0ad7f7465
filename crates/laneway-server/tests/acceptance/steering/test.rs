//! Lanes and processors are paused, asked why they wait, passed over and resumed; every call here goes to another node
//! than the call before.

use http::Method;
use serde_json::{Value, json};

use crate::program::run;
use crate::support::{Callers, Server};

const LANES: u64 = 8;
/// Of stream `orders`.
const PARTITIONS: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn lanes_and_processors_are_steered_on_one_server() {
    steer(Server::start("", "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_and_processors_are_steered_through_any_node() {
    steer(Server::start_three("", "").await).await;
}

async fn steer(server: Server) {
    let mut callers = Callers::new(&server);
    let keys: Vec<String> = (0..LANES).map(|lane| format!("lane-{lane}")).collect();
    for key in &keys {
        steer_lane(&server, &mut callers, key).await;
    }

    let all = json!({"count":PARTITIONS,"applied":true});
    assert_eq!(callers.done("/v1/processors/charge/pause", json!({})).await, all);
    let before = server.steps().len();
    let mut jobs = Vec::new();
    for key in &keys {
        jobs.push(submit(&mut callers, key).await);
        let why = why(&mut callers, key).await;
        assert_eq!(why["code"], "processor_paused", "{why}");
        let stopped = callers.get("/v1/processors/charge").await;
        assert_eq!(stopped["stopped"].as_array().unwrap().len() as u64, PARTITIONS, "{stopped}");
    }
    assert_eq!(server.steps().len(), before, "nothing runs");
    assert_eq!(callers.done("/v1/processors/charge/resume", json!({})).await, all);
    for job in jobs {
        assert_eq!(callers.waited(Method::GET, &job).await["status"], "done", "{job}");
    }
    let ran = server.steps().iter().filter(|step| step.outcome.is_some()).count() as u64;
    assert_eq!(ran, 2 * LANES, "what was passed over never ran");
    println!("{LANES} lanes paused, passed over and resumed, and {PARTITIONS} partitions of a processor");
    server.stop().await;
}

async fn steer_lane(server: &Server, callers: &mut Callers, key: &str) {
    let path = |wish: &str| format!("/v1/streams/orders/lanes/{wish}");
    let all = json!({"count":1,"applied":true});
    assert_eq!(callers.done(&path("pause"), json!({"key":key})).await, all);
    let [first, second] = [submit(callers, key).await, submit(callers, key).await];
    for told in [why(callers, key).await, callers.get(&second).await["why"].take()] {
        assert_eq!(told["code"], "lane_paused", "{told}");
    }
    let told =
        run(server.folder(), &["why", "orders", key, "--server", &format!("http://{}", server.host())]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("paused by a call without a token"), "{told}");
    assert_eq!(callers.done(&path("skip"), json!({"key":key})).await, all);
    assert_eq!(callers.waited(Method::GET, &first).await["status"], "skipped");
    assert_eq!(
        why(callers, key).await["code"],
        "lane_paused",
        "whoever passes an event over lets nothing go on"
    );
    assert_eq!(callers.done(&path("resume"), json!({"key":key})).await, all);
    assert_eq!(callers.waited(Method::GET, &second).await["status"], "done");
}

/// Where the job is seen.
async fn submit(callers: &mut Callers, key: &str) -> String {
    let job = callers.done("/v1/streams/orders/jobs", json!({"key":key,"data":{}})).await;
    format!("/v1/jobs/{}", job["id"].as_str().unwrap())
}

async fn why(callers: &mut Callers, key: &str) -> Value {
    callers.get(&format!("/v1/streams/orders/lane?key={key}")).await["processors"][0]["why"].take()
}
