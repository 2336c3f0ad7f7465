//! What a process does of all there is to do.

use laneway_client::wire::{ClaimRequest, EventDraft, ProcessorSettings};

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
