//! Remote workers: claim, settle, extend, and go silent.

use laneway_client::wire::{Claim, ClaimRequest, EventDraft, Extend, JobDraft, Settle, SettleAnswer, json};
use laneway_client::{Client, ClientError};

use crate::program::Program;
use crate::seam;

async fn ready(program: &Program) -> Client {
    let client = program.client();
    client.put_stream("orders", &serde_json::from_str(r#"{"partitions":4}"#).unwrap()).await.unwrap();
    client.put_stream("bills", &serde_json::from_str(r#"{"partitions":1}"#).unwrap()).await.unwrap();
    let settings = r#"{"stream":"orders","pull":true,"retry":{"backoff":"10ms"}}"#;
    client.put_processor("charge", &serde_json::from_str(settings).unwrap()).await.unwrap();
    client
}

fn event(key: &str, number: u32) -> EventDraft {
    EventDraft { key: Some(key.to_owned()), data: Some(json(&number).unwrap()), ..EventDraft::default() }
}

async fn claim(client: &Client, wish: &str) -> Claim {
    let wish: ClaimRequest = serde_json::from_str(wish).unwrap();
    let mut claims = client.claim("charge", &wish).await.unwrap().claims;
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims.remove(0)
}

async fn settle(client: &Client, claim: &Claim, rest: &str) -> SettleAnswer {
    let settle = format!(r#"{{"settlements":[{{"claim":"{}",{rest}}}]}}"#, claim.claim);
    let settle: Settle = serde_json::from_str(&settle).unwrap();
    client.settle("charge", &settle).await.unwrap().settlements.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_settles_with_result_state_and_emits() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let job = JobDraft { key: Some("ann".to_owned()), data: Some(json(&1).unwrap()), ..JobDraft::default() };
    let laneway_client::Submission::Accepted(receipt) =
        client.submit("orders", &job, None, None).await.unwrap()
    else {
        panic!("nobody works yet");
    };
    let first = claim(&client, r#"{"wait":"20s","worker":"w1"}"#).await;
    assert_eq!((first.key.as_deref(), first.attempt, first.state.is_none()), (Some("ann"), 1, true));
    assert_eq!(first.events[0].job.as_deref(), Some(receipt.id.as_str()));
    let rest = r#""outcome":"done","result":{"ok":true},"state":{"n":1},"emit":[{"stream":"bills","key":"ann","data":9}]"#;
    assert!(settle(&client, &first, rest).await.accepted);

    let job = client.job(&receipt.id, Some(std::time::Duration::from_secs(20))).await.unwrap();
    assert_eq!((job.status.as_str(), job.result.unwrap().get()), ("done", r#"{"ok":true}"#));
    client.append("orders", &[event("ann", 2)]).await.unwrap();
    let second = claim(&client, r#"{"wait":"20s"}"#).await;
    assert_eq!(second.state.as_ref().unwrap().get(), r#"{"n":1}"#);
    assert!(first.fence < second.fence);
    let bill = seam::until("the emitted event", || async {
        client.events("bills", 0, 0, 10).await.unwrap().events.pop()
    })
    .await;
    assert_eq!((bill.key.as_deref(), bill.data.unwrap().get()), (Some("ann"), "9"));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_told_generations_and_what_was_done_last() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    client.put_stream("pods", &serde_json::from_str(r#"{"mode":"latest"}"#).unwrap()).await.unwrap();
    let settings = r#"{"stream":"pods","pull":true,"keep_last":true}"#;
    client.put_processor("charge", &serde_json::from_str(settings).unwrap()).await.unwrap();
    let shown = client.processor("charge").await.unwrap().settings;
    assert!(shown.expect("it is shown").keep_last);
    let newer = |generation, delete| EventDraft { generation: Some(generation), delete, ..event("web", 7) };

    client.append("pods", &[newer(4, false)]).await.unwrap();
    let first = claim(&client, r#"{"wait":"20s"}"#).await;
    let [event] = &first.events[..] else { panic!("{first:?}") };
    assert_eq!((event.generation, event.incarnation, event.delete), (Some(4), Some(0), false));
    assert!(first.last_done.is_none(), "{first:?}");
    assert!(settle(&client, &first, r#""outcome":"done""#).await.accepted);

    client.append("pods", &[newer(5, true)]).await.unwrap();
    let second = claim(&client, r#"{"wait":"20s"}"#).await;
    assert!(second.events[0].delete, "{second:?}");
    let last = second.last_done.expect("the first is done");
    assert_eq!((last.id, last.generation, last.incarnation), (first.events[0].id, 4, 0));
    assert_eq!(last.data.unwrap().get(), "7");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_worker_loses_its_lane_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    client.append("orders", &[event("ann", 1)]).await.unwrap();
    let silent = claim(&client, r#"{"wait":"20s","lease":"200ms","worker":"sleepy"}"#).await;
    // The next claim waits until the lease has ended.
    let next = claim(&client, r#"{"wait":"20s"}"#).await;
    assert_eq!((next.events[0].id, next.attempt), (silent.events[0].id, 2));
    assert!(next.fence > silent.fence);
    let late = settle(&client, &silent, r#""outcome":"done""#).await;
    assert_eq!((late.accepted, late.code.as_deref()), (false, Some("claim_lost")));
    assert!(settle(&client, &next, r#""outcome":"done""#).await.accepted);
    let told = || std::future::ready(program.errors().contains("a worker settled too late").then_some(()));
    seam::until("a word about the late worker in the log", told).await;
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extended_claim_outlives_its_first_lease() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    client.append("orders", &[event("ann", 1), event("bob", 1)]).await.unwrap();
    let wish = r#"{"wait":"20s","lease":"300ms"}"#;
    let (kept, silent) = (claim(&client, wish).await, claim(&client, wish).await);
    let extend = Extend { claims: vec![kept.claim.clone(), "other".to_owned()], lease: "30s".to_owned() };
    let extended = client.extend("charge", &extend).await.unwrap().claims;
    assert!(extended[0].accepted && extended[0].expires_at.as_ref() > Some(&kept.expires_at));
    assert_eq!((extended[1].accepted, extended[1].code.as_deref()), (false, Some("invalid_value")));
    // Both leases were equally long; when the silent one has ended, the first of the other has ended too.
    let next = claim(&client, r#"{"wait":"20s"}"#).await;
    assert_eq!(next.key, silent.key);
    assert!(settle(&client, &kept, r#""outcome":"done""#).await.accepted);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_may_be_done_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let events: Vec<EventDraft> = (1..=3).map(|number| event("ann", number)).collect();
    client.append("orders", &events).await.unwrap();
    let batch = claim(&client, r#"{"wait":"20s","max_events":10}"#).await;
    let ids: Vec<u64> = batch.events.iter().map(|event| event.id).collect();
    assert_eq!(ids, [1, 2, 3]);
    let refused = settle(&client, &batch, r#""outcome":"done","through":9"#).await;
    assert_eq!((refused.accepted, refused.code.as_deref()), (false, Some("invalid_value")));
    assert!(
        settle(&client, &batch, r#""outcome":"retry","through":2,"error":"boom","retry_after":"10ms""#)
            .await
            .accepted
    );
    let rest = claim(&client, r#"{"wait":"20s","max_events":10}"#).await;
    assert_eq!((rest.events.len(), rest.events[0].id, rest.attempt), (1, 3, 2));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_do_is_an_empty_answer() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    assert!(client.claim("charge", &ClaimRequest::default()).await.unwrap().claims.is_empty());
    program.stop().await;
}

/// The code that the server answers with.
fn code<A: std::fmt::Debug>(answer: Result<A, ClientError>) -> String {
    match answer.unwrap_err() {
        ClientError::Problem(problem) => problem.code,
        other => panic!("{other}"),
    }
}

/// Whoever waits for a claim is told at once that there will be none, and whoever has one when it speaks next.
#[tokio::test(flavor = "multi_thread")]
async fn workers_of_a_removed_processor_are_told() {
    for stream_too in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::serve(folder.path()).await;
        let client = ready(&program).await;
        client.append("orders", &[event("ann", 1)]).await.unwrap();
        let held = claim(&client, r#"{"wait":"20s","lease":"60s"}"#).await;
        let asking = client.clone();
        let waits = seam::spawn(async move {
            asking.claim("charge", &serde_json::from_str(r#"{"wait":"60s"}"#).unwrap()).await
        });
        // It most likely waits by then; if not, it must be told all the same.
        for _ in 0..3 {
            client.processor("charge").await.unwrap();
        }
        if stream_too {
            client.delete_stream("orders").await.unwrap();
        } else {
            client.delete_processor("charge").await.unwrap();
        }
        assert_eq!(code(waits.await.unwrap()), "processor_not_found");
        let settle = format!(r#"{{"settlements":[{{"claim":"{}","outcome":"done"}}]}}"#, held.claim);
        let settle: Settle = serde_json::from_str(&settle).unwrap();
        assert_eq!(code(client.settle("charge", &settle).await), "processor_not_found");
        let extend = Extend { claims: vec![held.claim], lease: "30s".to_owned() };
        assert_eq!(code(client.extend("charge", &extend).await), "processor_not_found");
        program.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_waits_is_served_after_its_processor_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let asking = client.clone();
    let waits = seam::spawn(async move { claim(&asking, r#"{"wait":"60s"}"#).await });
    let settings = r#"{"stream":"orders","pull":true,"concurrency":7}"#;
    client.put_processor("charge", &serde_json::from_str(settings).unwrap()).await.unwrap();
    client.append("orders", &[event("ann", 1)]).await.unwrap();
    let claim = waits.await.unwrap();
    assert!(settle(&client, &claim, r#""outcome":"done""#).await.accepted);
    program.stop().await;
}

/// A worker that looks now and then, and never waits, gets work too.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_does_not_wait_gets_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    for number in 1..=3 {
        client.append("orders", &[event("ann", number)]).await.unwrap();
        let claim = claim(&client, "{}").await;
        assert_eq!(claim.events[0].data.as_ref().unwrap().get(), number.to_string());
        assert!(settle(&client, &claim, r#""outcome":"done""#).await.accepted);
    }
    program.stop().await;
}

/// What cannot be carried out is refused while the worker can still mend it.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_that_cannot_count_is_refused_and_its_claim_stays_open() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    client.append("orders", &[event("ann", 1)]).await.unwrap();
    let claimed = claim(&client, r#"{"wait":"20s"}"#).await;
    let long = "x".repeat((16 << 20) + 1);
    for (rest, code, says) in [
        (r#""emit":[{"stream":"nope","data":1}]"#.to_owned(), "stream_not_found", "nope"),
        (
            r#""emit":[{"stream":"_laneway","data":1}]"#.to_owned(),
            "invalid_value",
            "emit.stream is \"_laneway\"",
        ),
        (format!(r#""state":"{}""#, "x".repeat(1 << 20)), "invalid_value", "state bytes"),
        (format!(r#""result":"{long}""#), "invalid_value", "result bytes"),
    ] {
        let refused = settle(&client, &claimed, &format!(r#""outcome":"done",{rest}"#)).await;
        assert_eq!((refused.accepted, refused.code.as_deref()), (false, Some(code)), "{:?}", refused.detail);
        assert!(refused.detail.as_ref().unwrap().contains(says), "{:?}", refused.detail);
    }
    assert!(settle(&client, &claimed, r#""outcome":"done""#).await.accepted);
    let again = settle(&client, &claimed, r#""outcome":"fail""#).await;
    let outcome = laneway_client::wire::Settled { done: 1, failed: false };
    assert_eq!(
        (again.accepted, again.already, again.outcome),
        (true, true, Some(outcome)),
        "what was said first"
    );
    program.stop().await;
}

/// A result may be as large as any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_may_be_larger_than_other_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let job = JobDraft { key: Some("ann".to_owned()), ..JobDraft::default() };
    let laneway_client::Submission::Accepted(receipt) =
        client.submit("orders", &job, None, None).await.unwrap()
    else {
        panic!("nobody works yet");
    };
    let claimed = claim(&client, r#"{"wait":"20s"}"#).await;
    let large = format!("\"{}\"", "x".repeat(3 << 20));
    assert!(settle(&client, &claimed, &format!(r#""outcome":"done","result":{large}"#)).await.accepted);
    assert_eq!(client.job(&receipt.id, None).await.unwrap().result.unwrap().get(), large);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_settled_only_where_it_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let other = r#"{"stream":"bills","pull":true}"#;
    client.put_processor("other", &serde_json::from_str(other).unwrap()).await.unwrap();
    client.append("orders", &[event("ann", 1)]).await.unwrap();
    let claimed = claim(&client, r#"{"wait":"20s"}"#).await;
    let body = format!(r#"{{"settlements":[{{"claim":"{}","outcome":"done"}}]}}"#, claimed.claim);
    let refused = client.settle("other", &serde_json::from_str(&body).unwrap()).await.unwrap();
    let told = &refused.settlements[0];
    assert_eq!((told.accepted, told.code.as_deref()), (false, Some("invalid_value")));
    assert!(told.detail.as_ref().unwrap().contains("a claim of processor \"other\""), "{told:?}");
    let extend = Extend { claims: vec![claimed.claim.clone()], lease: "30s".to_owned() };
    assert!(!client.extend("other", &extend).await.unwrap().claims[0].accepted);
    assert!(settle(&client, &claimed, r#""outcome":"done""#).await.accepted);
    program.stop().await;
}

/// However often it asks for more time: the processor says how long one attempt may take.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_no_longer_than_the_processor_allows() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let settings = r#"{"stream":"orders","pull":true,"timeout":"1s","retry":{"backoff":"10ms"}}"#;
    client.put_processor("charge", &serde_json::from_str(settings).unwrap()).await.unwrap();
    client.append("orders", &[event("ann", 1)]).await.unwrap();
    let first = claim(&client, r#"{"wait":"20s","lease":"5m","worker":"slow"}"#).await;
    let second = claim(&client, r#"{"wait":"20s","worker":"brisk"}"#).await;
    assert_eq!((&second.key, second.attempt), (&first.key, 2));
    assert!(first.fence < second.fence);
    let late = settle(&client, &first, r#""outcome":"done""#).await;
    assert_eq!((late.accepted, late.code.as_deref()), (false, Some("claim_lost")));
    assert!(settle(&client, &second, r#""outcome":"done""#).await.accepted);
    program.stop().await;
}
