//! The program as a child process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use laneway_client::Client;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::seam;

/// A running `laneway`. It is ended with this.
pub(crate) struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    count: watch::Receiver<usize>,
    errors: Arc<Mutex<String>>,
    /// Closed when everything on stderr was read.
    errors_end: watch::Receiver<()>,
    address: String,
    /// What it must never say on stderr.
    secrets: Vec<String>,
}

/// A secret that every program is given in every way there is, and never repeats.
const CANARY: &str = "canary-4f1c9a7be2d84c0f9e6b3a51d7c2e8f0b5a69d31";

/// Lines of a program that are shown when its test fails.
const LAST_LINES: usize = 40;
/// Programs whose stderr was searched for it.
static SEARCHED: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
    command
        .current_dir(folder)
        .args(args)
        .env("HOME", folder)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("CLICOLOR_FORCE");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LANEWAY_") {
            command.env_remove(name);
        }
    }
    command.env("LANEWAY_TOKEN", CANARY);
    // Whatever a server could ever log is searched.
    if args.first() == Some(&"serve") && !args.contains(&"--log-level") {
        command.env("LANEWAY_LOG_LEVEL", "debug");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program to its end.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

impl Program {
    /// `laneway dev` on a free port, ready.
    pub(crate) async fn dev(folder: &Path, args: &[&str]) -> Self {
        let mut program = Self::start(folder, &[&["dev", "--port", "0"], args].concat());
        let first = program.line("http://").await;
        program.line("ready").await;
        program.address =
            first.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        program.show_canary().await;
        program
    }

    /// `laneway serve` on a free port, ready.
    pub(crate) async fn serve(folder: &Path) -> Self {
        Self::serve_as(folder, &[], &[]).await
    }

    /// `laneway serve` at this address, ready.
    pub(crate) async fn serve_at(folder: &Path, address: &str) -> Self {
        Self::serve_as(folder, &["--listen", address], &[]).await
    }

    /// The same with more arguments, which may name another address or store, and with variables.
    pub(crate) async fn serve_as(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let program = Self::serve_plainly(folder, args, variables).await;
        program.show_canary().await;
        program
    }

    /// `laneway serve` for a test that looks at the files: nothing is in the store but what the test puts there.
    pub(crate) async fn serve_untouched(folder: &Path) -> Self {
        Self::serve_plainly(folder, &[], &[]).await
    }

    /// `laneway serve` without the canary, which would be run by whichever node has it.
    pub(crate) async fn serve_plainly(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let listen: &[&str] = if args.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let store: &[&str] = if args.contains(&"--store") { &[] } else { &["--store", "file:./data"] };
        let args = [&["serve"], store, listen, args].concat();
        let mut command = command(folder, &args);
        command.envs(variables.iter().copied());
        let mut program = Self::spawn(command);
        let ready = program.line("ready ").await;
        program.address = ready.strip_prefix("ready ").unwrap().replace("0.0.0.0", "127.0.0.1");
        program
    }

    /// Gives it secrets in every place where a caller puts one, in calls that fail and in calls that succeed: nothing of them is
    /// ever told to anybody but the worker that runs them.
    async fn show_canary(&self) {
        if !self.address.starts_with("http://") {
            return;
        }
        let data = format!(
            r#"{{"key":"{CANARY}","type":"a","data":{{"password":"{CANARY}"}},"headers":{{"x":"{CANARY}"}}}}"#
        );
        let (events, jobs) = ("/v1/streams/canary/events", "/v1/streams/canary/jobs");
        for (path, body) in [(events, data.as_str()), (jobs, &data), (events, &data[..data.len() - 1])] {
            let status = self.quiet("POST", path, body).await;
            assert!(!status.is_success(), "{path}: {status}");
        }
        // One that may be changed by anybody also keeps them, runs them, and forgets them.
        if self.quiet("PUT", "/v1/streams/canary", r#"{"partitions":1}"#).await.is_success() {
            self.quiet("PUT", "/v1/processors/canary", r#"{"stream":"canary","pull":true}"#).await;
            assert!(self.quiet("POST", jobs, &data).await.is_success());
            // The same name for another body.
            let other = data.replace("password", "other");
            assert_eq!(self.quiet("POST", jobs, &other).await, http::StatusCode::CONFLICT);
            let claimed = self.call("POST", "/v1/processors/canary/claim", r#"{"wait":"20s"}"#).await;
            let claims: serde_json::Value = serde_json::from_slice(&claimed.body).unwrap();
            // A server that runs only some processors leaves it to others.
            if let Some(claim) = claims["claims"][0]["claim"].as_str() {
                let settled = serde_json::json!({"settlements":[
                    {"claim":claim,"outcome":"done","result":CANARY,"state":CANARY}]});
                self.quiet("POST", "/v1/processors/canary/settle", &settled.to_string()).await;
            }
            assert!(self.quiet("DELETE", "/v1/processors/canary", "").await.is_success());
            assert!(self.quiet("DELETE", "/v1/streams/canary", "").await.is_success());
        }
        self.quiet("GET", "/metrics", "").await;
        self.quiet("GET", "/readyz?verbose", "").await;
    }

    /// A call whose answer has no secret in it.
    async fn quiet(&self, method: &str, path: &str, body: &str) -> http::StatusCode {
        let answer = self.call(method, path, body).await;
        let told = String::from_utf8_lossy(&answer.body);
        assert!(!told.contains(CANARY), "{method} {path}: {told}");
        assert!(!format!("{:?}", answer.headers).contains(CANARY), "{path}: {:?}", answer.headers);
        answer.status
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> laneway_client::Answer {
        let bearer = format!("Bearer {CANARY}");
        let secrets = [
            (http::header::AUTHORIZATION, bearer.as_str()),
            (http::header::COOKIE, CANARY),
            (http::HeaderName::from_static("idempotency-key"), CANARY),
        ];
        let body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
        self.client().send(method.parse().unwrap(), path, &secrets, body).await.unwrap()
    }

    /// From now on these must never be seen on its stderr either.
    pub(crate) fn keep_secret(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.secrets.extend(secrets);
    }

    /// Memory that it has at this moment.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most memory that it ever had.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    /// `laneway serve` as people type it, in a folder that may have a `laneway.toml`, on a free port, ready.
    pub(crate) async fn serve_here(folder: &Path) -> Self {
        let mut program = Self::start(folder, &["serve", "--listen", "127.0.0.1:0"]);
        let ready = program.line("ready ").await;
        program.address = ready.strip_prefix("ready ").unwrap().to_owned();
        program.show_canary().await;
        program
    }

    /// `laneway serve` with the `laneway.toml` of the folder, on a free port, ready.
    pub(crate) async fn configured(folder: &Path, config: &str) -> Self {
        std::fs::write(folder.join("laneway.toml"), config).unwrap();
        Self::serve_here(folder).await
    }

    pub(crate) fn start(folder: &Path, args: &[&str]) -> Self {
        Self::spawn(command(folder, args))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (lines, errors) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(String::new())));
        let ((told, count), (keeps_open, errors_end)) = (watch::channel(0), watch::channel(()));
        let (sink, error_sink) = (Arc::clone(&lines), Arc::clone(&errors));
        seam::beside(move || {
            for line in BufReader::new(stdout).lines() {
                sink.lock().push(line.unwrap());
                told.send_modify(|count| *count += 1);
            }
        });
        seam::beside(move || {
            let mut piece = [0; 1024];
            while let Ok(read @ 1..) = stderr.read(&mut piece) {
                error_sink.lock().push_str(&String::from_utf8_lossy(&piece[..read]));
            }
            drop(keeps_open);
        });
        Self {
            child,
            lines,
            count,
            errors,
            errors_end,
            address: String::new(),
            secrets: vec![CANARY.to_owned()],
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A client of it.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.address).unwrap()
    }

    /// All it has said so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// What it said on stderr so far.
    pub(crate) fn errors(&self) -> String {
        self.errors.lock().clone()
    }

    /// The first line that contains this, as soon as it is said.
    pub(crate) async fn line(&self, part: &str) -> String {
        self.line_or_end(part).await.unwrap_or_else(|| {
            panic!("the program ended without {part:?}: {:?} {}", self.lines(), self.errors())
        })
    }

    /// The same; nothing if the program ends without it.
    pub(crate) async fn line_or_end(&self, part: &str) -> Option<String> {
        let mut count = self.count.clone();
        let found = async {
            loop {
                count.borrow_and_update();
                if let Some(line) = self.lines().into_iter().find(|line| line.contains(part)) {
                    return Some(line);
                }
                count.changed().await.ok()?;
            }
        };
        seam::guarded(part, found).await
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Its end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let (mut count, mut errors_end) = (self.count.clone(), self.errors_end.clone());
        // Both end with it, and have been read when they do.
        let ends = async {
            while count.changed().await.is_ok() {}
            while errors_end.changed().await.is_ok() {}
        };
        seam::guarded("the end of the program", ends).await;
        self.child.wait().unwrap()
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn stop(mut self) -> Vec<String> {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert!(status.success(), "{status}: {}", self.errors());
        self.lines()
    }
}

impl Drop for Program {
    #[expect(
        clippy::print_stdout,
        reason = "what it said when its test failed, or how much was searched for secrets"
    )]
    fn drop(&mut self) {
        // One that has ended already cannot be killed again.
        drop(self.child.kill());
        drop(self.child.wait());
        let errors = self.errors();
        if std::thread::panicking() {
            let last: Vec<&str> = errors.lines().rev().take(LAST_LINES).collect();
            println!("what {} said last:", self.address);
            last.iter().rev().for_each(|line| println!("    {line}"));
        } else {
            let told = self.secrets.iter().find(|secret| errors.contains(secret.as_str()));
            assert!(told.is_none(), "a secret was told on stderr: {errors}");
            let searched = SEARCHED.fetch_add(1, Ordering::Relaxed) + 1;
            println!(
                "canary: 0 hits in {} bytes of stderr; programs searched so far: {searched}",
                errors.len()
            );
        }
    }
}

/// Runs a line in a shell, as if it was pasted, and answers what it wrote.
pub(crate) fn paste(line: impl AsRef<OsStr>) -> String {
    let output = Command::new("sh").arg("-c").arg(line.as_ref()).output().unwrap();
    assert!(output.status.success(), "{:?}: {output:?}", line.as_ref());
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a process runs.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // A zombie that its new parent has not collected yet runs nothing any more.
    !stat.is_empty() && !stat.contains(") Z ")
}
