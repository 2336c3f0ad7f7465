//! `laneway serve`: its start, its end, and what it keeps.

use laneway_client::wire::{ClaimRequest, EventDraft, ProcessorSettings, Settle, StreamSettings};
use rustix::process::Signal;

use crate::program::{Program, is_alive};
use crate::seam;

async fn with_work(program: &Program) -> laneway_client::Client {
    let client = program.client();
    client
        .put_stream("orders", &StreamSettings { partitions: Some(2), ..StreamSettings::default() })
        .await
        .unwrap();
    let settings = ProcessorSettings {
        stream: "orders".to_owned(),
        pull: true,
        concurrency: Some(3),
        ..ProcessorSettings::default()
    };
    client.put_processor("charge", &settings).await.unwrap();
    let event = |key: &str| EventDraft { key: Some(key.to_owned()), ..EventDraft::default() };
    client.append("orders", &[event("a"), event("a"), event("b")]).await.unwrap();
    client
}

fn claim_one() -> ClaimRequest {
    ClaimRequest { wait: Some("20s".to_owned()), ..ClaimRequest::default() }
}

fn done(claim: &str) -> Settle {
    let settlement = serde_json::json!({"settlements": [{"claim": claim, "outcome": "done"}]});
    serde_json::from_value(settlement).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ready_line_is_all_that_stdout_ever_has() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let ready = format!("ready {}", program.address());
    with_work(&program).await;
    assert_eq!(program.stop().await, [ready]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_processor_survives_a_restart_with_its_settings_and_progress() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = with_work(&program).await;
    let before = client.processor("charge").await.unwrap();
    let claim = client.claim("charge", &claim_one()).await.unwrap().claims.remove(0);
    let settled = client.settle("charge", &done(&claim.claim)).await.unwrap();
    assert!(settled.settlements[0].accepted);
    program.stop().await;

    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let after = client.processor("charge").await.unwrap();
    assert_eq!(serde_json::to_value(after).unwrap(), serde_json::to_value(before).unwrap());
    let mut rest = Vec::new();
    while rest.len() < 2 {
        let claim = client.claim("charge", &claim_one()).await.unwrap().claims.remove(0);
        assert!(client.settle("charge", &done(&claim.claim)).await.unwrap().settlements[0].accepted);
        rest.push(claim.events[0].reference.clone());
    }
    assert!(!rest.contains(&claim.events[0].reference), "what was settled does not run again");
    program.stop().await;
}

/// The owner of a partition that goes hands open claims over: the next one is the same server after its restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_settles_what_it_has_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = with_work(&program).await;
    let claim = client.claim("charge", &claim_one()).await.unwrap().claims.remove(0);
    program.stop().await;

    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let settled = client.settle("charge", &done(&claim.claim)).await.unwrap();
    assert!(settled.settlements[0].accepted, "{settled:?}");
    let rest = client.claim("charge", &claim_one()).await.unwrap().claims.remove(0);
    assert_ne!(rest.events[0].reference, claim.events[0].reference, "what was settled does not run again");
    program.stop().await;
}

/// A worker that answers while its server ends is told at once, and what it said is not lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_that_meets_a_signal_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::serve(folder.path()).await;
    let client = with_work(&program).await;
    let claim = client.claim("charge", &claim_one()).await.unwrap().claims.remove(0);
    program.signal(Signal::TERM);
    // It meets the server before, while, or after it hands the claim over.
    let mut counts = false;
    if let Ok(met) = client.settle("charge", &done(&claim.claim)).await {
        let met = &met.settlements[0];
        counts = met.accepted;
        assert!(counts || met.code.as_deref() == Some("claim_undecided"), "{met:?}");
    }
    assert!(program.ended().await.success());
    assert!(!program.errors().contains("connections were cut"), "{}", program.errors());

    let program = Program::serve(folder.path()).await;
    if !counts {
        let settled = program.client().settle("charge", &done(&claim.claim)).await.unwrap();
        assert!(settled.settlements[0].accepted, "{settled:?}");
    }
    let event = &claim.events[0];
    let place: Vec<u64> = event.reference.split('/').skip(1).map(|part| part.parse().unwrap()).collect();
    let partition = u32::try_from(place[0]).unwrap();
    let event = program.client().event("orders", partition, place[1]).await.unwrap();
    assert_eq!(event.processors[0].status, "done");
    program.stop().await;
}

/// A handler that holds up the end, until the second signal.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_does_not_wait_and_leaves_no_handler_behind() {
    let folder = tempfile::tempdir().unwrap();
    let handler = "echo $$ > pid; mkfifo go; : < go";
    let mut program = Program::dev(folder.path(), &["--", "sh", "-c", handler]).await;
    let client = program.client();
    let event = EventDraft { key: Some("a".to_owned()), ..EventDraft::default() };
    client.append("orders", &[event]).await.unwrap();
    program.line("a #1  start").await;
    let pid = seam::until("the handler's process", || async {
        std::fs::read_to_string(folder.path().join("pid")).ok().filter(|pid| pid.ends_with('\n'))
    })
    .await;
    program.signal(Signal::INT);
    seam::until("the server's wish to end", || async {
        let answer = client.send(http::Method::GET, "/readyz", &[], None).await.unwrap();
        (answer.status == 503).then_some(())
    })
    .await;
    let claims = client.claim("charge", &ClaimRequest::default()).await;
    assert_eq!(claims.unwrap_err().code(), Some("processor_not_found"), "calls are still answered");
    program.signal(Signal::INT);
    assert_eq!(program.ended().await.code(), Some(130));
    seam::until("the end of the handler", || std::future::ready((!is_alive(&pid)).then_some(()))).await;
}

#[test]
fn who_signs_in_to_a_store_is_told_to_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let url = "postgres://user:canary-of-the-store@127.0.0.1:1/laneway?password=canary-of-the-store";
    for format in ["text", "json"] {
        let output = crate::program::run(folder.path(), &["serve", "--store", url, "--log-format", format]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("postgres"), "{told}");
        assert!(!told.contains("canary"), "{told}");
    }
}
