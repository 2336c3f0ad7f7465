//! The same submission again is the same job: in parallel, while it runs, after it has ended, and after a kill.

use std::collections::BTreeSet;

use http::{HeaderName, Method};
use serde_json::{Value, json};

use crate::seam;
use crate::support::{Http, Said, Server};

async fn submit(http: Http, data: u32) -> Said {
    let name = [(HeaderName::from_static("idempotency-key"), "k1")];
    let body = json!({"key":"ann","data":data});
    http.try_call(Method::POST, "/v1/streams/orders/jobs", &name, Some(&body)).await.unwrap()
}

async fn last_seq(http: &Http) -> Value {
    http.get("/v1/streams/orders/lane?key=ann").await["last_seq"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_one_job_in_parallel_while_it_runs_and_after_a_kill() {
    one_job(Server::empty().await, &["running"]).await;
}

/// A claim is known to its node at once, and to the others when it is written.
#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_is_one_job_through_any_node() {
    one_job(Server::empty_three().await, &["running", "waiting"]).await;
}

/// `claimed`: what a job may be called while a worker has it.
async fn one_job(mut server: Server, claimed: &[&str]) {
    let http = server.http();
    http.put("/v1/streams/orders", json!({"partitions":4})).await;
    http.put("/v1/processors/charge", json!({"stream":"orders","pull":true})).await;
    let posts: Vec<_> = (0..50).map(|_| seam::spawn(submit(server.http(), 1))).collect();
    let mut ids = BTreeSet::new();
    for post in posts {
        let said = post.await.unwrap();
        assert_eq!(said.status, 202, "{said:?}");
        ids.insert(said.body["id"].as_str().unwrap().to_owned());
    }
    println!("50 posts, {} job", ids.len());
    assert_eq!(ids.len(), 1, "{ids:?}");
    let id = json!(ids.pop_first().unwrap());
    assert_eq!(last_seq(&http).await, 1);

    let claim = http.done("/v1/processors/charge/claim", json!({"wait":"20s"})).await["claims"][0].take();
    let again = submit(http.clone(), 1).await;
    let status = again.body["status"].as_str().unwrap();
    assert!(again.body["id"] == id && claimed.contains(&status), "{again:?}");
    let settle = json!({"settlements":[{"claim":claim["claim"],"outcome":"done","result":1}]});
    assert_eq!(http.done("/v1/processors/charge/settle", settle).await["settlements"][0]["accepted"], true);
    server.kill_and_start().await;

    let http = server.http();
    let ended = submit(http.clone(), 1).await;
    assert_eq!(
        (ended.status, &ended.body["id"], &ended.body["status"]),
        (200, &id, &json!("done")),
        "{ended:?}"
    );
    let other = submit(http.clone(), 2).await;
    assert_eq!((other.status, &other.body["code"]), (409, &json!("idempotency_conflict")), "{other:?}");
    assert_eq!(last_seq(&http).await, 1);
    server.stop().await;
}
