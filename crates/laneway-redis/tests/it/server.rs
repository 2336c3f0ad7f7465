//! Redis servers of these tests.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use laneway_testkit::servers::RedisServer;

/// A running server.
pub(crate) struct Server(RedisServer);

/// The one that tests share; namespaces keep them apart.
pub(crate) static SHARED: LazyLock<Server> = LazyLock::new(|| Server::start(&["--appendfsync", "everysec"]));

impl Server {
    /// A server with these variables in its environment.
    pub(crate) fn start_with(settings: &[&str], variables: &[(&str, &str)]) -> Self {
        Self(RedisServer::start_with(settings, variables))
    }

    /// Starts a server with an append-only file and these settings besides.
    pub(crate) fn start(settings: &[&str]) -> Self {
        Self(RedisServer::start(settings))
    }

    /// Waits until it has all that its master has by now.
    pub(crate) async fn follows(&self, master: &Self) {
        while !self.0.has_all_of(&master.0) {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address().port()
    }

    /// Sends a command on a connection of its own.
    pub(crate) fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.url()).expect("a good URL");
        let mut connection = client.get_connection().expect("the server is there");
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connection).expect("a command that the server takes")
    }
}

impl Deref for Server {
    type Target = RedisServer;

    fn deref(&self) -> &RedisServer {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut RedisServer {
        &mut self.0
    }
}
