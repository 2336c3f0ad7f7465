//! An event that is tried again keeps its place before all that follow, over a kill too; other lanes go on.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::seam;
use crate::support::{Http, Receipt, Server};

async fn append(http: &Http, key: &str, data: Value) -> Receipt {
    let told = http.done("/v1/streams/orders/events", json!({"key":key,"data":data})).await;
    Receipt::read(key, &told["events"][0])
}

/// The attempts of an event that ran.
fn attempts(server: &Server, reference: &str) -> Vec<u32> {
    let steps = server.steps().into_iter().filter(|step| step.reference == reference);
    steps.filter(|step| step.outcome.is_some()).map(|step| step.attempt).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_tried_again_keeps_its_place_also_over_a_kill() {
    retries(Server::start("", "retry = { backoff = \"5ms\", max_attempts = 4 }").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_tried_again_keeps_its_place_through_any_node() {
    retries(Server::start_three("", "retry = { backoff = \"5ms\", max_attempts = 4 }").await).await;
}

async fn retries(mut server: Server) {
    let http = server.http();
    let mut acknowledged = Vec::new();
    for number in 0..20 {
        for key in ["ann", "bob", "cid"] {
            let fails = if number % 3 == 1 { 3 } else { 0 };
            acknowledged.push(append(&http, key, json!({"fails":fails})).await);
        }
    }
    // An hour until its next attempt: the lane waits, whoever starts the server how often.
    let stuck = append(&http, "stuck", json!({"fails":1,"retry_after":"1h"})).await;
    acknowledged.push(stuck.clone());
    let follower = http.done("/v1/streams/orders/jobs", json!({"key":"stuck","data":{}})).await;
    let waits = async || {
        seam::until("the back-off", || async {
            let lane = http.get("/v1/streams/orders/lane?key=stuck").await["processors"][0].take();
            (lane["status"] == "retrying").then_some(lane)
        })
        .await
    };
    assert_eq!(waits().await["attempt"], 1);
    server.kill_and_start().await;
    acknowledged.extend(server.finish(["ann", "bob", "cid"].map(str::to_owned)).await);
    assert_eq!(waits().await["attempt"], 1, "an attempt of before the kill counts");
    assert_eq!(attempts(&server, &stuck.reference), [1], "nobody tried it before its time");
    let waiting = http.get(&format!("/v1/jobs/{}", follower["id"].as_str().unwrap())).await;
    assert_eq!((&waiting["status"], &waiting["why"]["code"]), (&json!("waiting"), &json!("retrying")));

    let retried = http.done("/v1/streams/orders/lanes/retry", json!({"key":"stuck"})).await;
    assert_eq!(retried["applied"], true, "{retried}");
    assert_eq!(http.ended(&follower).await["status"], "done");
    assert_eq!(attempts(&server, &stuck.reference), [1, 2]);
    let history = server.history(acknowledged).await;
    // What the kill met between its end and its commit is run again as the same attempt.
    let failed = history.steps.iter().filter(|step| step.outcome.as_deref() == Some("retry"));
    let tried_again = failed.map(|step| (&step.reference, step.attempt)).collect::<BTreeSet<_>>().len();
    let violations = history.violations();
    println!(
        "{} events, {tried_again} failed attempts, {} violations",
        history.stored.len(),
        violations.len()
    );
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(tried_again, 3 * 7 * 3 + 1);
    server.stop().await;
}
