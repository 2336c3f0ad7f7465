//! Who works, waits and cancels needs no particular node: every call here goes to another one than the call before.

use http::{HeaderName, Method};
use serde_json::{Value, json};

use crate::seam;
use crate::support::{Http, Server};

/// Callers in turn, each with a connection of its own.
struct Callers(Vec<Http>);

impl Callers {
    async fn done(&mut self, path: &str, body: Value) -> Value {
        self.0.rotate_left(1);
        self.0[0].done(path, body).await
    }

    /// A node offers the lanes that it owns: who asks many nodes waits for none of them long.
    async fn claim(&mut self) -> Value {
        loop {
            let mut claimed = self.done("/v1/processors/charge/claim", json!({"wait":"200ms"})).await;
            if let Some(claim) = claimed["claims"].as_array_mut().unwrap().pop() {
                return claim;
            }
        }
    }

    async fn waited(&mut self, method: Method, path: &str) -> Value {
        self.0.rotate_left(1);
        let prefer = [(HeaderName::from_static("prefer"), "wait=40")];
        let said = self.0[0].try_call(method, path, &prefer, None).await.unwrap();
        assert_eq!(said.status, 200, "{path}: {}", said.body);
        said.body
    }
}

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
    let mut callers = Callers((0..3).map(|_| server.http()).collect());
    for number in 0..6 {
        let job = |data| json!({"key":format!("lane-{number}"),"data":data});
        let first = callers.done("/v1/streams/orders/jobs", job("first")).await;
        let second = callers.done("/v1/streams/orders/jobs", job("second")).await;
        let [first, second] = [first, second].map(|job| format!("/v1/jobs/{}", job["id"].as_str().unwrap()));
        let claim = seam::guarded("a claim", callers.claim()).await;
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
