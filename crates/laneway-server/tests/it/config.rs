//! `laneway.toml`: what `serve` makes of it, and what `config` says about it.

use laneway_client::wire::{EventDraft, JobDraft, json};

use crate::program::{Program, run};

const FILE: &str = r#"
[store]
url = "file:./data"
namespace = "laneway"

[[stream]]
name = "orders"
partitions = 4

[[processor]]
name = "charge"
stream = "orders"
exec = ["sh", "-c", "cat"]
timeout = "30s"
retry = { max_attempts = 2, backoff = "10ms", backoff_max = "1s" }

[[processor]]
name = "mail"
stream = "orders"
pull = true
types = ["order.*"]

[[schedule]]
name = "pulse"
stream = "orders"
every = "1h"
data = { beat = true }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn streams_processors_and_schedules_of_the_file_are_made_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::configured(folder.path(), FILE).await;
    let client = program.client();
    assert_eq!(client.stream("orders").await.unwrap().partitions, 4);
    let charge = client.processor("charge").await.unwrap();
    let settings = charge.settings.unwrap();
    assert_eq!((charge.handler.as_str(), settings.timeout.as_deref()), ("exec", Some("30s")));
    assert_eq!(settings.retry.unwrap().max_attempts, Some(2));
    assert_eq!(client.processor("mail").await.unwrap().settings.unwrap().types, ["order.*"]);
    let job = JobDraft {
        key: Some("a".to_owned()),
        data: Some(json(&7).unwrap()),
        processor: Some("charge".to_owned()),
        ..JobDraft::default()
    };
    let wait = Some(std::time::Duration::from_secs(30));
    let laneway_client::Submission::Settled(job) = client.submit("orders", &job, wait, None).await.unwrap()
    else {
        panic!("still runs");
    };
    assert_eq!(job.result.unwrap().get(), "7");
    assert!(program.errors().contains("stream orders: made"), "{}", program.errors());
    program.stop().await;

    let changed = FILE.replace("timeout = \"30s\"", "timeout = \"5s\"");
    let program = Program::configured(folder.path(), &changed).await;
    assert!(program.errors().contains("stream orders: as it was"), "{}", program.errors());
    let settings = program.client().processor("charge").await.unwrap().settings.unwrap();
    assert_eq!(settings.timeout.as_deref(), Some("5s"));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_is_told_and_nothing_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::configured(folder.path(), FILE).await;
    program.client().append("orders", &[EventDraft::default()]).await.unwrap();
    program.stop().await;
    for (before, after, says) in [
        ("partitions = 4", "partitions = 8", "stream \"orders\" of the file: "),
        ("types = [", "start = \"end\"\ntypes = [", "/v1/processors/mail/reset begins anew"),
        ("[\"sh\"", "[\"no-such-program\"", "the handler \"no-such-program\" is not there"),
    ] {
        std::fs::write(folder.path().join("laneway.toml"), FILE.replace(before, after)).unwrap();
        let output = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(says) && output.stdout.is_empty(), "{told}");
    }
}

#[test]
fn config_tells_what_counts_and_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let config = |args: &[&str]| {
        let output = run(folder.path(), &[&["config"], args].concat());
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, template, _) = config(&["init"]);
    assert_eq!(code, Some(0));
    std::fs::write(folder.path().join("laneway.toml"), template).unwrap();
    assert_eq!(config(&["check"]), (Some(0), "good: laneway.toml\n".to_owned(), String::new()));
    std::fs::write(folder.path().join("laneway.toml"), "[http]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let (_, shown, _) = config(&["show", "--origin", "--store", "memory:"]);
    assert!(shown.contains("= 127.0.0.1:1   # laneway.toml:2"), "{shown}");
    assert!(shown.contains("= memory:   # --store"), "{shown}");
    std::fs::write(folder.path().join("laneway.toml"), "[http]\nlitsen = 1\n[log]\nlevel = 7\n").unwrap();
    let (code, _, told) = config(&["check"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("laneway.toml:2: http.litsen is no setting; did you mean http.listen?"), "{told}");
    assert!(told.contains("laneway.toml:4: log.level 7: must be one of error, warn"), "{told}");
    // What `serve` would refuse is not called good.
    let file = "[http]\nlisten = \"0.0.0.0:0\"\ntoken_file = \"nowhere\"\n[[stream]]\nname = \"orders\"\n[[processor]]\n\
                name = \"charge\"\nstream = \"orders\"\nexec = [\"./no-such-program\"]\n";
    std::fs::write(folder.path().join("laneway.toml"), file).unwrap();
    let (code, _, told) = config(&["check"]);
    assert_eq!(code, Some(2), "{told}");
    for fault in [
        "0.0.0.0:0: others could reach",
        "nowhere",
        "processor \"charge\": the handler \"./no-such-program\"",
    ] {
        assert!(told.contains(fault), "{fault} in {told}");
    }
}

/// What is on stderr when a server starts and is told to log everything.
async fn logged(format: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("laneway.toml"), FILE).unwrap();
    let mut program =
        Program::serve_as(folder.path(), &["--log-format", format, "--log-level", "debug"], &[]).await;
    program.signal(rustix::process::Signal::TERM);
    program.ended().await;
    let told = program.errors();
    told.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_lines_for_people_or_json_for_programs() {
    let lines = logged("json").await;
    let objects: Vec<serde_json::Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert!(objects.iter().any(|object| object["message"] == "stream orders: made"), "{lines:?}");
    assert!(objects.iter().any(|object| object["level"] == "DEBUG"), "{lines:?}");
    for object in objects {
        for field in ["timestamp", "level", "target", "message"] {
            assert!(object[field].is_string(), "{field}: {object}");
        }
    }
    let lines = logged("text").await;
    assert!(lines.contains(&"stream orders: made".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(" DEBUG ")), "{lines:?}");

    let folder = tempfile::tempdir().unwrap();
    let told = run(folder.path(), &["serve", "--log-format", "xml"]);
    assert_eq!(told.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&told.stderr).contains("--log-format \"xml\": must be one of text, json"),
        "{told:?}"
    );
    std::fs::write(folder.path().join("laneway.toml"), "[otlp]\nendpoint = \"http://127.0.0.1:4318\"\n")
        .unwrap();
    let told = run(folder.path(), &["serve"]);
    assert_eq!(told.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&told.stderr).contains("build it with --features otlp"), "{told:?}");
    std::fs::remove_file(folder.path().join("laneway.toml")).unwrap();
    let told = run(folder.path(), &["serve", "--log-format", "json", "--store", "file:/proc/none"]);
    let told: serde_json::Value = serde_json::from_slice(&told.stderr).unwrap();
    assert_eq!(told["level"], "ERROR", "{told}");
}
