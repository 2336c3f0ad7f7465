//! What a process does of all there is to do.

use std::path::Path;

use laneway_client::wire::{ClaimRequest, EventDraft, ProcessorSettings};
use laneway_testkit::servers::RedisServer;
use rustix::process::Signal;

use crate::program::{Program, run};
use crate::seam;

const FILE: &str = r#"
[[stream]]
name = "orders"

[[processor]]
name = "charge"
stream = "orders"
exec = ["sh", "-c", "echo ran >> charge.txt"]

[[processor]]
name = "mail"
stream = "orders"
exec = ["sh", "-c", "echo ran >> mail.txt"]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn only_the_chosen_processors_run_and_the_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("laneway.toml"), FILE).unwrap();
    let chosen = ["--processor", "charge", "--tag", "blue,rack-7"];
    let program = Program::serve_as(folder.path(), &chosen, &[]).await;
    let client = program.client();
    let [node] = &client.nodes().await.unwrap()[..] else { panic!("one process") };
    assert_eq!(
        (&node.roles[..], &node.tags[..]),
        (&["all".to_owned()][..], &["blue".to_owned(), "rack-7".to_owned()][..])
    );
    assert!(node.processors.contains(&"charge".to_owned()) && !node.processors.contains(&"mail".to_owned()));
    // One that is registered over HTTP is written down, and served by whoever was chosen for it.
    let pull = ProcessorSettings { stream: "orders".to_owned(), pull: true, ..ProcessorSettings::default() };
    client.put_processor("ship", &pull).await.unwrap();
    assert!(!client.processor("ship").await.unwrap().running);
    let refused = client.claim("ship", &ClaimRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Some("not_pull"));
    let event = EventDraft { key: Some("ann".to_owned()), ..EventDraft::default() };
    client.append("orders", &[event]).await.unwrap();
    let ran =
        |name: &str| std::fs::read_to_string(folder.path().join(name)).is_ok_and(|text| text == "ran\n");
    seam::until("a run of charge", || std::future::ready(ran("charge.txt").then_some(()))).await;
    program.stop().await;
    assert!(!folder.path().join("mail.txt").exists());
    // Nothing was passed over: whoever has them next begins where they stand.
    let program = Program::serve_as(folder.path(), &[], &[]).await;
    seam::until("a run of mail", || std::future::ready(ran("mail.txt").then_some(()))).await;
    assert!(program.client().processor("ship").await.unwrap().running);
    program.stop().await;
    assert!(ran("charge.txt"), "it ran once");
}

/// A node of a cluster.
async fn node(folder: &Path, redis: &RedisServer, name: &str, chosen: &[&str]) -> Program {
    let url = redis.url();
    let args = [&["--store", &url, "--node-name", name], chosen].concat();
    let variables = [("LANEWAY_NODE_LEASE", "2s"), ("LANEWAY_NODE_SETTLE", "100ms")];
    Program::serve_plainly(folder, &args, &variables).await
}

/// Waits until each node owns so many seats of a processor, and nobody owns others.
async fn owned(at: &Program, should: &[(&str, &str, usize)]) {
    seam::until(&format!("seats are owned as {should:?}"), || async {
        let leases = at.client().leases().await.ok()?;
        let nodes = at.client().nodes().await.ok()?;
        let count = |name: &str, processor: &str| {
            let is_it = |token: &str| nodes.iter().any(|node| node.node == token && node.name == name);
            leases.iter().filter(|lease| is_it(&lease.node) && lease.processor == processor).count()
        };
        let all: usize = should.iter().map(|(.., seats)| seats).sum();
        let is_so = should.iter().all(|(name, processor, seats)| count(name, processor) == *seats);
        (is_so && leases.len() == all).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_own_seats_of_the_processors_they_were_chosen_for_and_no_others() {
    let (folder, redis) = (tempfile::tempdir().unwrap(), RedisServer::start(&[]));
    let folder = folder.path();
    std::fs::write(folder.join("laneway.toml"), FILE.replacen("\n\n", "\npartitions = 4\n\n", 1)).unwrap();
    let both = node(folder, &redis, "both", &[]).await;
    owned(&both, &[("both", "charge", 4), ("both", "mail", 4)]).await;
    let charger = node(folder, &redis, "charger", &["--processor", "charge", "--tag", "blue"]).await;
    owned(&both, &[("both", "charge", 2), ("charger", "charge", 2), ("both", "mail", 4)]).await;
    let nodes = both.client().nodes().await.unwrap();
    let listed = nodes.iter().find(|node| node.name == "charger").unwrap();
    assert_eq!(
        (&listed.processors[..], &listed.tags[..]),
        (&["charge".to_owned()][..], &["blue".to_owned()][..])
    );

    // What it may run it takes from a dead node beyond its share; what it may not waits for one that may.
    both.signal(Signal::KILL);
    owned(&charger, &[("charger", "charge", 4)]).await;
    let events: Vec<EventDraft> = (0..16)
        .map(|lane| EventDraft { key: Some(format!("lane-{lane}")), ..EventDraft::default() })
        .collect();
    charger.client().append("orders", &events).await.unwrap();
    let ran = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default().lines().count();
    seam::until("all runs of charge", || std::future::ready((ran("charge.txt") == 16).then_some(()))).await;
    owned(&charger, &[("charger", "charge", 4)]).await;
    assert_eq!(ran("mail.txt"), 0);
    let lane = charger.client().lane("orders", b"lane-0").await.unwrap();
    let mail = lane.processors.iter().find(|processor| processor.processor == "mail").unwrap();
    assert_eq!(mail.why.code, "no_owner", "its node is dead and no other may run it: {mail:?}");
    let mailer = node(folder, &redis, "mailer", &["--processor", "mail", "--tag", "green"]).await;
    owned(&mailer, &[("charger", "charge", 4), ("mailer", "mail", 4)]).await;
    seam::until("all runs of mail", || std::future::ready((ran("mail.txt") == 16).then_some(()))).await;
    assert_eq!(ran("charge.txt"), 16, "it ran once");
}

#[test]
fn a_role_apart_needs_a_store_that_several_processes_share() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("laneway.toml"), FILE).unwrap();
    let told = |args: &[&str]| {
        let output = run(folder.path(), &[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (role, store) in [("api", "file:./data"), ("engine", "file:./data"), ("engine", "memory:")] {
        let (code, words) = told(&["--role", role, "--store", store]);
        assert_eq!(code, Some(2), "{words}");
        assert!(
            words.contains(&format!("node.role \"{role}\": a file: or memory: store is for one process")),
            "{words}"
        );
    }
    let (code, words) = told(&["--role", "egine"]);
    assert!(code == Some(2) && words.contains("did you mean \"engine\"?"), "{words}");
    // A choice that is misspelt would leave the processor alone without a word.
    let (code, words) = told(&["--processor", "chrge"]);
    assert!(code == Some(1) && words.contains("did you mean \"charge\"?"), "{words}");
}
