//! `laneway stream tail`, and lanes by status.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use super::{on, settled, with_stream};
use crate::program::{self, Program};
use crate::seam;

/// A `tail` that runs, and the lines it writes.
fn tailing(program: &Program, args: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let args = [&["stream", "tail", "mails"], args, &["--server", program.address()]].concat();
    let mut child =
        program::command(std::path::Path::new("."), &args).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    (child, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_prints_what_is_there_and_what_comes() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    on(&program, &["send", "mails", "--key", "ann", "1"]).good();
    on(&program, &["send", "mails", "--key", "bob", "2"]).good();
    let args = ["--from", "beginning", "--key", "ann", "-n", "2", "-o", "jsonl"];
    let (mut child, mut lines) = tailing(&program, &args);
    let data = |line: Option<String>| {
        let event: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        event["data"].clone()
    };
    assert_eq!(data(lines.next()), 1);
    on(&program, &["send", "mails", "--key", "bob", "3"]).good();
    on(&program, &["send", "mails", "--key", "ann", "4"]).good();
    assert_eq!(data(lines.next()), 4);
    assert!(child.wait().unwrap().success(), "it ends after the second");
    on(&program, &["tail", "nope"]).bad(3);
}

/// The server ends and starts again under a tail, which goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_tail_comes_back_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    on(&program, &["send", "mails", "--key", "ann", "1"]).good();
    let (mut child, mut lines) = tailing(&program, &["--from", "beginning", "-n", "3", "-o", "id"]);
    let first = lines.next().unwrap();
    let address = program.address().strip_prefix("http://").unwrap().to_owned();
    program.stop().await;
    let program = Program::serve_at(folder.path(), &address).await;
    on(&program, &["send", "mails", "--key", "ann", "2", "3"]).good();
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success());
    let place = first.strip_suffix("/1").unwrap();
    assert_eq!(rest, [format!("{place}/2"), format!("{place}/3")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_found_and_changed_by_their_status() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    on(&program, &["processor", "create", "mailer", "--stream", "mails"]).good();
    on(&program, &["send", "mails", "--key", "ann", "1"]).good();
    on(&program, &["send", "mails", "--key", "bob", "1"]).good();
    for key in ["ann", "bob"] {
        on(&program, &["lane", "pause", "mails", key]).good();
    }
    let table = seam::until("two paused lanes", || async {
        let table = on(&program, &["lane", "ls", "mails", "--status", "paused", "-o", "table"]).good();
        (table.lines().count() == 3).then_some(table)
    })
    .await;
    let mut rows: Vec<String> = settled(&table).lines().skip(1).map(str::to_owned).collect();
    rows.sort();
    assert!(rows[0].starts_with("ann  mailer     paused"), "{table}");
    let would = on(&program, &["lane", "resume", "mails", "--status", "paused", "--dry-run"]).good();
    assert_eq!(would, "would resume 2 lanes: the paused lanes of mails\n");
    let done = on(&program, &["lane", "resume", "mails", "--status", "paused"]).good();
    assert_eq!(done, "resume: 2 lanes\n");
    let none = on(&program, &["lane", "ls", "mails", "--status", "paused", "-o", "table"]);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "no such lanes\n"));
    on(&program, &["lane", "pause", "mails"]).bad(2);
}
