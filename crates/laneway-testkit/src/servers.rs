//! Servers that stores are on, started by tests: on free loopback ports, in temporary folders, gone with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use parking_lot::Mutex;

use crate::seam;

/// A shell stands between: it starts the server again when it ends, and when this process closes its end of a pipe, however
/// this process ends, it ends the server and removes the folder.
const KEEPER: &str = r#"folder=$1; shift
while :; do redis-server "$@" & echo $! >"$folder/pid"; wait $!; done & keeper=$!
cat >/dev/null
kill "$keeper"; kill -9 "$(cat "$folder/pid")"; rm -rf "$folder""#;

/// How often another port is tried when somebody else took the one that was free.
const TRIES: usize = 5;

/// Returns the path of libfaketime, which changes the wall clock of a program. `./test` installs it.
pub fn libfaketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").expect("a folder of libraries");
    let mut libraries = folders
        .map(|entry| entry.expect("an entry of a folder").path().join("faketime/libfaketime.so.1"))
        .filter(|library| library.exists());
    libraries.next().expect("the Debian package libfaketime")
}

/// A running Redis server. It needs `redis-server` and a shell, and ends when it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    address: SocketAddr,
    folder: PathBuf,
    /// Told whenever it is ready to take connections.
    ready: Mutex<Receiver<()>>,
    _keeper: Child,
}

impl RedisServer {
    /// Starts a server with an append-only file and these settings besides; `{port}` in them is its port.
    pub fn start(settings: &[&str]) -> Self {
        Self::start_with(settings, &[])
    }

    /// The same with these variables in its environment.
    pub fn start_with(settings: &[&str], variables: &[(&str, &str)]) -> Self {
        let started = (0..TRIES).find_map(|_| Self::try_start(settings, variables));
        started.expect("redis-server starts: is it installed?")
    }

    fn try_start(settings: &[&str], variables: &[(&str, &str)]) -> Option<Self> {
        let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = free.local_addr().expect("it is bound");
        let port = address.port().to_string();
        drop(free);
        let folder = std::env::temp_dir().join(format!("laneway-redis-{}-{port}", std::process::id()));
        std::fs::create_dir(&folder).expect("a new folder among the temporary ones");
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&folder)
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir"])
            .arg(&folder)
            .args(settings.iter().map(|setting| setting.replace("{port}", &port)))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let ready = Mutex::new(ready_lines(keeper.stdout.take().expect("it is piped")));
        let mut server = Self { address, folder, ready, _keeper: keeper };
        server.wait_until_ready().then_some(server)
    }

    /// Waits until the server says that it is ready; false if it never will be.
    fn wait_until_ready(&mut self) -> bool {
        self.ready.get_mut().recv().is_ok()
    }

    /// Kills the server as a power switch would, and waits until it is there again with what its file has.
    pub fn kill(&mut self) {
        self.signal("KILL");
        assert!(self.wait_until_ready(), "the server comes back");
    }

    /// Sends the server a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let pid = std::fs::read_to_string(self.folder.join("pid")).expect("the keeper wrote it");
        let sent = Command::new("kill").args(["-s", name, pid.trim()]).status().expect("kill runs");
        assert!(sent.success(), "signal {name}");
    }

    /// A server with these settings that copies this one.
    pub fn replica(&self, settings: &[&str]) -> Self {
        let replica = Self::start(settings);
        // By no setting: once promoted it is to stay a master, also when it is killed and comes back.
        assert_eq!(replica.ask(&format!("REPLICAOF 127.0.0.1 {}", self.address.port())), "+OK");
        replica
    }

    /// Whether a replica has all that its master had when this was asked.
    pub fn has_all_of(&self, master: &Self) -> bool {
        let told = |server: &Self, field: &str| -> Option<String> {
            let told = server.ask("INFO replication") + &server.ask("INFO persistence");
            told.lines().find_map(|line| line.strip_prefix(field)).map(str::to_owned)
        };
        // Before its first copy a replica has places of its own, and its master may have none.
        if told(self, "master_link_status:").as_deref() != Some("up") {
            return false;
        }
        // What it was sent is in its file only once it has written that anew: killed before, it would come back with nothing.
        // What is scheduled is asked first: it may begin in between.
        let writes = ["aof_rewrite_scheduled:", "aof_rewrite_in_progress:"];
        if told(self, "aof_enabled:").as_deref() == Some("1")
            && writes.iter().any(|field| told(self, field).as_deref() != Some("0"))
        {
            return false;
        }
        let place = |server, field| told(server, field).and_then(|place| place.parse::<u64>().ok());
        let written = place(master, "master_repl_offset:");
        written.is_some() && place(self, "slave_repl_offset:") >= written
    }

    /// A replica is a master from now on, with what it has.
    pub fn promote(&self) {
        assert_eq!(self.ask("REPLICAOF NO ONE"), "+OK");
    }

    /// What it says to a command, which must be a word or a text.
    pub fn ask(&self, command: &str) -> String {
        let mut said = BufReader::new(TcpStream::connect(self.address).expect("it listens"));
        write!(said.get_mut(), "{command}\r\n").expect("it reads");
        let mut line = String::new();
        said.read_line(&mut line).expect("it answers");
        let Some(length) = line.strip_prefix('$') else { return line.trim_end().to_owned() };
        let mut text = vec![0; length.trim_end().parse().expect("a length")];
        said.read_exact(&mut text).expect("all of it");
        String::from_utf8(text).expect("text")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is, for a store.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

/// Tells of every time that a server says it is ready. Reads whatever else it says too: a pipe that nobody reads is full
/// one day, and then the server stands still.
fn ready_lines(said: ChildStdout) -> Receiver<()> {
    let (tell, ready) = mpsc::channel();
    let read = move || {
        let mut was_ready = false;
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            if line.contains("Ready to accept connections") {
                was_ready = true;
                // Whoever wanted to know may have gone; the rest is read all the same.
                let _gone = tell.send(());
            } else if line.contains("Failed listening on port") && !was_ready {
                // Somebody else took the port: it would be tried for ever.
                return;
            }
        }
    };
    seam::read_on(read);
    ready
}
