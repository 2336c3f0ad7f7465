//! Stores that the version before wrote: they open, verify, say what they said, and work goes on.
//!
//! `README.md` tells what wrote them and what they hold.

mod reads;
mod work;

use std::path::Path;
use std::process::Command;

use laneway_testkit::servers::RedisServer;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Program, run};
use crate::seam;
use crate::support::Http;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acceptance/upgrade");

/// How a store was left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fixture {
    /// A folder whose server ended in good order; its log has several segments.
    Closed,
    /// A folder whose server was killed while it sent what a run had emitted.
    Killed,
    /// The same on Redis: a dump of it.
    Redis,
}

impl Fixture {
    fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Killed => "killed",
            Self::Redis => "redis",
        }
    }
}

/// A store of the version before, and what was said of it.
struct Upgraded {
    fixture: Fixture,
    folder: TempDir,
    _redis: Option<RedisServer>,
    url: String,
    /// Ids and receipts that cannot be read back.
    known: Value,
    /// What the program before answered, by path.
    reads: Value,
}

/// Runs a tool that every Debian has.
fn tool(folder: &Path, command: &str, args: &[&str]) {
    let status = Command::new(command).args(args).current_dir(folder).status().unwrap();
    assert!(status.success(), "{command} {args:?}: {status}");
}

impl Upgraded {
    fn unpack(fixture: Fixture) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = fixture.name();
        let (redis, url) = if fixture == Fixture::Redis {
            let dump = folder.path().join("dump.rdb.gz");
            std::fs::copy(format!("{FIXTURES}/redis.rdb.gz"), dump).unwrap();
            tool(folder.path(), "gzip", &["--decompress", "dump.rdb.gz"]);
            let redis = RedisServer::start(&["--appendonly", "no", "--dir", folder.path().to_str().unwrap()]);
            let url = redis.url();
            (Some(redis), url)
        } else {
            tool(folder.path(), "tar", &["--extract", "--file", &format!("{FIXTURES}/{name}.tar.gz")]);
            (None, "file:./data".to_owned())
        };
        let said = std::fs::read_to_string(format!("{FIXTURES}/{name}.json")).unwrap();
        let mut said: Value = serde_json::from_str(&said).unwrap();
        let (known, reads) = (said["known"].take(), said["reads"].take());
        Self { fixture, folder, _redis: redis, url, known, reads }
    }

    async fn serve(&self, args: &[&str]) -> (Program, Http) {
        let args = [&["--store", &self.url], args].concat();
        let cluster = [("LANEWAY_NODE_SETTLE", "200ms"), ("LANEWAY_NODE_LEASE", "4s")];
        let variables: &[_] = if self.fixture == Fixture::Redis { &cluster } else { &[] };
        let program = Program::serve_plainly(self.folder.path(), &args, variables).await;
        let http = Http::new(program.address());
        (program, http)
    }

    /// Runs the program to its end, which must be a good one.
    fn laneway(&self, args: &[&str]) -> String {
        let output = run(self.folder.path(), args);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(output.status.success(), "{:?}: laneway {args:?}: {said}", self.fixture);
        said
    }

    /// Reads the store, which nobody may work on, from the first byte to the last.
    fn verify(&self) {
        let said = if self.fixture == Fixture::Redis {
            // What has no files is verified while it is copied to where it has some.
            let copy = tempfile::tempdir().unwrap();
            let url = format!("file:{}", copy.path().join("copy").display());
            self.laneway(&["store", "copy", &self.url, &url]);
            self.laneway(&["store", "verify", &url])
        } else {
            self.laneway(&["store", "verify", &self.url])
        };
        assert!(said.contains("nothing is wrong"), "{:?}: {said}", self.fixture);
    }

    /// Checks the lanes of every stream through a server.
    async fn verify_lanes(&self, http: &Http, address: &str) {
        for stream in http.get("/v1/streams?limit=1000").await["items"].as_array().unwrap() {
            self.laneway(&["verify", stream["name"].as_str().unwrap(), "--server", address]);
        }
    }
}

async fn says_what_it_said(fixture: Fixture) {
    let store = Upgraded::unpack(fixture);
    if fixture != Fixture::Redis {
        store.verify();
    }
    let (program, http) = store.serve(&["--read-only"]).await;
    let compared = reads::compare(&store, &http).await;
    assert!(compared > 100, "only {compared} calls were compared");
    store.verify_lanes(&http, program.address()).await;
    program.stop().await;
    if fixture != Fixture::Redis {
        store.verify();
    }
    println!("{fixture:?}: {compared} calls say what they said before");
}

async fn goes_on(fixture: Fixture) {
    let store = Upgraded::unpack(fixture);
    let (mut program, http) = store.serve(&[]).await;
    work::go_on(&store, &http).await;
    store.verify_lanes(&http, program.address()).await;
    let before = reads::all(&http).await;
    // The folder that was closed before is killed now, and the other way round.
    if fixture == Fixture::Killed {
        program.stop().await;
    } else {
        program.signal(Signal::KILL);
        program.ended().await;
    }
    let (program, http) = store.serve(&[]).await;
    work::until_owned(&http).await;
    let after = seam::guarded("all that can be read", reads::all(&http)).await;
    reads::assert_same(&before, &after);
    program.stop().await;
    store.verify();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_the_version_before_says_what_it_said() {
    says_what_it_said(Fixture::Closed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_folder_of_the_version_before_says_what_it_said() {
    says_what_it_said(Fixture::Killed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_of_the_version_before_says_what_it_said() {
    says_what_it_said(Fixture::Redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_in_a_folder_of_the_version_before() {
    goes_on(Fixture::Closed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_in_a_killed_folder_of_the_version_before() {
    goes_on(Fixture::Killed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_goes_on_on_a_redis_of_the_version_before() {
    goes_on(Fixture::Redis).await;
}
