//! `laneway serve`: its start, its end, and what it keeps.

use laneway_client::wire::{
    ClaimRequest, EventDraft, Outcome, ProcessorSettings, Settle, Settlement, StreamSettings,
};
use rustix::process::Signal;

use crate::program::Program;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_lets_a_worker_settle_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::serve(folder.path()).await;
    let client = with_work(&program).await;
    let claim = client.claim("charge", &claim_one()).await.unwrap().claims.remove(0);
    program.signal(Signal::TERM);
    until_stopping(&client).await;
    // Whoever waits is answered, whoever comes gets nothing new, and what was handed out still counts.
    assert!(
        client.claim("charge", &ClaimRequest::default()).await.is_ok_and(|claims| claims.claims.is_empty())
    );
    let settlement = Settlement { outcome: Outcome::Done, ..done(&claim.claim).settlements.remove(0) };
    let settled = client.settle("charge", &Settle { settlements: vec![settlement] }).await.unwrap();
    assert!(settled.settlements[0].accepted, "{settled:?}");
    assert!(program.ended().await.success());
}

async fn until_stopping(client: &laneway_client::Client) {
    seam::until("the server's wish to end", || async {
        let answer = client.send(http::Method::GET, "/readyz", &[], None).await.unwrap();
        (answer.status == 503).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_does_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::serve(folder.path()).await;
    let client = with_work(&program).await;
    client.claim("charge", &claim_one()).await.unwrap();
    program.signal(Signal::INT);
    until_stopping(&client).await;
    program.signal(Signal::INT);
    assert_eq!(program.ended().await.code(), Some(130));
}
