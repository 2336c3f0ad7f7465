//! Commands that look at this machine: stores in files, completions, the doctor.

use super::{Ran, on, shell, with_stream};
use crate::program::{self, Program};

fn here(folder: &std::path::Path, args: &[&str]) -> Ran {
    Ran::of(program::run(folder, args))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_is_checked_copied_and_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve_untouched(folder.path()).await;
    with_stream(&program);
    on(&program, &["send", "mails", "--key", "ann", "1", "2", "3"]).good();
    let busy = here(folder.path(), &["store", "verify", "file:./data"]).bad(1);
    assert!(busy.contains("in use") && busy.ends_with("a store has one process at a time\n"), "{busy}");
    program.stop().await;

    let checked = here(folder.path(), &["store", "verify", "file:./data"]).good();
    assert!(checked.contains("3 events in 1 lanes") && checked.ends_with("nothing is wrong\n"), "{checked}");
    let copied = here(folder.path(), &["store", "copy", "file:./data", "file:./copied"]).good();
    assert!(copied.starts_with("copied 3 events"), "{copied}");
    let kept = here(folder.path(), &["store", "backup", "file:./data", "kept"]).good();
    assert!(kept.contains("--store file:kept"), "{kept}");
    for store in ["file:./copied", "file:./kept"] {
        let report = here(folder.path(), &["store", "verify", store, "-o", "json"]).good();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!((&report["events"], &report["findings"]), (&3.into(), &serde_json::json!([])), "{store}");
    }
    here(folder.path(), &["store", "backup", "file:./data", "kept"]).bad(1);
    here(folder.path(), &["store", "verify", "file:./nowhere"]).bad(3);
    here(folder.path(), &["store", "verify", "data"]).bad(2);
    assert!(!folder.path().join("nowhere").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve_untouched(folder.path()).await;
    with_stream(&program);
    on(&program, &["send", "mails", "--key", "ann", "--raw", &"x".repeat(9_000)]).good();
    program.stop().await;
    let log = folder.path().join("data/log");
    // Beside it there may be files that are only filled ahead.
    let segments = std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path());
    let found = segments.map(|path| (std::fs::read(&path).unwrap(), path)).find_map(|(bytes, path)| {
        let place = bytes.windows(64).position(|piece| piece.iter().all(|byte| *byte == b'x'))?;
        Some((path, bytes, place))
    });
    let (segment, mut bytes, place) = found.unwrap();
    bytes[place] = b'y';
    std::fs::write(&segment, bytes).unwrap();
    let found = here(folder.path(), &["store", "verify", "file:./data"]);
    assert!(found.out.contains("damage") && found.out.contains(".seg"), "{}", found.out);
    assert!(found.bad(1).contains("restore a backup"));
}

#[test]
fn completions_know_the_commands_of_every_shell() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = here(folder.path(), &["completions", shell]).good();
        assert!(script.contains("laneway") && script.contains("redrive"), "{shell}");
    }
    let script = here(folder.path(), &["completions", "bash"]).good();
    std::fs::write(folder.path().join("laneway.bash"), script).unwrap();
    let asked = format!(
        "bash -c '. {}/laneway.bash; COMP_WORDS=(laneway stream cre); COMP_CWORD=2; _laneway laneway cre stream; echo ${{COMPREPLY[@]}}'",
        folder.path().display()
    );
    assert_eq!(shell(&asked).good(), "create\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_looks_at_store_clock_limits_and_server() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_stream(&program);
    let looked =
        on(&program, &["doctor", "--store", &format!("file:{}/data", folder.path().display())]).good();
    let checks: Vec<&str> = looked.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(
        checks,
        ["open files", "settings", "store", "disk space", "disk sync", "port", "clock", "server", "calls"]
    );
    assert!(looked.contains(&format!("server\tok\t{} is ready\n", program.address())), "{looked}");
    let bad = on(&program, &["doctor", "--store", "data"]);
    assert_eq!(bad.code, 1);
    assert!(bad.out.contains("settings\tfail\t") && bad.out.contains("is no URL"), "{}", bad.out);
    let alone =
        here(folder.path(), &["doctor", "--store", "memory:", "--server", "http://127.0.0.1:1"]).good();
    assert!(alone.contains("server\twarn\tno server answers at http://127.0.0.1:1"), "{alone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_measurement_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let table = here(folder.path(), &["bench", "--length", "100ms", "-o", "table"]).good();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows.len() == 4 && rows[1].ends_with("disk") && rows[3].ends_with("synced"), "{table}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let program = Program::serve(folder.path()).await;
    let table = on(&program, &["bench", "--length", "100ms", "-o", "json"]).good();
    let rows: serde_json::Value = serde_json::from_str(&table).unwrap();
    let rows = rows.as_array().unwrap();
    assert!(rows.len() == 3 && rows.iter().all(|row| row["durability"] == "synced"), "{rows:?}");
    assert!(rows.iter().all(|row| row["per_second"].as_u64() > Some(0)), "{rows:?}");
    assert_eq!(on(&program, &["stream", "ls", "-o", "id"]).good(), "_laneway\n");
}
