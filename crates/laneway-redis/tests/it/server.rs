//! A Redis server on a free loopback port in a temporary folder.
//!
//! A shell stands between: it starts the server again when it ends, and when this process closes its end of a pipe, however
//! this process ends, it ends the server and removes the folder.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

const KEEPER: &str = r#"folder=$1; shift
while :; do redis-server "$@" & echo $! >"$folder/pid"; wait $!; done & keeper=$!
cat >/dev/null
kill "$keeper"; kill -9 "$(cat "$folder/pid")"; rm -rf "$folder""#;

/// How often another port is tried when somebody else took the one that was free.
const TRIES: usize = 5;

/// A running server.
pub(crate) struct Server {
    pub(crate) port: u16,
    folder: PathBuf,
    said: Option<BufReader<std::process::ChildStdout>>,
    _keeper: Child,
}

/// The one that tests share; namespaces keep them apart.
pub(crate) static SHARED: LazyLock<Server> = LazyLock::new(|| Server::start(&["--appendfsync", "everysec"]));

impl Server {
    /// Starts a server with an append-only file and these settings besides.
    pub(crate) fn start(settings: &[&str]) -> Self {
        (0..TRIES).find_map(|_| Self::try_start(settings)).expect("redis-server starts: is it installed?")
    }

    fn try_start(settings: &[&str]) -> Option<Self> {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let folder = tempfile::tempdir().expect("temporary folder").keep();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&folder)
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "yes",
                "--dir",
            ])
            .arg(&folder)
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let said = BufReader::new(keeper.stdout.take().expect("it is piped"));
        let mut server = Self { port, folder, said: Some(said), _keeper: keeper };
        server.wait_until_ready().then_some(server)
    }

    /// Reads on until the server says that it is ready; false if it never will be.
    fn wait_until_ready(&mut self) -> bool {
        let Some(said) = &mut self.said else { return false };
        said.lines().map_while(Result::ok).any(|line| line.contains("Ready to accept connections"))
    }

    /// Kills the server as a power switch would, and waits until it is there again with what its file has.
    pub(crate) fn kill(&mut self) {
        let pid = std::fs::read_to_string(self.folder.join("pid")).expect("the keeper wrote it");
        let killed = Command::new("kill").args(["-9", pid.trim()]).status().expect("kill runs");
        assert!(killed.success() && self.wait_until_ready(), "the server comes back");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
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
