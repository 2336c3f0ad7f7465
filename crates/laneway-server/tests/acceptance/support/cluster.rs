//! Three servers on one Redis, each with a road of its own to it that can be spoiled.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_testkit::fault::Proxy;
use laneway_testkit::servers::RedisServer;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::server::{config, finish, history};
use super::{Effect, History, Http, Receipt};
use crate::program::Program;
use crate::seam;

/// As short as a lease can reasonably be with several processes on a busy machine of two cores.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
pub(crate) const NODES: usize = 3;
pub(crate) const PARTITIONS: u64 = 4;
/// Nothing that this Redis acknowledged is lost with it; and a replica need not wait until others come too.
const REDIS: [&str; 4] = ["--appendfsync", "always", "--repl-diskless-sync-delay", "0"];

pub(crate) struct Cluster {
    folder: TempDir,
    pub(crate) redis: RedisServer,
    nodes: Vec<Node>,
}

struct Node {
    program: Program,
    road: Proxy,
    address: String,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("laneway.toml"), config("", "")).unwrap();
        let mut cluster = Self { folder, redis: RedisServer::start(&REDIS), nodes: Vec::new() };
        for number in 0..NODES {
            let road = Proxy::start(cluster.redis.address()).unwrap();
            let program = cluster.serve(number, &road, "127.0.0.1:0").await;
            let address = program.address().to_owned();
            cluster.nodes.push(Node { program, road, address });
        }
        cluster
    }

    async fn serve(&self, number: usize, road: &Proxy, listen: &str) -> Program {
        let (url, name) = (format!("redis://{}", road.address()), name(number));
        let lease = format!("{}s", LEASE.as_secs());
        let variables = [
            ("LANEWAY_NODE_NAME", name.as_str()),
            ("LANEWAY_NODE_LEASE", lease.as_str()),
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
        (0..NODES).map(|number| self.http(number)).collect()
    }

    pub(crate) fn road(&self, number: usize) -> &Proxy {
        &self.nodes[number].road
    }

    pub(crate) fn signal(&self, number: usize, signal: Signal) {
        self.nodes[number].program.signal(signal);
    }

    /// Starts a node that was killed or asked to end, at its old address, once it has ended.
    pub(crate) async fn start_again(&mut self, number: usize) {
        self.nodes[number].program.ended().await;
        let listen = self.nodes[number].address.strip_prefix("http://").unwrap().to_owned();
        self.nodes[number].program = self.serve(number, self.road(number), &listen).await;
    }

    /// A replica of the Redis as it is now.
    pub(crate) async fn replica(&self) -> RedisServer {
        let replica = self.redis.replica(&REDIS);
        seam::until("the replica has everything", || async { replica.has_all_of(&self.redis).then_some(()) })
            .await;
        replica
    }

    /// The Redis hangs and is given up, and this one is in its place. Answers when that was.
    pub(crate) fn fail_over(&mut self, replica: RedisServer) -> u64 {
        // From here on the old one answers nobody, and nobody knows of the new one yet.
        self.redis.signal("STOP");
        let at = seam::wall_clock();
        for node in &self.nodes {
            node.road.lead_to(replica.address());
            node.road.cut_open();
        }
        self.redis = replica;
        at
    }

    /// The partitions that a node owns, as soon as it owns any.
    pub(crate) async fn owned_by(&self, node: usize) -> Vec<u64> {
        let http = self.http(node);
        seam::until("it owns something", || async {
            let (nodes, leases) = (http.get("/v1/nodes").await, http.get("/v1/leases").await);
            let token =
                &nodes["items"].as_array()?.iter().find(|found| found["name"] == *name(node))?["node"];
            let owned = leases["items"].as_array()?.iter().filter(|lease| lease["node"] == *token);
            let owned: Vec<u64> = owned.map(|lease| lease["partition"].as_u64().unwrap()).collect();
            (!owned.is_empty()).then_some(owned)
        })
        .await
    }

    /// Waits until, in the eyes of this node, another one is gone and everything has an owner.
    pub(crate) async fn until_replaced(&self, seen_by: usize, node: usize) {
        let is_so = |seats: &BTreeMap<String, u64>| !seats.contains_key(&name(node));
        self.until_owned(seen_by, &format!("{} is gone", name(node)), is_so).await;
    }

    /// Waits until all nodes are there, each sees every partition owned, and each owns its share.
    pub(crate) async fn until_calm(&self) {
        let is_so =
            |seats: &BTreeMap<String, u64>| seats.len() == NODES && seats.values().all(|seats| *seats > 0);
        for seen_by in 0..NODES {
            self.until_owned(seen_by, "all nodes are there", is_so).await;
        }
    }

    async fn until_owned(&self, seen_by: usize, what: &str, is_so: impl Fn(&BTreeMap<String, u64>) -> bool) {
        let http = self.http(seen_by);
        seam::until(&format!("{what} and all is owned"), || async {
            let nodes = seam::in_time(http.try_get("/v1/nodes")).await??;
            let seats =
                |node: &Value| (node["name"].as_str().unwrap().to_owned(), node["seats"].as_u64().unwrap());
            let seats: BTreeMap<String, u64> = nodes["items"].as_array()?.iter().map(seats).collect();
            (seats.values().sum::<u64>() == PARTITIONS && is_so(&seats)).then_some(())
        })
        .await;
    }

    /// Waits until a node has found out more often than that it lost its lease.
    pub(crate) async fn until_unleased(&self, node: usize, before: u64) {
        seam::until("a node finds out that it lost its lease", || async {
            (self.leases_lost(node).await? > before).then_some(())
        })
        .await;
    }

    /// How often a node lost its lease, as it knows itself.
    pub(crate) async fn leases_lost(&self, node: usize) -> Option<u64> {
        let http = self.http(node);
        seam::in_time(http.counter("laneway_lease_lost_total ")).await?
    }

    /// Up to which number each lane is settled.
    pub(crate) async fn settled(&self) -> BTreeMap<String, u64> {
        let effects = self.http(0).events("effects").await;
        let effects = effects.iter().map(|event| Effect::read(event).receipt);
        effects.map(|effect| (effect.key, effect.seq)).collect()
    }

    pub(crate) async fn finish(&self, keys: impl IntoIterator<Item = String>) -> Vec<Receipt> {
        finish(&self.http(0), keys).await
    }

    pub(crate) async fn history(&self, acknowledged: Vec<Receipt>) -> History {
        history(&self.http(0), self.folder.path(), acknowledged).await
    }
}

fn name(node: usize) -> String {
    format!("node-{node}")
}
