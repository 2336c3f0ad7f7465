//! A wall clock that jumps, by libfaketime: lengths stay as long as they are, dates follow, log time never goes back.

use std::path::Path;
use std::time::Duration;

use laneway_testkit::servers::libfaketime;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::Program;
use crate::seam::{self, Moment};
use crate::support::Http;

/// A server whose wall clock is wherever a file says; its monotonic clock is the machine's.
struct Shifted {
    folder: tempfile::TempDir,
    library: String,
    program: Program,
    http: Http,
}

impl Shifted {
    async fn start(library: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = library.to_str().unwrap().to_owned();
        set(folder.path(), "+0");
        let program = serve(folder.path(), &library).await;
        let http = Http::new(program.address());
        Self { folder, library, program, http }
    }

    /// Sets its clock to so far from now.
    fn jump(&self, offset: &str) {
        set(self.folder.path(), offset);
    }

    async fn kill_and_start(&mut self) {
        self.program.signal(Signal::KILL);
        self.program.ended().await;
        self.program = serve(self.folder.path(), &self.library).await;
        self.http = Http::new(self.program.address());
    }

    async fn append(&self, event: Value) -> Value {
        self.http.done("/v1/streams/orders/events", event).await["events"][0].take()
    }

    /// The claim of the next event that may run, which must be this lane's.
    async fn claim(&self, key: &str) -> Value {
        let wish = json!({"wait":"50s","lease":"30s"});
        let claim = self.http.done("/v1/processors/charge/claim", wish).await["claims"][0].take();
        assert_eq!(claim["key"], key, "{claim}");
        claim
    }

    async fn settle(&self, claim: &Value, mut settlement: Value) {
        settlement["claim"] = claim["claim"].clone();
        let settle = json!({"settlements":[settlement]});
        let answer = self.http.done("/v1/processors/charge/settle", settle).await;
        assert_eq!(answer["settlements"][0]["accepted"], true, "{answer}");
    }

    async fn run(&self, key: &str) {
        let claim = self.claim(key).await;
        self.settle(&claim, json!({"outcome":"done"})).await;
    }
}

/// Replaces the file in one step: it is read at any moment.
fn set(folder: &Path, offset: &str) {
    std::fs::write(folder.join("next"), offset).unwrap();
    std::fs::rename(folder.join("next"), folder.join("offset")).unwrap();
}

async fn serve(folder: &Path, library: &str) -> Program {
    let offset = folder.join("offset");
    let variables = [
        ("LD_PRELOAD", library),
        ("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("LANEWAY_STORE_CLOCK_SETTLE", "3s"),
    ];
    Program::serve_as(folder, &[], &variables).await
}

fn at_least(since: Moment, length: Duration) {
    assert!(since.passed() >= length, "only {:?} of {length:?} have passed", since.passed());
}

const LENGTH: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread")]
async fn wall_clock_jumps_change_no_length_and_log_time_never_goes_back() {
    let mut server = Shifted::start(&libfaketime()).await;
    server.http.put("/v1/streams/orders", json!({"partitions":1})).await;
    server.http.put("/v1/processors/charge", json!({"stream":"orders","pull":true})).await;
    server.append(json!({"key":"first"})).await;
    let begun =
        server.http.events("orders").await[0]["time"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let soon = (begun + jiff::SignedDuration::from_hours(1)).to_string();

    // A date follows the clock: an hour away, and then over.
    let dated = server.append(json!({"key":"dated","run_at":soon})).await;
    assert_eq!(dated["append"], "scheduled", "{dated}");
    server.run("first").await;
    let nothing = server.http.done("/v1/processors/charge/claim", json!({})).await;
    assert_eq!(nothing["claims"], json!([]), "an hour early");
    // A jump is reported and not believed at once; one that stays is, and the date with it.
    server.jump("+2h");
    server.append(json!({"key":"first"})).await;
    let readiness = server.http.get("/readyz?verbose").await;
    assert!(readiness["clock"].as_str().unwrap().contains("ahead, and is believed in"), "{readiness}");
    server.run("first").await;
    server.run("dated").await;
    server.jump("+0");
    // By the time of this delay the clock is believed again, and the hour is not over. Only the log stays ahead.
    server.append(json!({"key":"pause","delay":"5s"})).await;
    server.run("pause").await;
    let early = server.append(json!({"key":"early","run_at":soon})).await;
    assert_eq!(early["append"], "scheduled", "{early}");
    let nothing = server.http.done("/v1/processors/charge/claim", json!({})).await;
    assert_eq!(nothing["claims"], json!([]), "an hour early");
    let readiness = server.http.get("/readyz?verbose").await;
    assert_eq!(readiness["clock"], Value::Null, "{readiness}");
    assert!(readiness["clock_ahead"].as_str().unwrap().starts_with("1"), "{readiness}");
    server.append(json!({"key":"first"})).await;

    // A lease, a delay and a back-off, each over a jump by three days, forth or back.
    for (jump, key) in [("+3d", "forth"), ("-3d", "back")] {
        let held = server.claim("first").await;
        server.jump(jump);
        server.settle(&held, json!({"outcome":"done"})).await;
        server.jump("+0");
        let since = seam::later(Duration::ZERO);
        server.append(json!({"key":key,"delay":"1500ms"})).await;
        server.jump(jump);
        let claim = server.claim(key).await;
        at_least(since, LENGTH);
        let since = seam::later(Duration::ZERO);
        server.settle(&claim, json!({"outcome":"retry","retry_after":"1500ms"})).await;
        server.jump("+0");
        let claim = server.claim(key).await;
        assert_eq!(claim["attempt"], 2);
        at_least(since, LENGTH);
        server.settle(&claim, json!({"outcome":"done"})).await;
        server.append(json!({"key":"first"})).await;
    }
    server.run("first").await;

    // A start while the clock is far back: what was delayed before still comes, and what is new goes behind the old.
    let since = seam::later(Duration::ZERO);
    server.append(json!({"key":"late","delay":"1500ms"})).await;
    server.jump("-5d");
    server.kill_and_start().await;
    server.append(json!({"key":"now"})).await;
    server.run("now").await;
    server.run("late").await;
    at_least(since, LENGTH);

    let events = server.http.events("orders").await;
    let times: Vec<jiff::Timestamp> =
        events.iter().map(|event| event["time"].as_str().unwrap().parse().unwrap()).collect();
    println!(
        "9 jumps of the wall clock, {} events, from {} to {}",
        times.len(),
        times[0],
        times[times.len() - 1]
    );
    assert!(times.is_sorted(), "{times:?}");
    let ended = events.iter().all(|event| event["processors"][0]["status"] == "done");
    assert!(ended && events.len() == 11, "{events:?}");
    server.program.stop().await;
}
