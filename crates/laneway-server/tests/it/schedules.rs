//! Schedules over HTTP, and what the cluster says of itself.

use http::Method;
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use laneway_client::wire::{ClaimRequest, ScheduleSettings};
use laneway_client::{Answer, Client};
use serde_json::{Value, json};

use crate::program::Program;

async fn ready(program: &Program) -> Client {
    let client = program.client();
    client.put_stream("reports", &serde_json::from_str(r#"{"partitions":3}"#).unwrap()).await.unwrap();
    let settings = r#"{"stream":"reports","pull":true}"#;
    client.put_processor("make", &serde_json::from_str(settings).unwrap()).await.unwrap();
    client
}

fn settings(json: Value) -> ScheduleSettings {
    serde_json::from_value(json).unwrap()
}

async fn put(client: &Client, path: &str, headers: &[(http::HeaderName, &str)], body: &Value) -> Answer {
    client.send(Method::PUT, path, headers, Some(body.to_string().into_bytes())).await.unwrap()
}

fn code(answer: &Answer) -> (u16, Value) {
    let told: Value = serde_json::from_slice(&answer.body).unwrap();
    (answer.status.as_u16(), told["code"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_made_shown_fired_changed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let nightly =
        settings(json!({"stream":"reports","cron":"30 2 * * *","zone":"Europe/Berlin","overlap":"skip",
        "processor":"make","type":"nightly","data":{"depth":3}}));
    let made = client.put_schedule("nightly", &nightly).await.unwrap();
    assert_eq!((made.name.as_str(), made.next.len(), made.last_due_at), ("nightly", 3, None));
    assert!(
        made.next.iter().all(|next| next.ends_with(":30:00Z")) && made.next.is_sorted(),
        "{:?}",
        made.next
    );
    let told = client.schedule("nightly").await.unwrap().settings;
    assert_eq!((told.zone.as_deref(), told.data.unwrap().get()), (Some("Europe/Berlin"), r#"{"depth":3}"#));

    let run = client.send(Method::POST, "/v1/schedules/nightly/run", &[], None).await.unwrap();
    let told: Value = serde_json::from_slice(&run.body).unwrap();
    let job = told["job"].as_str().unwrap();
    assert_eq!((run.status.as_u16(), run.location()), (202, Some(&*format!("/v1/jobs/{job}"))));
    let job = client.job(job, None).await.unwrap();
    assert_eq!((job.reference.as_deref(), job.kind.as_deref()), (told["ref"].as_str(), Some("nightly")));
    assert_eq!((job.key.as_deref(), job.processor.as_deref()), (Some("nightly"), Some("make")));

    let paused = client.put_schedule("nightly", &ScheduleSettings { paused: true, ..nightly }).await.unwrap();
    assert!(paused.settings.paused && paused.next.is_empty(), "nothing is due while it is paused");
    let names: Vec<String> =
        client.schedules().await.unwrap().into_iter().map(|schedule| schedule.name).collect();
    assert_eq!(names, ["nightly"]);
    client.delete_schedule("nightly").await.unwrap();
    assert_eq!(client.schedule("nightly").await.unwrap_err().code(), Some("schedule_not_found"));
    assert_eq!(client.delete_schedule("nightly").await.unwrap_err().code(), Some("schedule_not_found"));
    program.stop().await;
}

/// A schedule fires by itself, and says when it did.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_fires_when_it_is_due() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let tick = settings(json!({"stream":"reports","every":"1s","key":"beat","data":7}));
    client.put_schedule("tick", &tick).await.unwrap();
    let wish: ClaimRequest = serde_json::from_str(r#"{"wait":"20s"}"#).unwrap();
    let claims = client.claim("make", &wish).await.unwrap().claims;
    assert_eq!((claims[0].key.as_deref(), claims[0].events[0].seq), (Some("beat"), Some(1)));
    let fired = crate::seam::until("the note of the firing", || async {
        client.schedule("tick").await.unwrap().last_due_at
    })
    .await;
    assert!(fired.ends_with('Z'), "{fired}");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_and_processors_change_only_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let tick = json!({"stream":"reports","every":"10m"});
    let make = json!({"stream":"reports","pull":true});
    let faster = json!({"stream":"reports","every":"5m"});
    let wider = json!({"stream":"reports","pull":true,"concurrency":7,"rate":50});
    for (path, body, change) in [("/v1/schedules/tick", tick, faster), ("/v1/processors/other", make, wider)]
    {
        let made = put(&client, path, &[(IF_NONE_MATCH, "*")], &body).await;
        assert_eq!(made.status, 201, "{path}");
        let again = put(&client, path, &[(IF_NONE_MATCH, "*")], &body).await;
        assert_eq!(code(&again), (412, json!("precondition_failed")), "{path}");
        let etag = made.headers[ETAG].to_str().unwrap().to_owned();
        let changed = put(&client, path, &[(IF_MATCH, &etag)], &change).await;
        assert_eq!(changed.status, 200, "{path}");
        let seen = client.send(Method::GET, path, &[], None).await.unwrap();
        assert_eq!(seen.headers[ETAG], changed.headers[ETAG], "{path}");
        assert_ne!(changed.headers[ETAG], etag.as_str(), "{path}");
        let late = put(&client, path, &[(IF_MATCH, &etag)], &body).await;
        assert_eq!(code(&late), (412, json!("precondition_failed")), "{path}");
        let kept = client.send(Method::DELETE, path, &[(IF_MATCH, &etag)], None).await.unwrap();
        assert_eq!(code(&kept), (412, json!("precondition_failed")), "{path}");
        assert_eq!(client.send(Method::DELETE, path, &[(IF_MATCH, "*")], None).await.unwrap().status, 204);
    }
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_that_could_never_fire_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    for (body, code, says) in [
        (json!({"every":"1m"}), "invalid_value", "stream is absent"),
        (json!({"stream":"nope","every":"1m"}), "stream_not_found", "nope"),
        (json!({"stream":"_laneway","every":"1m"}), "invalid_value", "_laneway"),
        (json!({"stream":"reports"}), "invalid_value", "cron is absent"),
        (json!({"stream":"reports","cron":"never"}), "invalid_value", "never"),
        (json!({"stream":"reports","every":"1m","processor":"nobody"}), "processor_not_found", "nobody"),
        (json!({"stream":"reports","evry":"1m"}), "unknown_field", "did you mean \"every\"?"),
    ] {
        let refused = put(&client, "/v1/schedules/tick", &[], &body).await;
        let told: Value = serde_json::from_slice(&refused.body).unwrap();
        assert!(told["code"] == code && told["detail"].as_str().unwrap().contains(says), "{body}: {told}");
    }
    program.stop().await;
}

/// What is told of the cluster is what is true of this one process.
#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_is_this_node_with_its_seats() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program).await;
    let leases = crate::seam::until("all seats", || async {
        Some(client.leases().await.unwrap()).filter(|leases| leases.len() == 3)
    })
    .await;
    let nodes = client.nodes().await.unwrap();
    assert_eq!((nodes.len(), nodes[0].seats, &nodes[0].roles[..]), (1, 3, &["all".to_owned()][..]));
    assert_eq!((&nodes[0].processors[..], nodes[0].stopping), (&["make".to_owned()][..], false));
    let partitions: Vec<u32> = leases.iter().map(|lease| lease.partition).collect();
    assert_eq!(partitions, [0, 1, 2]);
    for lease in &leases {
        assert_eq!((lease.stream.as_str(), lease.processor.as_str()), ("reports", "make"));
        assert!(lease.node == nodes[0].node && lease.term > 0, "{lease:?}");
    }
    assert!(client.tasks().await.unwrap().is_empty());
    program.stop().await;

    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let again = crate::seam::until("all seats", || async {
        Some(client.leases().await.unwrap()).filter(|leases| leases.len() == 3)
    })
    .await;
    assert!(again.iter().zip(&leases).all(|(now, before)| now.term > before.term), "{again:?}");
    assert_ne!(client.nodes().await.unwrap()[0].node, nodes[0].node, "a new token at every start");
    program.stop().await;
}
