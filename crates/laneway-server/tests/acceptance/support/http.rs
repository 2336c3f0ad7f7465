//! A plain HTTP client: JSON in, status and JSON out.

use http::{HeaderName, Method};
use laneway_client::Client;
use serde_json::Value;

/// Calls one server.
#[derive(Clone)]
pub(crate) struct Http(Client);

/// What came back.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Http {
    pub(crate) fn new(address: &str) -> Self {
        Self(Client::new(address).unwrap())
    }

    /// The answer, whatever it says; nothing when nobody answers.
    pub(crate) async fn try_call(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: Option<&Value>,
    ) -> Option<Said> {
        let body = body.map(|body| serde_json::to_vec(body).unwrap());
        let answer = self.0.send(method, path, headers, body).await.ok()?;
        let body = serde_json::from_slice(&answer.body).unwrap_or_default();
        Some(Said { status: answer.status.as_u16(), body })
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let said = self.try_call(Method::GET, path, &[], None).await.unwrap();
        assert_eq!(said.status, 200, "{path}: {}", said.body);
        said.body
    }

    /// The answer if it is a good one.
    pub(crate) async fn try_get(&self, path: &str) -> Option<Value> {
        let said = self.try_call(Method::GET, path, &[], None).await?;
        (said.status == 200).then_some(said.body)
    }

    /// What a counter without labels says.
    pub(crate) async fn counter(&self, name: &str) -> Option<u64> {
        let answer = self.0.send(Method::GET, "/metrics", &[], None).await.ok()?;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    pub(crate) async fn put(&self, path: &str, body: Value) {
        let said = self.try_call(Method::PUT, path, &[], Some(&body)).await.unwrap();
        assert!(matches!(said.status, 200 | 201), "{path}: {}", said.body);
    }

    /// The answer, whatever it says.
    pub(crate) async fn post(&self, path: &str, body: Value) -> Said {
        self.try_call(Method::POST, path, &[], Some(&body)).await.unwrap()
    }

    /// The answer, which must be no error.
    pub(crate) async fn done(&self, path: &str, body: Value) -> Value {
        let said = self.post(path, body).await;
        assert!((200..300).contains(&said.status), "{path}: {}", said.body);
        said.body
    }

    /// A job of stream `orders` and how it stands as soon as it has ended, or parked.
    pub(crate) async fn submit(&self, body: Value) -> Value {
        let prefer = [(HeaderName::from_static("prefer"), "wait=40")];
        let path = "/v1/streams/orders/jobs";
        let said = self.try_call(Method::POST, path, &prefer, Some(&body)).await.unwrap();
        if said.status != 200 {
            let path = format!("/v1/jobs/{}", said.body["id"].as_str().unwrap_or_default());
            panic!("it has not ended: {}", self.get(&path).await);
        }
        said.body
    }

    /// How a job stands as soon as it has ended, or parked.
    pub(crate) async fn ended(&self, job: &Value) -> Value {
        let prefer = [(HeaderName::from_static("prefer"), "wait=40")];
        let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
        self.try_call(Method::GET, &path, &prefer, None).await.unwrap().body
    }

    /// All events of a partition, page by page.
    async fn partition(&self, stream: &str, partition: u64) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event["id"].as_u64().unwrap());
            let path = format!("/v1/streams/{stream}/events?partition={partition}&after={after}&limit=1000");
            let page = self.get(&path).await["events"].take();
            let Value::Array(page) = page else { panic!("{path}: {page}") };
            if page.is_empty() {
                return events;
            }
            events.extend(page);
        }
    }

    /// All events of a stream, each partition in its order.
    pub(crate) async fn events(&self, stream: &str) -> Vec<Value> {
        let partitions = self.get(&format!("/v1/streams/{stream}")).await["partitions"].as_u64().unwrap();
        let mut events = Vec::new();
        for partition in 0..partitions {
            events.extend(self.partition(stream, partition).await);
        }
        events
    }
}
