//! A command that is kept, and talks in lines of JSON.

use std::path::Path;
use std::time::Duration;

use laneway_client::wire::{EventDraft, Job, JobDraft, json};
use laneway_client::{Client, Submission};
use serde_json::{Value, json as value};

use crate::program::{Program, is_alive};
use crate::seam;

const HANDLER: &str = r#"
import json, os, signal, sys
def late(*_):
    open("asked", "w").write("to end"); os._exit(1)
signal.signal(signal.SIGTERM, late)
for line in sys.stdin:
    run = json.loads(line)
    events, say = run["events"], {"claim": run["claim"], "outcome": "done"}
    data = events[-1].get("data")
    if data == "die" and run["attempt"] == 1:
        print("dying", file=sys.stderr); sys.exit(3)
    if data == "die always": sys.exit(4)
    if data == "babble": print("what?", flush=True); continue
    if data == "hang":
        open("pid", "w").write(f"{os.getpid()}\n"); signal.pause()
    if data == "later" and run["attempt"] == 1: say |= {"outcome": "retry", "error": "not yet", "retry_after": "10ms"}
    elif data == "poison": say |= {"outcome": "fail", "error": "poison!"}
    else:
        count = (run.get("state") or 0) + len(events)
        say |= {"result": {"pid": os.getpid(), "count": count, "ref": events[-1]["ref"], "key": run["key"]}, "state": count}
        if data == "emit": say["emit"] = [{"stream": "bills", "key": run["key"], "data": 9}]
        if data == "inside": say["emit"] = [{"stream": "_laneway", "data": 9}]
    print(json.dumps(say), flush=True)
"#;

fn config(more: &str) -> String {
    format!(
        "[[stream]]\nname = \"orders\"\npartitions = 1\n[[stream]]\nname = \"bills\"\npartitions = 1\n[[processor]]\n\
         name = \"charge\"\nstream = \"orders\"\nexec = [\"python3\", \"handler.py\"]\nexec_mode = \"pipe\"\nretry = {{ \
         max_attempts = 2, backoff = \"10ms\", backoff_max = \"1s\" }}\n{more}\n"
    )
}

async fn serve(folder: &Path, more: &str) -> Program {
    std::fs::write(folder.join("handler.py"), HANDLER).unwrap();
    Program::configured(folder, &config(more)).await
}

async fn submit(client: &Client, key: &str, data: &str) -> Job {
    let job = JobDraft { key: Some(key.to_owned()), data: Some(json(&data).unwrap()), ..JobDraft::default() };
    match client.submit("orders", &job, Some(Duration::from_secs(40)), None).await.unwrap() {
        Submission::Settled(job) => *job,
        Submission::Accepted(receipt) => panic!("still {}", receipt.status),
    }
}

fn result(job: &Job) -> Value {
    serde_json::from_str(job.result.as_ref().unwrap_or_else(|| panic!("{job:?}")).get()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_process_answers_with_results_states_and_emits() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), "").await;
    let client = program.client();
    let (first, second) = (submit(&client, "ann", "a").await, submit(&client, "ann", "emit").await);
    let told = result(&second);
    assert_eq!((told["count"].clone(), told["key"].clone()), (value!(2), value!("ann")));
    assert_eq!(told["ref"], value!(second.reference.unwrap()));
    assert_eq!(told["pid"], result(&first)["pid"], "one process for both");
    let bill = seam::until("the emitted event", || async {
        client.events("bills", 0, 0, 10).await.unwrap().events.pop()
    })
    .await;
    assert_eq!((bill.key.as_deref(), bill.data.unwrap().get()), (Some("ann"), "9"));
    let later = submit(&client, "bob", "later").await;
    assert_eq!((later.status.as_str(), later.attempt), ("done", 2));
    let poison = submit(&client, "cid", "poison").await;
    assert_eq!(
        (poison.status.as_str(), poison.attempt, poison.error.as_deref()),
        ("parked", 1, Some("poison!"))
    );
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_or_babbles_is_replaced_and_its_event_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), "").await;
    let client = program.client();
    let died = submit(&client, "ann", "die").await;
    assert_eq!((died.status.as_str(), died.attempt), ("done", 2));
    assert!(program.errors().contains("dying"), "stderr goes to the log: {}", program.errors());
    let always = submit(&client, "bob", "die always").await;
    assert_eq!((always.status.as_str(), always.attempt), ("parked", 2));
    let error = always.error.unwrap();
    assert!(error.starts_with("its process ended without an answer: exit status: 4"), "{error}");
    let babble = submit(&client, "cid", "babble").await;
    assert!(babble.error.unwrap().starts_with("its answer is no settlement: "));
    let inside = submit(&client, "dan", "inside").await;
    assert!(inside.error.unwrap().contains("emit.stream is \"_laneway\""));
    assert_eq!(submit(&client, "eve", "a").await.status, "done");
    program.stop().await;
}

/// Its deaths once made every other lane wait before a new process was started, up to ten seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_lane_whose_event_kills_its_process_delays_no_other() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("handler.py"), HANDLER).unwrap();
    let often =
        config("").replace("max_attempts = 2, backoff = \"10ms\"", "max_attempts = 20, backoff = \"1ms\"");
    let program = Program::configured(folder.path(), &often.replace("\"1s\"", "\"1ms\"")).await;
    let client = program.client();
    let deaths = submit(&client, "poison", "die always").await;
    // With a pause after each death that doubles, this would have taken minutes.
    assert_eq!((deaths.status.as_str(), deaths.attempt), ("parked", 20));
    assert_eq!(submit(&client, "eve", "a").await.status, "done");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_takes_too_long_is_asked_to_end_and_then_gone() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), "timeout = \"3s\"").await;
    let hang = submit(&program.client(), "ann", "hang").await;
    assert_eq!((hang.status.as_str(), hang.error.as_deref()), ("parked", Some("timed out after 3s")));
    assert_eq!(std::fs::read_to_string(folder.path().join("asked")).unwrap(), "to end");
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    assert!(!is_alive(&pid), "it ended before the attempt did");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_one_lane_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), "batch = { over = \"lane\", max = 10, within = \"1s\" }").await;
    let client = program.client();
    let event = || EventDraft { key: Some("ann".to_owned()), ..EventDraft::default() };
    client.append("orders", &[event(), event(), event()]).await.unwrap();
    let last = submit(&client, "ann", "a").await;
    assert_eq!(
        result(&last)["count"],
        value!(4),
        "the state counts all events, whichever line they came with"
    );
    program.stop().await;
}
