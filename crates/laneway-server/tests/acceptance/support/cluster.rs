//! Several servers on one Redis.

use laneway_testkit::servers::RedisServer;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::server::{configure, finish, history};
use super::{History, Http, Receipt};
use crate::program::Program;
use crate::seam;

/// As short as a lease can reasonably be with several processes on a busy machine of two cores.
pub(crate) const LEASE: &str = "3s";
pub(crate) const PARTITIONS: usize = 4;

pub(crate) struct Cluster {
    folder: TempDir,
    redis: RedisServer,
    nodes: Vec<Node>,
}

struct Node {
    program: Program,
    address: String,
}

impl Cluster {
    pub(crate) async fn start(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        configure(folder.path(), "", "");
        let mut cluster = Self { folder, redis: RedisServer::start(&[]), nodes: Vec::new() };
        for number in 0..count {
            let program = cluster.serve(number, "127.0.0.1:0").await;
            let address = program.address().to_owned();
            cluster.nodes.push(Node { program, address });
        }
        cluster
    }

    async fn serve(&self, number: usize, listen: &str) -> Program {
        let (url, name) = (self.redis.url(), format!("node-{number}"));
        let variables = [
            ("LANEWAY_NODE_NAME", name.as_str()),
            ("LANEWAY_NODE_LEASE", LEASE),
            ("LANEWAY_NODE_SETTLE", "200ms"),
            ("LANEWAY_STORE_ANSWER_WITHIN", "1s"),
        ];
        Program::serve_plainly(self.folder.path(), &["--store", &url, "--listen", listen], &variables).await
    }

    pub(crate) fn http(&self, number: usize) -> Http {
        Http::new(&self.nodes[number].address)
    }

    /// All nodes, for whoever tries one after the other.
    pub(crate) fn all(&self) -> Vec<Http> {
        (0..self.nodes.len()).map(|number| self.http(number)).collect()
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        self.nodes[number].program.signal(signal);
    }

    /// Starts a node that was killed or asked to end, at its old address, once it has ended.
    pub(crate) async fn start_again(&mut self, number: usize) {
        self.nodes[number].program.ended().await;
        let listen = self.nodes[number].address.strip_prefix("http://").unwrap().to_owned();
        self.nodes[number].program = self.serve(number, &listen).await;
    }

    /// Waits until, in the eyes of this node, all partitions have an owner, and this one is or is not among the nodes.
    pub(crate) async fn until_owned(&self, seen_by: usize, node: usize, is_there: bool) {
        let http = self.http(seen_by);
        let what = format!("node-{node} is {} and all is owned", if is_there { "there" } else { "gone" });
        seam::until(&what, || async {
            let nodes = seam::in_time(http.try_get("/v1/nodes")).await??;
            let nodes = nodes["items"].as_array()?;
            let name = format!("node-{node}");
            let seats = |node: &Value| node["seats"].as_u64().unwrap_or_default();
            let found = nodes.iter().any(|node| node["name"] == name.as_str());
            let owned: u64 = nodes.iter().map(seats).sum();
            (found == is_there && owned == PARTITIONS as u64).then_some(())
        })
        .await;
    }

    /// Waits until all nodes are there and each sees every partition owned.
    pub(crate) async fn until_calm(&self) {
        for seen_by in 0..self.nodes.len() {
            for node in 0..self.nodes.len() {
                self.until_owned(seen_by, node, true).await;
            }
        }
    }

    pub(crate) async fn finish(&self, keys: impl IntoIterator<Item = String>) -> Vec<Receipt> {
        finish(&self.http(0), keys).await
    }

    pub(crate) async fn history(&self, acknowledged: Vec<Receipt>) -> History {
        history(&self.http(0), self.folder.path(), acknowledged).await
    }
}
