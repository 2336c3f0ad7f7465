//! Jobs in lists, schedules, and the cluster of one node.

use super::{on, settled, with_stream};
use crate::program::Program;

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed_run_again_taken_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let id = on(&program, &["job", "submit", "orders", "7", "--key", "ann", "-o", "id"]).good();
    let id = id.trim();
    on(&program, &["job", "wait", id]).good();
    let table = settled(&on(&program, &["job", "ls", "--status", "done", "-o", "table"]).good());
    let mut rows = table.lines();
    assert_eq!(
        rows.next().unwrap().split_whitespace().collect::<Vec<_>>().join(" "),
        "JOB STATUS STREAM KEY TRIES CREATED"
    );
    assert!(rows.next().unwrap().starts_with(&format!("{id}  done    orders  ann")), "{table}");
    assert_eq!(
        on(&program, &["job", "ls", "--stream", "orders", "--since", "1h", "-o", "id"]).good(),
        format!("{id}\n")
    );
    let again = on(&program, &["job", "retry", id, "-o", "id"]).good();
    assert_ne!(again.trim(), id);
    on(&program, &["job", "wait", again.trim()]).good();
    let taken: serde_json::Value = serde_json::from_str(&on(&program, &["job", "take", id]).good()).unwrap();
    assert_eq!(taken["data"], 7);
    assert!(on(&program, &["job", "rm", id]).bad(2).contains("--yes"));
    let would = on(&program, &["job", "rm", id, "--dry-run"]);
    assert!(would.err.contains("would forget the ends of 1 jobs"), "{}", would.err);
    assert_eq!(on(&program, &["job", "rm", id, "--yes"]).good(), format!("job {id} is forgotten\n"));
    on(&program, &["job", "get", id]).bad(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_added_run_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let add = [
        "schedule",
        "add",
        "nightly",
        "--stream",
        "mails",
        "--cron",
        "30 2 * * *",
        "--time-zone",
        "Europe/Berlin",
    ];
    let added = on(&program, &add).good();
    assert!(added.starts_with("schedule nightly sends to mails, next at "), "{added}");
    let table = settled(&on(&program, &["schedule", "ls", "-o", "table"]).good());
    assert!(
        table.lines().nth(1).unwrap().starts_with("nightly   mails   30 2 * * *  Europe/Berlin  in "),
        "{table}"
    );
    assert!(on(&program, &["schedule", "run", "nightly"]).good().starts_with("schedule nightly sent mails/"));
    // What is not said stays as it is.
    on(
        &program,
        &["schedule", "add", "nightly", "--stream", "mails", "--every", "2h", "--type", "t", "--paused"],
    )
    .good();
    let again =
        on(&program, &["schedule", "add", "nightly", "--stream", "mails", "--every", "3h", "-o", "json"])
            .good();
    for kept in [r#""paused": true"#, r#""type": "t""#, r#""every": "3h""#] {
        assert!(again.contains(kept), "{kept} in {again}");
    }
    on(&program, &["schedule", "add", "wrong", "--stream", "mails", "--cron", "often"]).bad(2);
    assert!(on(&program, &["schedule", "rm", "nightly"]).bad(2).contains("--yes"));
    assert_eq!(on(&program, &["schedule", "rm", "nightly", "--yes"]).good(), "schedule nightly is removed\n");
    on(&program, &["schedule", "run", "nightly"]).bad(3);
}

/// What only several nodes could do is refused, with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_works_alone_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    on(&program, &["processor", "create", "mailer", "--stream", "mails"]).good();
    let node = on(&program, &["node", "ls", "-o", "id"]).good();
    assert_eq!(node.lines().count(), 1, "{node}");
    let refused = on(&program, &["node", "drain", node.trim(), "--yes"]).bad(4);
    assert!(refused.contains("works alone on its store"), "{refused}");
    on(&program, &["node", "drain", node.trim(), "--undo"]).bad(4);
    let leases = on(&program, &["lease", "ls", "-o", "id"]).good();
    assert_eq!(leases.lines().collect::<Vec<_>>(), ["mailer/mails/0", "mailer/mails/1"]);
    let refused = on(&program, &["lease", "break", "mailer/mails/0", "--yes"]).bad(4);
    assert!(refused.contains("nobody else could take"), "{refused}");
    let status = on(&program, &["cluster", "status"]).good();
    assert!(status.ends_with("nothing needs attention\n"), "{status}");
}
