//! What each noun writes, form by form.

use super::{on, settled, with_stream};
use crate::program::Program;
use crate::seam;

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_the_same_things_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    on(&program, &["processor", "create", "mailer", "--stream", "mails", "--concurrency", "3"]).good();
    on(&program, &["stream", "send", "mails", "--key", "ann", "1", "2"]).good();
    let write = |form: &str| on(&program, &["stream", "ls", "-o", form]).good();
    assert_eq!(
        write("table"),
        "STREAM    PARTITIONS  MODE   EVENTS  PROCESSORS  LAG  HELD  DEAD\n\
         _laneway           1  queue       0  -             0     0     0\n\
         mails              2  queue       2  mailer        2     0     0\n"
    );
    assert_eq!(write("plain"), "_laneway\t1\tqueue\t0\t\t0\t0\t0\nmails\t2\tqueue\t2\tmailer\t2\t0\t0\n");
    assert_eq!(write("id"), "_laneway\nmails\n");
    let all: serde_json::Value = serde_json::from_str(&write("json")).unwrap();
    assert_eq!(all[1]["name"], "mails");
    let lines = write("jsonl");
    let second: serde_json::Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(all[1], second);
    // Off a terminal it is plain.
    assert_eq!(on(&program, &["stream", "ls"]).good(), write("plain"));
    let coloured = on(&program, &["processor", "get", "mailer", "-o", "table", "--color", "always"]).good();
    assert!(coloured.contains("\x1b[2mprocessor\x1b[0m"), "{coloured:?}");
    assert_eq!(
        on(&program, &["processor", "ls", "-o", "table"]).good(),
        "PROCESSOR  STREAM  HANDLER  STATUS   CONCURRENCY  ON FAILURE\n\
         mailer     mails   pull     running            3  park\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_made_changed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let changed = on(&program, &["stream", "edit", "mails", "--keep", "2d", "--max-pending", "1000"]).good();
    assert_eq!(
        changed,
        "stream mails keeps events 2d, ends of jobs 1d, idle lanes for ever, waiting at most: 1,000\n"
    );
    let again = on(&program, &["stream", "edit", "mails", "--keep-done", "3h"]).good();
    assert_eq!(
        again,
        "stream mails keeps events 2d, ends of jobs 3h, idle lanes for ever, waiting at most: 1,000\n"
    );
    let would = on(&program, &["stream", "rm", "mails", "--dry-run"]).good();
    assert_eq!(would, "would remove stream mails with its 0 events\n");
    on(&program, &["stream", "get", "mails"]).good();
    assert_eq!(on(&program, &["stream", "rm", "mails", "--yes"]).good(), "stream mails is removed\n");
    on(&program, &["stream", "get", "mails"]).bad(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_lane_says_why_and_goes_on_when_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let failed = on(&program, &["job", "submit", "orders", "1", "--key", "bad", "--wait=30s"]).bad(7);
    assert!(failed.contains("is parked: the demo fails on key \"bad\", attempt 3 of 3"), "{failed}");
    let why = on(&program, &["why", "orders", "bad"]).good();
    assert!(why.starts_with("lane \"bad\" of orders, demo: event 1 is parked: the demo fails"), "{why}");
    assert_eq!(why.lines().count(), 1, "{why}");
    let lane = on(&program, &["lane", "get", "orders", "bad", "-o", "table"]).good();
    assert!(lane.contains("  status    parked\n"), "{lane}");
    assert_eq!(on(&program, &["lane", "retry", "orders", "bad", "--yes"]).good(), "retry: 1 lane\n");
    seam::until("it is parked again", || async {
        on(&program, &["why", "orders", "bad"]).good().contains("is parked").then_some(())
    })
    .await;
    assert!(on(&program, &["lane", "skip", "orders", "bad"]).bad(2).contains("--yes"));
    assert_eq!(on(&program, &["lane", "skip", "orders", "bad", "--yes"]).good(), "skip: 1 lane\n");
    let why = seam::until("the end of the skipped event", || async {
        let why = on(&program, &["why", "orders", "bad"]).good();
        (!why.contains("parked")).then_some(why)
    })
    .await;
    assert!(why.contains("nothing waits"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_waited_for_prints_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let result =
        on(&program, &["job", "submit", "orders", r#"{"hello":"world"}"#, "--key", "ann", "--wait"]).good();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["data"]["hello"], "world");
    let id = on(&program, &["job", "submit", "orders", "2", "--key", "ann", "-o", "id"]).good();
    on(&program, &["job", "wait", id.trim()]).good();
    let shown = settled(&on(&program, &["job", "get", id.trim(), "-o", "table"]).good());
    assert!(shown.contains("status      done") && shown.contains("key         ann"), "{shown}");
    let why = on(&program, &["why", id.trim()]).good();
    assert_eq!(why, format!("job {} is done\n", id.trim()));
    assert!(on(&program, &["job", "cancel", id.trim()]).bad(4).contains("already_finished"));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_brought_back_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let settings = ["processor", "create", "mailer", "--stream", "mails", "--on-failure", "dead-letter"];
    on(&program, &settings).good();
    on(&program, &["stream", "send", "mails", "--key", "ann", "1"]).good();
    let client = program.client();
    let claim = client
        .claim("mailer", &serde_json::from_str(r#"{"wait":"20s"}"#).unwrap())
        .await
        .unwrap()
        .claims
        .remove(0);
    let settle = serde_json::json!({"settlements": [{"claim": claim.claim, "outcome": "fail", "error": "no address"}]});
    client.settle("mailer", &serde_json::from_value(settle).unwrap()).await.unwrap();
    let reference = claim.events[0].reference.clone();
    let table = settled(&on(&program, &["dead", "ls", "-o", "table"]).good());
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with(&reference) && row.ends_with("no address"), "{table}");
    assert!(on(&program, &["dead", "redrive"]).bad(2).contains("which dead letters?"));
    let would = on(&program, &["dead", "discard", "--stream", "mails", "--dry-run"]);
    assert!(would.err.contains("would forget 1 dead letters for good"), "{}", would.err);
    assert!(on(&program, &["dead", "discard", "--stream", "mails"]).bad(2).contains("--yes"));
    assert_eq!(on(&program, &["dead", "redrive", &reference]).good(), "1 brought back, 0 refused\n");
    let is_empty = || async { on(&program, &["dead", "ls"]).good().is_empty().then_some(()) };
    seam::until("an empty list", is_empty).await;

    // It fails again: written to a file this time, and forgotten.
    let again = client.claim("mailer", &serde_json::from_str(r#"{"wait":"20s"}"#).unwrap()).await.unwrap();
    let settle = serde_json::json!({"settlements": [{"claim": again.claims[0].claim, "outcome": "fail", "error": "gone"}]});
    client.settle("mailer", &serde_json::from_value(settle).unwrap()).await.unwrap();
    let exported = on(&program, &["dead", "export", "--stream", "mails"]).good();
    let letter: serde_json::Value = serde_json::from_str(&exported).expect("one line");
    assert!(letter.to_string().contains("gone") && letter.to_string().contains(&reference), "{letter}");
    on(&program, &["dead", "discard", &reference, "--yes"]).good();
    seam::until("an empty list", is_empty).await;
    assert_eq!(on(&program, &["dead", "export", "--stream", "mails"]).good(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn processors_are_changed_stopped_begun_anew_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let mailer = |verb: &str, more: &[&str]| on(&program, &[&["processor", verb, "mailer"], more].concat());
    mailer("create", &["--stream", "mails"]).good();
    on(&program, &["stream", "send", "mails", "--key", "ann", "1", "2"]).good();
    assert_eq!(mailer("edit", &["--concurrency", "7"]).good(), "processor mailer is changed\n");
    let shown: serde_json::Value = serde_json::from_str(&mailer("get", &["-o", "json"]).good()).unwrap();
    assert_eq!(shown["settings"]["concurrency"], 7);
    assert_eq!(mailer("pause", &[]).good(), "processor mailer is paused on 2 partitions\n");
    assert!(on(&program, &["processor", "ls"]).good().contains("paused"));
    assert_eq!(mailer("resume", &[]).good(), "processor mailer goes on on 2 partitions\n");
    assert!(mailer("reset", &["--start", "end"]).bad(2).contains("--yes"));
    let anew = mailer("reset", &["--start", "end", "--yes"]).good();
    assert_eq!(anew, "processor mailer begins anew on 2 partitions\n");
    seam::until("nothing is left to do", || async {
        on(&program, &["stream", "ls"]).good().contains("mails\t2\tqueue\t2\tmailer\t0\t").then_some(())
    })
    .await;
    assert!(mailer("rm", &["--dry-run"]).good().starts_with("would remove processor mailer of mails"));
    assert_eq!(mailer("rm", &["--yes"]).good(), "processor mailer is removed\n");
    mailer("get", &[]).bad(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_found_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let reference = on(&program, &["send", "mails", "--key", "ann", r#"{"a": 1}"#, "-o", "id"]).good();
    let shown = on(&program, &["event", "get", reference.trim()]).good();
    assert!(shown.contains("key\tann\n") && shown.contains("data\t{\"a\": 1}\n"), "{shown}");
    let json = on(&program, &["event", "get", reference.trim(), "-o", "json"]).good();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["seq"], &json["data"]["a"]), (&1.into(), &1.into()));
    on(&program, &["event", "get", "mails/0/99"]).bad(3);
}
