//! Backups of a running server: what they hold, where they may go, and the command that asks for one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use http::Method;
use laneway_client::Client;
use laneway_client::wire::EventDraft;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use crate::cli::on;
use crate::errors::refused;
use crate::program::{Program, run};
use crate::protected::{Token, write_private};
use crate::seam;

const PARTITIONS: u32 = 4;
const WRITERS: u64 = 4;
/// Events that are acknowledged before the backup begins.
const BEFORE: usize = 400;
const BACKUP: &str = "/v1/store/backup";

async fn serve(folder: &Path, args: &[&str]) -> Program {
    std::fs::create_dir_all(folder.join("backups")).unwrap();
    Program::serve_plainly(folder, args, &[("LANEWAY_STORE_BACKUP_DIR", "./backups")]).await
}

async fn with_stream(program: &Program) -> Client {
    let client = program.client();
    let body = json!({"partitions": PARTITIONS}).to_string().into_bytes();
    let answer = client.send(Method::PUT, "/v1/streams/orders", &[], Some(body)).await.unwrap();
    assert!(answer.status.is_success());
    client
}

/// The data of all events of the stream.
async fn stored(client: &Client) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for partition in 0..PARTITIONS {
        let mut after = Some(0);
        while let Some(from) = after {
            let page = client.events("orders", partition, from, 1_000).await.unwrap();
            let data =
                page.events.iter().map(|event| event.data.as_ref().unwrap().get().parse::<u64>().unwrap());
            found.extend(data);
            after = page.next;
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_under_load_holds_everything_acknowledged_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), &[]).await;
    let client = with_stream(&program).await;
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let (count, mut counted) = watch::channel(0);
    let (stop, stopped) = watch::channel(false);
    let count = Arc::new(count);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (client, acknowledged, count, stopped) =
                (client.clone(), Arc::clone(&acknowledged), Arc::clone(&count), stopped.clone());
            seam::spawn(async move {
                for number in (writer..).step_by(WRITERS as usize) {
                    if *stopped.borrow() {
                        return;
                    }
                    let draft = json!({"key": format!("k{}", number % 50), "data": number});
                    let draft: EventDraft = serde_json::from_value(draft).unwrap();
                    client.append("orders", &[draft]).await.unwrap();
                    acknowledged.lock().insert(number);
                    count.send_modify(|count| *count += 1);
                }
            })
        })
        .collect();
    seam::guarded("the first events", counted.wait_for(|count| *count >= BEFORE)).await.unwrap();
    let before = acknowledged.lock().clone();
    let made = client.backup("nightly").await.unwrap();
    let beside = acknowledged.lock().len() - before.len();
    stop.send_replace(true);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(made.bytes > 0 && made.segments > 0, "{made:?}");
    assert!(made.folder.ends_with("/backups/nightly"), "{made:?}");

    let verified = run(folder.path(), &["store", "verify", "file:./backups/nightly"]);
    assert!(verified.status.success(), "{verified:?}");
    let restored = Program::serve_plainly(folder.path(), &["--store", "file:./backups/nightly"], &[]).await;
    let found = stored(&restored.client()).await;
    let missing: Vec<_> = before.difference(&found).collect();
    assert!(missing.is_empty(), "{} of {} are missing: {missing:?}", missing.len(), before.len());
    let draft = serde_json::from_value(json!({"key": "new", "data": 1})).unwrap();
    restored.client().append("orders", &[draft]).await.unwrap();
    restored.stop().await;
    // The server that was backed up has everything, also what came meanwhile.
    let all = stored(&client).await;
    assert_eq!(all, *acknowledged.lock(), "{beside} were acknowledged beside the backup");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_is_refused_outside_its_folder_and_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), &[]).await;
    let client = with_stream(&program).await;
    let check = async |name: &str, code: &str, says: &str| {
        let body = Some(json!({"name": name}).to_string());
        refused(&client, Method::POST, BACKUP, &[], body, code, says).await;
    };
    for name in ["../outside", "/tmp/outside", "..", ".", "", "a/b", ".hidden", "half.partial"] {
        let says = format!("name is {name:?}, must be 1 to 128 letters, digits");
        check(name, "invalid_value", &says).await;
    }
    client.backup("one").await.unwrap();
    check("one", "backup_exists", "/backups/one exists already; choose another name, or remove it").await;
    let backups = folder.path().join("backups");
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), backups.join("link")).unwrap();
    check("link", "backup_exists", "/backups/link exists already").await;
    assert!(!folder.path().join("elsewhere").exists());
    std::fs::remove_dir_all(&backups).unwrap();
    check("two", "backup_failed", "store.backup_dir ./backups cannot be used: ").await;
    let wrong = Some(json!({"name": "two", "folder": "/"}).to_string());
    refused(&client, Method::POST, BACKUP, &[], wrong, "unknown_field", "folder").await;
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_is_refused_without_a_folder_to_copy_or_to_write() {
    let folder = tempfile::tempdir().unwrap();
    for (store, says) in [
        ("file:./data", "store.backup_dir is not set: set it to a folder on the server's machine"),
        ("memory:", "the store is in memory"),
    ] {
        let program = Program::serve_plainly(folder.path(), &["--store", store], &[]).await;
        let body = Some(json!({"name": "one"}).to_string());
        refused(&program.client(), Method::POST, BACKUP, &[], body, "backup_unavailable", says).await;
        program.stop().await;
    }
    for (store, says) in [
        ("memory:", "store.backup_dir: only a file: store can be copied"),
        ("file:./data", "store.backup_dir \"./nowhere\": must be an existing folder"),
    ] {
        let mut command =
            crate::program::command(folder.path(), &["serve", "--store", store, "--listen", "127.0.0.1:0"]);
        let output = command.env("LANEWAY_STORE_BACKUP_DIR", "./nowhere").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(says), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_needs_the_scope_of_administrators() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = ["write", "admin"].map(|scope| Token::new(scope, scope));
    let lines: Vec<&str> = tokens.iter().map(|token| token.line.as_str()).collect();
    write_private(&folder.path().join("tokens"), &lines.join("\n"));
    let mut program = serve(folder.path(), &["--token-file", "tokens"]).await;
    program.keep_secret(tokens.iter().map(|token| token.secret.clone()));
    let [write, admin] = tokens.each_ref().map(|token| program.client().with_token(&token.secret).unwrap());
    let body = Some(json!({"name": "one"}).to_string());
    let says = "the call needs admin";
    refused(&write, Method::POST, BACKUP, &[], body, "scope_required", says).await;
    admin.backup("one").await.unwrap();
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn command_has_the_server_make_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let program = serve(folder.path(), &[]).await;
    with_stream(&program).await;
    let made = on(&program, &["store", "backup", "one"]).good();
    assert!(
        made.contains(" log segments are in ") && made.contains("/backups/one; serve them with"),
        "{made}"
    );
    assert!(run(folder.path(), &["store", "verify", "file:./backups/one"]).status.success());
    let taken = on(&program, &["store", "backup", "one"]).bad(4);
    assert!(taken.contains("exists already") && taken.contains("(backup_exists)"), "{taken}");
    let output = on(&program, &["store", "backup", "two", "-o", "json"]).good();
    let backup: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert!(backup["folder"].as_str().unwrap().ends_with("/backups/two"), "{backup}");
    on(&program, &["store", "backup", "../three"]).bad(2);
    // A store that is closed has no server, and one that is open makes its backups itself.
    on(&program, &["store", "backup", "file:./data", "three"]).bad(2);
    let busy = run(folder.path(), &["store", "backup", "file:./data", "three"]);
    let busy = String::from_utf8(busy.stderr).unwrap();
    assert!(busy.contains("its server makes the backup: laneway store backup NAME"), "{busy}");
    assert!(!folder.path().join("three").exists());
    program.stop().await;
}
