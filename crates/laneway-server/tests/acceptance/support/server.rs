//! A server whose handler tells what it does, in a folder of its own, that can be killed and started again.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use super::{Effect, History, Http, Receipt, Step};
use crate::program::Program;
use crate::seam;

const HANDLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acceptance/support/handler.py");

/// Streams `orders` and `effects`, and the processor `charge` of `handler.py` on the first.
pub(crate) struct Server {
    folder: TempDir,
    program: Program,
    address: String,
}

impl Server {
    /// With these settings of the stream and of the processor, as lines of the file.
    pub(crate) async fn start(stream: &str, processor: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        configure(folder.path(), stream, processor);
        let program = Program::serve(folder.path()).await;
        let address = program.address().to_owned();
        Self { folder, program, address }
    }

    pub(crate) fn http(&self) -> Http {
        Http::new(&self.address)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it and starts it again at the same address.
    pub(crate) async fn kill_and_start(&mut self) {
        self.program.signal(Signal::KILL);
        self.program.ended().await;
        self.start_again().await;
    }

    /// Asks it to end, which it must do in good order.
    pub(crate) async fn drain(&mut self) {
        self.program.signal(Signal::TERM);
        let status = self.program.ended().await;
        assert!(status.success(), "{status}: {}", self.program.errors());
    }

    /// Starts it after its end, at the same address.
    pub(crate) async fn start_again(&mut self) {
        let address = self.address.strip_prefix("http://").unwrap();
        self.program = Program::serve_at(self.folder.path(), address).await;
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

    pub(crate) async fn stop(self) {
        self.program.stop().await;
    }
}

/// Writes what is served into the file of this folder.
pub(crate) fn configure(folder: &Path, stream: &str, processor: &str) {
    let config = format!(
        "[[stream]]\nname = \"orders\"\npartitions = 4\n{stream}\n\
         [[stream]]\nname = \"effects\"\npartitions = 2\n\
         [[processor]]\nname = \"charge\"\nstream = \"orders\"\nexec = [\"python3\", \"-IS\", \"{HANDLER}\"]\n\
         exec_mode = \"pipe\"\nconcurrency = 6\n{processor}\n"
    );
    std::fs::write(folder.join("laneway.toml"), config).unwrap();
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
        last.push(Receipt::of_job(&job));
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
