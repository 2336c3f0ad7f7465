//! Callers in turn, each with a connection of its own: behind a balancer every call goes to another node than the call before.

use http::{HeaderName, Method};
use serde_json::{Value, json};

use super::{Http, Server};
use crate::seam;

pub(crate) struct Callers(Vec<Http>);

impl Callers {
    pub(crate) fn new(server: &Server) -> Self {
        Self((0..3).map(|_| server.http()).collect())
    }

    fn next(&mut self) -> &Http {
        self.0.rotate_left(1);
        &self.0[0]
    }

    pub(crate) async fn get(&mut self, path: &str) -> Value {
        self.next().get(path).await
    }

    pub(crate) async fn done(&mut self, path: &str, body: Value) -> Value {
        self.next().done(path, body).await
    }

    /// One lane of a processor and up to so many of its events. A node offers the lanes that it owns: who asks many nodes
    /// waits for none of them long.
    pub(crate) async fn claim(&mut self, processor: &str, events: u64) -> Value {
        let path = format!("/v1/processors/{processor}/claim");
        let claim = async {
            loop {
                let mut claimed = self.done(&path, json!({"wait":"200ms","max_events":events})).await;
                if let Some(claim) = claimed["claims"].as_array_mut().unwrap().pop() {
                    return claim;
                }
            }
        };
        seam::guarded("a claim", claim).await
    }

    pub(crate) async fn waited(&mut self, method: Method, path: &str) -> Value {
        let prefer = [(HeaderName::from_static("prefer"), "wait=40")];
        let said = self.next().try_call(method, path, &prefer, None).await.unwrap();
        assert_eq!(said.status, 200, "{path}: {}", said.body);
        said.body
    }
}
