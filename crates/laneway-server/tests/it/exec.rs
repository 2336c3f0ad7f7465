//! A command as the handler.

use std::path::Path;

use laneway_client::Submission;
use laneway_client::wire::{EventDraft, Job, JobDraft, json};
use serde::Serialize;
use std::time::Duration;

use crate::program::{Program, is_alive};
use crate::seam;

const WAIT: Option<Duration> = Some(Duration::from_secs(30));

fn event(key: &str, data: &impl Serialize) -> EventDraft {
    EventDraft { key: Some(key.to_owned()), data: Some(json(data).unwrap()), ..EventDraft::default() }
}

async fn submit(program: &Program, job: JobDraft) -> Job {
    match program.client().submit("orders", &job, WAIT, None).await.unwrap() {
        Submission::Settled(job) => *job,
        Submission::Accepted(receipt) => panic!("still {}", receipt.status),
    }
}

fn job(key: &str, data: &impl Serialize) -> JobDraft {
    JobDraft {
        key: Some(key.to_owned()),
        kind: Some("order.paid".to_owned()),
        data: Some(json(data).unwrap()),
        ..JobDraft::default()
    }
}

const ENVIRONMENT: &str = r#"
printf '{"data":'; cat
printf ',"ref":"%s","key":"%s","id":"%s","prev":"%s","seq":"%s","attempt":"%s","type":"%s","fence":"%s"}\n' \
    "$LANEWAY_REF" "$LANEWAY_KEY" "$LANEWAY_ID" "${LANEWAY_PREV-none}" "$LANEWAY_SEQ" "$LANEWAY_ATTEMPT" \
    "$LANEWAY_TYPE" "$LANEWAY_FENCE"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_handler_gets_data_and_environment_and_its_output_is_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &["--", "sh", "-c", ENVIRONMENT]).await;
    let mut fences = Vec::new();
    for number in 1..=2 {
        let job = submit(&program, job("ann", &serde_json::json!({"n": number}))).await;
        let result: serde_json::Value = serde_json::from_str(job.result.unwrap().get()).unwrap();
        let prev = if number == 1 { "none" } else { "1" };
        let (id, reference) = (number.to_string(), job.reference.unwrap());
        let expected = serde_json::json!({
            "data": {"n": number}, "ref": reference, "key": "ann", "id": id, "prev": prev, "seq": id,
            "attempt": "1", "type": "order.paid", "fence": result["fence"],
        });
        assert_eq!(result, expected);
        fences.push(result["fence"].as_str().unwrap().to_owned());
    }
    assert!(fences[0] < fences[1], "{fences:?}");
    program.stop().await;
}

const PYTHON: &str = r#"
import json, os, sys
order = json.load(sys.stdin)
if order == "poison": print("poison!", file=sys.stderr); sys.exit(65)
if order == "later" and os.environ["LANEWAY_ATTEMPT"] == "1": sys.exit(75)
if order == "broken": raise ValueError("no such order")
print("handled", order)
"#;

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_of_a_python_handler_decide_what_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "handler.py", PYTHON);
    let program = Program::dev(folder.path(), &["--", "python3", "handler.py"]).await;

    let plain = submit(&program, job("a", &"7")).await;
    assert_eq!((plain.status.as_str(), plain.result.unwrap().get()), ("done", "\"handled 7\""));
    let later = submit(&program, job("b", &"later")).await;
    assert_eq!((later.status.as_str(), later.attempt), ("done", 2));
    let poison = submit(&program, job("c", &"poison")).await;
    assert_eq!((poison.status.as_str(), poison.attempt), ("parked", 1));
    assert_eq!(poison.error.as_deref(), Some("exit 65: poison!"));
    let broken = submit(&program, job("d", &"broken")).await;
    assert_eq!((broken.status.as_str(), broken.attempt), ("parked", 3));
    assert!(broken.error.unwrap().contains("ValueError: no such order"));
    program.line("c #1  parked: exit 65: poison!").await;
    program.line("b #1  start  attempt 2").await;
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_takes_too_long_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let handler = "sleep 1000 & echo $! > child; wait";
    let program = Program::dev(folder.path(), &["--timeout", "300ms", "--", "sh", "-c", handler]).await;
    program.client().append("orders", &[event("slow", &1)]).await.unwrap();
    program.line("slow #1  retry in").await;
    assert!(program.line("slow #1  retry in").await.ends_with("timed out after 300ms"));
    let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
    seam::until("the end of the handler's child", || std::future::ready((!is_alive(&child)).then_some(())))
        .await;
    program.stop().await;
}

/// It holds the output open: a lane that waited for it would stand until the daemon ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_a_handler_leaves_behind_does_not_hold_up_its_lane() {
    let folder = tempfile::tempdir().unwrap();
    // The pipe says when the daemon has left the group; its own end comes with the pipe's reader below.
    let handler =
        "mkfifo gone stay; setsid sh -c 'echo $$ > daemon; : > gone; : < stay' & : < gone; echo said";
    let program = Program::dev(folder.path(), &["--", "sh", "-c", handler]).await;
    let ended = submit(&program, job("d", &1)).await;
    assert_eq!((ended.status.as_str(), ended.result.unwrap().get()), ("done", "\"said\""));
    let daemon = std::fs::read_to_string(folder.path().join("daemon")).unwrap();
    assert!(is_alive(&daemon), "the daemon lives, so the output was open all the time");
    std::fs::OpenOptions::new().write(true).open(folder.path().join("stay")).unwrap();
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_never_stops_talking_is_ended_and_parked() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &["--", "sh", "-c", "while :; do echo more; done"]).await;
    let job = submit(&program, job("loud", &1)).await;
    assert_eq!((job.status.as_str(), job.attempt), ("parked", 1));
    assert!(job.error.unwrap().contains("more than 16777216 bytes"));
    program.stop().await;
}

/// The first block of this language in the README.
fn from_readme(language: &str) -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, block) = text.split_once(&format!("dev -- {language}")).unwrap().1.split_once("```").unwrap();
    let (_, block) = block.split_once('\n').unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_of_the_readme_do_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "handler.py", &from_readme("python3"));
    let program = Program::dev(folder.path(), &["--", "python3", "handler.py"]).await;
    let charged = submit(&program, job("ann", &7)).await;
    let result = charged.result.unwrap();
    assert_eq!((charged.status.as_str(), result.get()), ("done", r#"{"charged": "ann", "attempt": "1"}"#));
    let poison = submit(&program, job("bob", &"poison")).await;
    assert_eq!((poison.status.as_str(), poison.attempt), ("parked", 1));
    program.stop().await;

    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "handler.sh", &from_readme("sh"));
    let program = Program::dev(folder.path(), &["--", "sh", "handler.sh"]).await;
    let written = submit(&program, job("ann", &7)).await;
    assert_eq!(written.result.unwrap().get(), r#""written as 1 of ann""#);
    let log = std::fs::read_to_string(folder.path().join("orders.log")).unwrap();
    assert_eq!(log, format!("{}: 7\n", written.reference.unwrap()));
    program.stop().await;
}
