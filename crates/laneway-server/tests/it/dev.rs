//! `laneway dev` as a newcomer meets it.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;

use crate::program::{Program, paste, run};

/// The command of a printed line: everything from its `curl` on.
async fn printed(program: &Program, name: &str) -> String {
    let line = program.line(name).await;
    line[line.find("curl").unwrap()..].to_owned()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Places of lines with these endings, in the order they were said.
fn place(lines: &[String], part: &str) -> usize {
    lines
        .iter()
        .position(|line| line.contains(part))
        .unwrap_or_else(|| panic!("{part:?} is not in {lines:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_lines_work_when_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;

    let appended = json(&paste(printed(&program, "1. order:").await));
    let seqs: Vec<_> =
        appended["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!((seqs, &appended["durability"]), (vec![1, 2, 1], &Value::from("synced")));
    program.line("ann #2  done").await;
    program.line("bob #1  done").await;
    let lines = program.lines();
    let order =
        ["ann #1  start", "ann #1  done", "ann #2  start", "ann #2  done"].map(|part| place(&lines, part));
    assert!(order.is_sorted(), "{lines:#?}");

    let job = json(&paste(printed(&program, "2. result:").await));
    assert_eq!(
        (&job["status"], &job["result"]["data"]),
        (&Value::from("done"), &json(r#"{"hello":"world"}"#))
    );
    assert_eq!(job["result"]["handled"], job["ref"]);

    let trouble = printed(&program, "3. trouble:").await;
    let (send, look) = trouble.split_once("; sleep 5; ").unwrap();
    paste(send);
    program.line("bad #1  parked: ").await;
    let lane = json(&paste(look));
    let standing = &lane["processors"][0];
    assert_eq!((&standing["status"], &standing["attempt"]), (&Value::from("parked"), &Value::from(3)));
    assert_eq!(standing["why"]["code"], "parked");
    let lines = program.lines();
    let tries = ["bad #1  start", "bad #1  retry in", "bad #1  start  attempt 2", "bad #1  start  attempt 3"];
    assert!(tries.map(|part| place(&lines, part)).is_sorted(), "{lines:#?}");
    assert!(!lines.concat().contains('\x1b'), "colours are for terminals only");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_everything_and_fresh_empties_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let client = program.client();
    let submitted = json(&paste(printed(&program, "2. result:").await));
    let job = client.job(submitted["id"].as_str().unwrap(), Some(Duration::from_secs(60))).await.unwrap();
    let job = serde_json::to_value(&job).unwrap();
    assert_eq!(job["status"], "done");
    paste(printed(&program, "3. trouble:").await.split_once("; sleep").unwrap().0);
    program.line("bad #1  parked: ").await;
    let lines = program.stop().await;
    assert_eq!(lines.last().map(String::as_str), Some("stopped; nothing is lost"));

    let program = Program::dev(folder.path(), &[]).await;
    let client = program.client();
    let again = client.job(job["id"].as_str().unwrap(), None).await.unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), job);
    let lane = client.lane("orders", b"bad").await.unwrap();
    assert_eq!((lane.processors[0].status.as_str(), lane.last_seq, lane.pending), ("parked", 1, 1));
    program.stop().await;

    let program = Program::dev(folder.path(), &["--fresh"]).await;
    let client = program.client();
    assert_eq!(client.stream("orders").await.unwrap().heads, []);
    assert_eq!(client.lane("orders", b"bad").await.unwrap().last_seq, 0);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_lane_goes_on_after_its_head_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let url = program.address();
    paste(format!("curl -s --json '{{\"key\":\"bad\",\"data\":0}}' {url}/v1/streams/orders/events"));
    program.line("bad #1  parked: ").await;
    let skipped = paste(format!("curl -s --json '{{\"key\":\"bad\"}}' {url}/v1/streams/orders/lanes/skip"));
    assert_eq!(skipped, "{\"count\":1,\"applied\":true}\n");
    let lane = program.client().lane("orders", b"bad").await.unwrap();
    assert_eq!((lane.processors[0].status.as_str(), lane.pending), ("idle", 0));
    let event = program.client().event("orders", lane.partition, 1).await.unwrap();
    assert_eq!(event.processors[0].status, "skipped");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_said_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let check = |args: &[&str], code: i32, says: &str| {
        let output = run(folder.path(), args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {told}");
        assert!(told.contains(says) && told.starts_with("laneway: "), "{args:?}: {told}");
        assert!(!folder.path().join(".laneway").join("LOCK").exists(), "{args:?} left a store behind");
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    check(
        &["dev", "--port", &port],
        1,
        "is taken, maybe by another laneway; choose another port: --port 7071",
    );
    check(&["dev", "--listen", "0.0.0.0:7070"], 2, "others could reach this address");
    check(&["dev", "--port", "99999"], 2, "0 to 65535");
    check(&["dev", "--port", "0", "--", "no-such-program"], 1, "\"no-such-program\" is not there");
    check(
        &["serve", "--store", "data", "--listen", "[::]:1"],
        2,
        "must be file:PATH, redis://HOST:PORT or memory:",
    );
    check(&["serve", "--store", "ftp:x", "--listen", "127.0.0.1:0"], 1, "unknown scheme \"ftp\"");

    let ours = folder.path().join(".laneway");
    std::fs::create_dir(&ours).unwrap();
    std::fs::write(ours.join("letters.txt"), "dear").unwrap();
    check(&["dev", "--port", "0", "--fresh"], 1, "is not the folder of a store: it has \"letters.txt\"");
    assert!(ours.join("letters.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_program_on_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    for args in [&["dev", "--port", "0"][..], &["dev", "--port", "0", "--fresh"]] {
        let output = run(folder.path(), args);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && told.contains("in use by"), "{told}");
    }
    assert_eq!(program.client().stream("orders").await.unwrap().partitions, 16);
    program.stop().await;
}
