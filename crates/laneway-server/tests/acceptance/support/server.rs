//! A server whose handler tells what it does, in a folder of its own, that can be killed and started again; or three of them.

use std::path::Path;

use laneway_testkit::servers::RedisServer;
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use super::balancer::balance;
use super::{Effect, History, Http, Receipt, Step};
use crate::program::Program;
use crate::seam;

const HANDLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acceptance/support/handler.py");

/// A server on a folder, or three on one Redis behind a balancer: who calls cannot tell them apart.
pub(crate) struct Server {
    folder: TempDir,
    redis: Option<RedisServer>,
    nodes: Vec<Program>,
    address: String,
    /// How often one was killed.
    kills: usize,
}

impl Server {
    /// Streams `orders` and `effects`, and the processor `charge` of `handler.py` on the first, with these settings of
    /// the stream and of the processor as lines of the file.
    pub(crate) async fn start(stream: &str, processor: &str) -> Self {
        Self::with(&config(stream, processor), None).await
    }

    /// The same, three times.
    pub(crate) async fn start_three(stream: &str, processor: &str) -> Self {
        Self::with(&config(stream, processor), Some(RedisServer::start(&[]))).await
    }

    /// With nothing declared.
    pub(crate) async fn empty() -> Self {
        Self::with("", None).await
    }

    /// The same, three times.
    pub(crate) async fn empty_three() -> Self {
        Self::with("", Some(RedisServer::start(&[]))).await
    }

    async fn with(config: &str, redis: Option<RedisServer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("laneway.toml"), config).unwrap();
        let count = if redis.is_some() { 3 } else { 1 };
        let mut server = Self { folder, redis, nodes: Vec::new(), address: String::new(), kills: 0 };
        for number in 0..count {
            let node = server.serve(number, "127.0.0.1:0").await;
            server.nodes.push(node);
        }
        let addresses: Vec<String> = server.nodes.iter().map(|node| node.address().to_owned()).collect();
        server.address = match &addresses[..] {
            [one] => one.clone(),
            all => balance(all.iter().map(|address| listen(address)).collect()).await,
        };
        server
    }

    async fn serve(&self, number: usize, listen: &str) -> Program {
        let (name, url) = (format!("node-{number}"), self.redis.as_ref().map(RedisServer::url));
        let Some(url) = url else { return Program::serve_at(self.folder.path(), listen).await };
        let variables = [
            ("LANEWAY_NODE_NAME", name.as_str()),
            ("LANEWAY_NODE_LEASE", "4s"),
            ("LANEWAY_NODE_SETTLE", "200ms"),
        ];
        Program::serve_plainly(self.folder.path(), &["--store", &url, "--listen", listen], &variables).await
    }

    pub(crate) fn http(&self) -> Http {
        Http::new(&self.address)
    }

    /// Where it is, as host and port.
    pub(crate) fn host(&self) -> String {
        listen(&self.address)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it, or the next of three, and starts it again at the same address.
    pub(crate) async fn kill_and_start(&mut self) {
        let number = self.kills % self.nodes.len();
        self.kills += 1;
        self.nodes[number].signal(Signal::KILL);
        self.nodes[number].ended().await;
        let address = listen(self.nodes[number].address());
        self.nodes[number] = self.serve(number, &address).await;
    }

    /// Asks it to end, which it must do in good order.
    pub(crate) async fn drain(&mut self) {
        for node in &mut self.nodes {
            node.signal(Signal::TERM);
            let status = node.ended().await;
            assert!(status.success(), "{status}: {}", node.errors());
        }
    }

    /// Starts it after its end, at the same address.
    pub(crate) async fn start_again(&mut self) {
        for number in 0..self.nodes.len() {
            let address = listen(self.nodes[number].address());
            self.nodes[number] = self.serve(number, &address).await;
        }
    }

    /// Every step of a run so far, in the order in which they happened.
    pub(crate) fn steps(&self) -> Vec<Step> {
        steps(self.folder.path())
    }

    /// A job at the end of each lane: when it is done, so is all before it. Each ends with the count of its lane.
    pub(crate) async fn finish(&self, keys: impl IntoIterator<Item = String>) -> Vec<Receipt> {
        finish(&self.http(), keys).await
    }

    /// What was acknowledged, with all that can be seen from outside; the runs must have ended.
    pub(crate) async fn history(&self, acknowledged: Vec<Receipt>) -> History {
        history(&self.http(), self.folder.path(), acknowledged).await
    }

    pub(crate) async fn stop(mut self) {
        self.drain().await;
    }
}

/// An address without its scheme.
fn listen(address: &str) -> String {
    address.strip_prefix("http://").unwrap().to_owned()
}

/// What is served, as the file says it.
pub(crate) fn config(stream: &str, processor: &str) -> String {
    format!(
        "[[stream]]\nname = \"orders\"\npartitions = 4\n{stream}\n\
         [[stream]]\nname = \"effects\"\npartitions = 2\n\
         [[processor]]\nname = \"charge\"\nstream = \"orders\"\nexec = [\"python3\", \"-IS\", \"{HANDLER}\"]\n\
         exec_mode = \"pipe\"\nconcurrency = 6\n{processor}\n"
    )
}

fn steps(folder: &Path) -> Vec<Step> {
    let told = std::fs::read_to_string(folder.join("runs.log")).unwrap_or_default();
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) async fn finish(http: &Http, keys: impl IntoIterator<Item = String>) -> Vec<Receipt> {
    let jobs: Vec<_> = keys
        .into_iter()
        .map(|key| {
            let http = http.clone();
            seam::spawn(async move { http.submit(json!({"key":key,"data":{}})).await })
        })
        .collect();
    let mut last = Vec::new();
    for job in jobs {
        let job = seam::guarded("the last job of a lane", job).await.unwrap();
        assert_eq!(job["status"], "done", "{job}");
        last.push(Receipt::of_job(job["key"].as_str().unwrap(), &job));
    }
    last
}

pub(crate) async fn history(http: &Http, folder: &Path, acknowledged: Vec<Receipt>) -> History {
    let stored = http.events("orders").await.iter().map(super::Stored::read).collect::<Vec<_>>();
    let effects = seam::until("all effects", || async {
        let effects = http.events("effects").await;
        (effects.len() >= stored.len()).then_some(effects)
    })
    .await;
    let effects = effects.iter().map(Effect::read).collect();
    History { acknowledged, stored, steps: steps(folder), effects, losses: Vec::new() }
}
