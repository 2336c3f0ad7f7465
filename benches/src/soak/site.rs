//! The store of a soak and the engines on it: a folder with one, or a Redis server with three nodes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use laneway_core::{Store, StreamInfo, StreamSettings};
use laneway_embedded::FileOptions;
use laneway_engine::cluster::NodeSettings;
use laneway_engine::{Engine, Env, Stores};
use laneway_redis::{RedisOptions, RedisStore};
use laneway_testkit::servers::RedisServer;

use super::plan::Plan;
use crate::Failure;
use crate::arguments::StoreKind;
use crate::load::{Folder, Stream};

const NODES: usize = 3;
/// How the server writes, as most do.
const EVERY_SECOND: &[&str] = &["--appendfsync", "everysec"];
const NAMESPACE: &str = "soak";

/// A store and the nodes that use it.
pub(super) struct Site {
    pub(super) nodes: Vec<SoakNode>,
    backend: Backend,
}

/// One node: its engine, and the store as it sees it.
pub(super) struct SoakNode {
    pub(super) engine: Engine,
    store: Arc<dyn Store>,
}

/// Where the data is.
enum Backend {
    Folder(Folder),
    Server(RedisServer),
}

impl Site {
    pub(super) async fn open(plan: &Plan, folder: &Path) -> Result<Self, Failure> {
        match plan.store {
            StoreKind::File => {
                let folder = Folder::open(folder, FileOptions::default())?;
                let node = SoakNode { engine: folder.engine(), store: Arc::new(folder.store.clone()) };
                Ok(Self { nodes: vec![node], backend: Backend::Folder(folder) })
            }
            StoreKind::Redis => {
                check_server()?;
                let server = RedisServer::start(EVERY_SECOND);
                let mut nodes = Vec::new();
                for number in 0..NODES {
                    nodes.push(SoakNode::connect(&server.url(), number).await?);
                }
                Ok(Self { nodes, backend: Backend::Server(server) })
            }
        }
    }

    /// Creates a stream, for use through every node.
    pub(super) async fn stream(&self, name: &str, settings: StreamSettings) -> Result<Vec<Stream>, Failure> {
        let first = Stream::create(Arc::clone(&self.nodes[0].store), name, settings).await?;
        Ok(self.nodes.iter().map(|node| node.stream(&first.info)).collect())
    }

    /// What the data takes on disk and in a server's memory, in MiB.
    pub(super) fn sizes(&self) -> Result<(f64, f64), Failure> {
        match &self.backend {
            Backend::Folder(folder) => Ok((folder.disk_mib()?, 0.0)),
            Backend::Server(server) => {
                let disk = info(&server.ask("INFO persistence"), "aof_current_size")?;
                Ok((disk, info(&server.ask("INFO memory"), "used_memory")?))
            }
        }
    }

    pub(super) fn close(self) -> Result<(), Failure> {
        drop(self.nodes);
        match self.backend {
            Backend::Folder(folder) => folder.close(),
            Backend::Server(server) => {
                drop(server);
                Ok(())
            }
        }
    }
}

impl SoakNode {
    async fn connect(url: &str, number: usize) -> Result<Self, Failure> {
        let options = RedisOptions { namespace: NAMESPACE.to_owned(), ..RedisOptions::new(url) };
        let store = Arc::new(RedisStore::open(options).await?);
        let stores = Stores { store: store.clone(), documents: store.clone(), wakeups: store.clone() };
        let node = NodeSettings::new(format!("node-{number}"));
        Ok(Self { engine: Engine::in_cluster(stores, Env::system(), node)?, store })
    }

    fn stream(&self, info: &StreamInfo) -> Stream {
        Stream { store: Arc::clone(&self.store), info: info.clone() }
    }
}

/// Fails at once where no server is installed: starting one would be tried forever.
fn check_server() -> Result<(), Failure> {
    let said = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
    match said {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("redis-server --version ended with {status}").into()),
        Err(error) => Err(format!("--store redis needs redis-server: {error}; install it first").into()),
    }
}

/// A size of the server, in MiB.
fn info(text: &str, name: &str) -> Result<f64, Failure> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let bytes = line.and_then(|value| value.trim().parse::<f64>().ok());
    Ok(bytes.ok_or_else(|| format!("INFO does not tell {name}"))? / (1 << 20) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_by_their_whole_name() {
        let text = "# Memory\r\nused_memory_peak:7\r\nused_memory:2097152\r\n";
        assert_eq!(info(text, "used_memory").unwrap(), 2.0);
        assert!(info(text, "used").is_err());
    }
}
