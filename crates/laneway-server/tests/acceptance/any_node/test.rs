//! Who works, waits and cancels needs no particular node: every call here goes to another one than the call before.

use http::Method;
use serde_json::json;

use crate::support::{Callers, Server};

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_jobs_are_served_by_one_server() {
    work(Server::empty().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_jobs_are_served_through_any_node() {
    work(Server::empty_three().await).await;
}

async fn work(server: Server) {
    let http = server.http();
    http.put("/v1/streams/orders", json!({"partitions":4})).await;
    http.put("/v1/processors/charge", json!({"stream":"orders","pull":true})).await;
    let mut callers = Callers::new(&server);
    for number in 0..6 {
        let job = |data| json!({"key":format!("lane-{number}"),"data":data});
        let first = callers.done("/v1/streams/orders/jobs", job("first")).await;
        let second = callers.done("/v1/streams/orders/jobs", job("second")).await;
        let [first, second] = [first, second].map(|job| format!("/v1/jobs/{}", job["id"].as_str().unwrap()));
        let claim = callers.claim("charge", 1).await;
        assert_eq!(claim["events"][0]["data"], "first", "{claim}");
        let extend = json!({"claims":[claim["claim"]],"lease":"40s"});
        let extended = callers.done("/v1/processors/charge/extend", extend).await;
        assert_eq!(extended["claims"][0]["accepted"], true, "{extended}");
        let cancelled = callers.waited(Method::POST, &format!("{second}/cancel")).await;
        assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
        let settle = json!({"settlements":[{"claim":claim["claim"],"outcome":"done","result":number}]});
        let settled = callers.done("/v1/processors/charge/settle", settle).await;
        assert_eq!(settled["settlements"][0]["accepted"], true, "{settled}");
        let ended = callers.waited(Method::GET, &first).await;
        assert_eq!((&ended["status"], &ended["result"]), (&json!("done"), &json!(number)), "{ended}");
    }
    println!("6 lanes worked, cancelled and waited for, each call by another connection");
    server.stop().await;
}
