//! A disk that is full: new work is refused, what runs settles, and all goes on by itself when there is room.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::Program;
use crate::seam;
use crate::support::{Http, Said};

/// Two prepared segments of the log, and not a third.
const SMALL: &str = "size=140m";
const LARGE: &str = "size=280m";

/// Jobs that are settled while the disk is full; the others when there is room again.
const SETTLED_FULL: usize = 15;

/// A disk in memory; it goes away with this.
struct Disk(PathBuf);

impl Disk {
    /// Nothing where the machine does not allow it.
    #[expect(clippy::print_stdout, reason = "what a machine cannot do is said in the output")]
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", SMALL, "none"]).arg(at).output();
        match output {
            Ok(output) if output.status.success() => Some(Self(at.to_owned())),
            refused => {
                println!("no disk can be mounted on this machine, so a full one is not tested: {refused:?}");
                None
            }
        }
    }

    fn make_room(&self) {
        let resized = format!("remount,{LARGE}");
        let status = Command::new("mount").args(["-o", &resized]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server of a failed test may have it open still.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

async fn append(http: &Http, bytes: usize) -> Said {
    let event = json!({"key":"filler","data":"x".repeat(bytes)});
    http.post("/v1/streams/orders/events", event).await
}

/// Appends until even the smallest event is refused; answers what was acknowledged, and the refusal.
async fn fill(http: &Http) -> (u64, Value) {
    let (mut acknowledged, mut last) = (0, Value::Null);
    for bytes in [1_000_000, 100_000, 10_000, 1_000, 1] {
        loop {
            let said = append(http, bytes).await;
            if said.status != 201 {
                assert_eq!((said.status, &said.body["code"]), (507, &json!("store_full")), "{said:?}");
                last = said.body;
                break;
            }
            acknowledged += 1;
        }
    }
    (acknowledged, last)
}

async fn claim(http: &Http, processor: &str) -> Value {
    let claimed = http.done(&format!("/v1/processors/{processor}/claim"), json!({"wait":"20s"})).await;
    claimed["claims"][0]["claim"].clone()
}

async fn settled(http: &Http, processor: &str, claim: Value) -> Value {
    let settle = json!({"settlements":[{"claim":claim,"outcome":"done","result":"x".repeat(1_000)}]});
    http.done(&format!("/v1/processors/{processor}/settle"), settle).await["settlements"][0].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_new_work_lets_running_work_settle_and_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&folder.path().join("data")) else { return };
    let mut program = Program::serve(folder.path()).await;
    let http = Http::new(program.address());
    http.put("/v1/streams/orders", json!({"partitions":1})).await;
    http.put("/v1/streams/work", json!({"partitions":1})).await;
    http.put("/v1/processors/charge", json!({"stream":"work","pull":true})).await;
    let jobs: Vec<Value> = (0..20).map(|number| json!({"key":format!("k{number}")})).collect();
    let job = http.done("/v1/streams/work/jobs", json!({"key":"first"})).await;
    http.done("/v1/streams/work/events", json!(jobs)).await;
    let running = claim(&http, "charge").await;

    let (acknowledged, refusal) = fill(&http).await;
    let detail = refusal["detail"].as_str().unwrap();
    assert!(
        refusal["retryable"] == true && detail.contains("disk full") && detail.contains("data"),
        "{refusal}"
    );
    let answer = settled(&http, "charge", running).await;
    assert_eq!(answer["accepted"], true, "what runs settles: {answer}");
    assert_eq!(http.ended(&job).await["status"], "done");
    for _ in &jobs[..SETTLED_FULL] {
        let next = claim(&http, "charge").await;
        assert_eq!(settled(&http, "charge", next).await["accepted"], true, "and what waits still runs");
    }
    assert_eq!(append(&http, 1).await.status, 507, "still full");

    // A start on the full disk: new work is refused from the first call on, and nothing waits.
    program.signal(Signal::KILL);
    program.ended().await;
    let mut program = Program::serve_plainly(folder.path(), &[], &[]).await;
    let http = Http::new(program.address());
    for _ in 0..3 {
        assert_eq!(append(&http, 1).await.status, 507, "full after a restart");
    }
    let lane = http.get("/v1/streams/orders/lane?key=filler").await;
    assert_eq!(lane["last_seq"], acknowledged, "{lane}");

    disk.make_room();
    let said =
        seam::until("room", || async { Some(append(&http, 1).await).filter(|said| said.status == 201) })
            .await;
    assert_eq!(
        said.body["events"][0]["seq"],
        acknowledged + 1,
        "nothing that was refused is there: {said:?}"
    );
    for _ in 0..40 {
        assert_eq!(append(&http, 1_000_000).await.status, 201);
    }
    for _ in &jobs[SETTLED_FULL..] {
        let next = claim(&http, "charge").await;
        assert_eq!(settled(&http, "charge", next).await["accepted"], true, "all goes on by itself");
    }
    println!(
        "{acknowledged} events filled the disk, {} settled while it was full, 41 appended after",
        SETTLED_FULL + 1
    );
    program.signal(Signal::KILL);
    program.ended().await;
    let program = Program::serve(folder.path()).await;
    let http = Http::new(program.address());
    let lane = http.get("/v1/streams/orders/lane?key=filler").await;
    assert_eq!(lane["last_seq"], acknowledged + 41, "{lane}");
    assert_eq!(http.ended(&job).await["status"], "done");
    program.stop().await;
}
