//! Streams, events, lanes and jobs over HTTP.

use std::time::Duration;

use http::Method;
use http::header::HeaderName;
use laneway_client::{Answer, Client, Submission};
use serde_json::{Value, json};

use crate::program::Program;
use crate::seam;

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    client.send(Method::POST, path, &[], Some(serde_json::to_vec(body).unwrap())).await.unwrap()
}

fn value(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

async fn put(client: &Client, path: &str, body: &Value) -> Answer {
    client.send(Method::PUT, path, &[], Some(serde_json::to_vec(body).unwrap())).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_made_changed_shown_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let path = "/v1/streams/orders";
    let made =
        put(&client, path, &json!({"partitions":2,"keep":"1d","keep_done":"3h","max_pending":10})).await;
    assert_eq!((made.status.as_u16(), &value(&made)["keep"]), (201, &json!("1d")));
    assert_eq!(value(&made)["keep_done"], json!("3h"));
    let never = put(&client, path, &json!({"keep_done":"0s"})).await;
    assert_eq!(never.status.as_u16(), 400);
    assert!(value(&never)["detail"].to_string().contains("keep_done is 0"), "{:?}", value(&never));
    let same = put(&client, path, &json!({"keep":"2h"})).await;
    assert_eq!(
        (same.status.as_u16(), &value(&same)["partitions"], &value(&same)["keep"]),
        (200, &json!(2), &json!("2h"))
    );
    assert_eq!(value(&same)["keep_done"], json!("1d"), "what is left out has its default");
    assert_eq!(value(&same).get("max_pending"), None, "what is left out has its default");
    client.append("orders", &[serde_json::from_value(json!({"key":"a"})).unwrap()]).await.unwrap();
    let shown = client.stream("orders").await.unwrap();
    assert_eq!(shown.heads.iter().map(|head| head.head).sum::<u64>(), 1);
    let names: Vec<String> = client.streams().await.unwrap().into_iter().map(|stream| stream.name).collect();
    assert!(names.contains(&"orders".to_owned()), "{names:?}");
    client.delete_stream("orders").await.unwrap();
    assert_eq!(client.stream("orders").await.unwrap_err().code(), Some("stream_not_found"));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_comes_back_byte_for_byte_with_its_place_and_status() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    put(&client, "/v1/streams/orders", &json!({"partitions":1})).await;
    put(&client, "/v1/processors/charge", &json!({"stream":"orders","pull":true})).await;
    let odd = r#"{"b" : 1.0,"a":[ 1e3, "\u00e4" ],"b2":12345678901234567890}"#;
    let body =
        format!(r#"{{"key":"ann","type":"order.paid","data":{odd},"headers":{{"trace":"7"}},"priority":2}}"#);
    let sent =
        client.send(Method::POST, "/v1/streams/orders/events", &[], Some(body.into_bytes())).await.unwrap();
    assert_eq!(sent.status, 201);
    let event = client.event("orders", 0, 1).await.unwrap();
    assert_eq!(event.data.as_ref().unwrap().get(), odd);
    assert_eq!((event.reference.as_str(), event.seq, event.prev), ("orders/0/1", Some(1), None));
    assert_eq!((event.kind.as_deref(), event.headers["trace"].as_str()), (Some("order.paid"), "7"));
    assert_eq!((event.priority, event.processors[0].status.as_str()), (Some(2), "waiting"));
    let many: Vec<_> = (0..5).map(|_| serde_json::from_value(json!({"key":"ann"})).unwrap()).collect();
    client.append("orders", &many).await.unwrap();
    let page = client.events("orders", 0, 1, 2).await.unwrap();
    let ids: Vec<_> = page.events.iter().map(|event| (event.id, event.prev)).collect();
    assert_eq!((ids, page.head, page.next), (vec![(2, Some(1)), (3, Some(2))], 6, Some(3)));
    assert_eq!(client.events("orders", 0, 5, 10).await.unwrap().next, None);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_say_new_duplicate_scheduled_stale_and_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    put(&client, "/v1/streams/orders", &json!({"partitions":8})).await;
    put(&client, "/v1/streams/pods", &json!({"partitions":1,"mode":"latest"})).await;
    let path = "/v1/streams/orders/events";
    let once = json!({"key":"ann","data":1,"dedup_id":"d"});
    let first = value(&post(&client, path, &once).await);
    let again = post(&client, path, &once).await;
    assert_eq!((again.status.as_u16(), &value(&again)["events"][0]["append"]), (201, &json!("duplicate")));
    assert_eq!(value(&again)["events"][0]["ref"], first["events"][0]["ref"]);
    let later = value(&post(&client, path, &json!({"key":"ann","delay":"1h"})).await);
    assert_eq!(later["events"][0]["append"], "scheduled");
    assert!(later["events"][0]["timer"].is_u64() && later["events"][0]["due_at"].is_string(), "{later}");

    // Of two partitions one refuses: the other's event stands.
    let some = post(&client, path, &json!([{"key":"ann","expect_prev":77},{"key":"bob"}])).await;
    let told = value(&some);
    assert_eq!((some.status.as_u16(), &told["events"][0]["append"]), (207, &json!("conflict")));
    assert_eq!(told["events"][0]["problem"]["code"], "prev_conflict");
    assert_eq!(told["events"][1]["append"], "new");
    let none = post(&client, path, &json!([{"key":"ann","expect_prev":77}])).await;
    assert_eq!((none.status.as_u16(), &value(&none)["code"]), (409, &json!("prev_conflict")));
    assert_eq!(value(&none)["events"][0]["append"], "conflict");

    let pods = "/v1/streams/pods/events";
    post(&client, pods, &json!({"key":"web","generation":7})).await;
    let stale = value(&post(&client, pods, &json!({"key":"web","generation":5})).await);
    assert_eq!(
        (&stale["events"][0]["append"], &stale["events"][0]["newest_generation"]),
        (&json!("stale"), &json!(7))
    );

    let object = post(&client, path, &json!({"key":"c","object":{"o":1},"expect_object_version":0})).await;
    assert_eq!(value(&object)["object_version"], 1);
    assert_eq!(client.lane("orders", b"c").await.unwrap().object.unwrap().get(), r#"{"o":1}"#);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_paused_resumed_and_retried() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let client = program.client();
    let lane = serde_json::from_value(json!({"key":"ann"})).unwrap();
    assert!(client.pause_lane("orders", &lane).await.unwrap().applied);
    post(&client, "/v1/streams/orders/events", &json!({"key":"ann"})).await;
    let paused = client.lane("orders", b"ann").await.unwrap();
    assert_eq!((paused.processors[0].status.as_str(), paused.pending), ("paused", 1));
    assert_eq!(paused.processors[0].why.code, "lane_paused");
    assert!(client.resume_lane("orders", &lane).await.unwrap().applied);
    program.line("ann #1  done").await;

    post(&client, "/v1/streams/orders/events", &json!({"key":"bad"})).await;
    program.line("bad #1  parked").await;
    let bad = serde_json::from_value(json!({"key":"bad","processor":"demo"})).unwrap();
    assert!(client.retry_lane("orders", &bad).await.unwrap().applied);
    seam::until("the retry of a parked head", || async {
        let starts = program.lines().iter().filter(|line| line.contains("bad #1  start")).count();
        (starts > 3).then_some(())
    })
    .await;
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_accepted_waited_for_and_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    put(&client, "/v1/streams/orders", &json!({"partitions":1})).await;
    put(&client, "/v1/processors/charge", &json!({"stream":"orders","pull":true})).await;
    let accepted = post(&client, "/v1/streams/orders/jobs", &json!({"key":"a","type":"t","data":1})).await;
    let id = value(&accepted)["id"].as_str().unwrap().to_owned();
    assert_eq!((accepted.status.as_u16(), accepted.location()), (202, Some(&*format!("/v1/jobs/{id}"))));
    assert_eq!(
        (&value(&accepted)["status"], &value(&accepted)["ref"]),
        (&json!("waiting"), &json!("orders/0/1"))
    );
    let job = client.job(&id, None).await.unwrap();
    assert_eq!(
        (job.stream.as_str(), job.key.as_deref(), job.kind.as_deref()),
        ("orders", Some("a"), Some("t"))
    );
    assert_eq!((job.processor.as_deref(), job.status.as_str()), (Some("charge"), "waiting"));
    assert!(job.why.is_some());

    let prefer = [(HeaderName::from_static("prefer"), "wait=1")];
    let body = Some(br#"{"key":"a"}"#.to_vec());
    let waited = client.send(Method::POST, "/v1/streams/orders/jobs", &prefer, body).await.unwrap();
    assert_eq!(
        (waited.status.as_u16(), waited.headers["preference-applied"].to_str().unwrap()),
        (202, "wait=1")
    );
    let second = value(&waited)["id"].as_str().unwrap().to_owned();
    let cancelled = client.cancel(&second, Some(Duration::from_secs(20))).await.unwrap();
    assert_eq!(cancelled.status, "cancelled");
    assert_eq!(client.cancel(&second, None).await.unwrap_err().code(), Some("already_finished"));

    let batch = post(&client, "/v1/streams/orders/jobs", &json!([{"key":"b"},{"key":"c"}])).await;
    assert_eq!((batch.status.as_u16(), value(&batch)["jobs"].as_array().unwrap().len()), (202, 2));
    assert!(value(&batch)["batch"].is_string());
    let both = client.cancel(value(&batch)["jobs"][0]["id"].as_str().unwrap(), None).await.unwrap();
    assert_eq!(both.status, "cancelling");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_makes_one_job_of_many_tries() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let client = program.client();
    let job: laneway_client::wire::JobDraft =
        serde_json::from_value(json!({"key":"ann","data":{"n":1}})).unwrap();
    let tries = (0..8).map(|_| {
        let (client, job) = (client.clone(), job.clone());
        seam::spawn(async move { client.submit("orders", &job, None, Some("k1")).await.unwrap() })
    });
    let mut ids = Vec::new();
    for submitted in tries.collect::<Vec<_>>() {
        ids.push(match submitted.await.unwrap() {
            Submission::Accepted(receipt) => receipt.id,
            Submission::Settled(job) => job.id,
        });
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let other: laneway_client::wire::JobDraft =
        serde_json::from_value(json!({"key":"ann","data":{"n":2}})).unwrap();
    let refused = client.submit("orders", &other, None, Some("k1")).await.unwrap_err();
    assert_eq!(refused.code(), Some("idempotency_conflict"));
    let done = client.submit("orders", &job, Some(Duration::from_secs(20)), Some("k1")).await.unwrap();
    assert!(matches!(done, Submission::Settled(job) if job.id == ids[0] && job.status == "done"));
    let again = client.submit("orders", &job, None, Some("k1")).await.unwrap();
    // It has ended: the answer is its end, for whoever waits and whoever does not.
    let Submission::Settled(again) = again else { panic!("{again:?}") };
    assert_eq!((again.id.as_str(), again.status.as_str(), again.result.is_some()), (&*ids[0], "done", true));
    assert_eq!(client.lane("orders", b"ann").await.unwrap().last_seq, 1);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_served_and_health_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let get = |path: &'static str| {
        let client = client.clone();
        async move { client.send(Method::GET, path, &[], None).await.unwrap() }
    };
    let described = get("/openapi.json").await;
    let copy = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json")).unwrap();
    assert!(described.body == copy, "the server describes another API than the copy in the tree");
    assert!(value(&described)["openapi"].as_str().unwrap().starts_with("3.1"));
    assert_eq!((get("/livez").await.status.as_u16(), get("/readyz").await.status.as_u16()), (200, 200));
    program.stop().await;
}
