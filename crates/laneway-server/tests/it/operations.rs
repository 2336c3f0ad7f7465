//! What an operator does: processors that stand, dead letters, lanes without a key, and what a lane says of itself.

use http::Method;
use laneway_client::wire::{Claim, ClaimRequest, EventDraft, Settle};
use laneway_client::{Answer, Client};
use serde_json::{Value, json};

use crate::program::Program;

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    client.send(Method::POST, path, &[], Some(serde_json::to_vec(body).unwrap())).await.unwrap()
}

fn value(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

async fn get(client: &Client, path: &str) -> Value {
    value(&client.send(Method::GET, path, &[], None).await.unwrap())
}

/// A stream of one partition, and a processor that gives up at the first failure.
async fn ready(program: &Program, on_failure: &str) -> Client {
    let client = program.client();
    client.put_stream("orders", &serde_json::from_value(json!({"partitions":1})).unwrap()).await.unwrap();
    let settings = json!({"stream":"orders","pull":true,"retry":{"max_attempts":1},"on_failure":on_failure});
    client.put_processor("charge", &serde_json::from_value(settings).unwrap()).await.unwrap();
    client
}

async fn append(client: &Client, key: Option<&str>, data: u32) {
    let event: EventDraft = serde_json::from_value(json!({"key":key,"data":data})).unwrap();
    client.append("orders", &[event]).await.unwrap();
}

async fn claim(client: &Client) -> Claim {
    let wish: ClaimRequest = serde_json::from_value(json!({"wait":"20s","worker":"w1"})).unwrap();
    client.claim("charge", &wish).await.unwrap().claims.remove(0)
}

async fn settle(client: &Client, claim: &Claim, outcome: &str) {
    let settle: Settle =
        serde_json::from_value(json!({"settlements":[{"claim":claim.claim,"outcome":outcome}]})).unwrap();
    assert!(client.settle("charge", &settle).await.unwrap().settlements[0].accepted);
}

/// Claims the next event, which must be this one, and fails it for good.
async fn fail(client: &Client, id: u64) {
    let claimed = claim(client).await;
    assert_eq!(claimed.events[0].id, id);
    settle(client, &claimed, "fail").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_runs_exactly_while_a_worker_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "park").await;
    let job = value(&post(&client, "/v1/streams/orders/jobs", &json!({"key":"ann"})).await);
    let job = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let lane = "/v1/streams/orders/lane?key=ann";
    let stands = async |status: &str, why: &str| {
        let (job, lane) = (get(&client, &job).await, get(&client, lane).await);
        let event = client.event("orders", 0, 1).await.unwrap();
        let told = &lane["processors"][0];
        assert_eq!((&job["status"], &job["why"]["code"]), (&json!(status), &json!(why)), "{job}");
        assert_eq!((&told["status"], &told["why"]["code"]), (&json!(status), &json!(why)), "{lane}");
        assert_eq!(event.processors[0].status, status);
        (job, event.processors[0].reason.clone())
    };
    crate::seam::until("an owner of the partition", || async {
        let lane = get(&client, lane).await;
        (lane["processors"][0]["why"]["code"] != "no_owner").then_some(())
    })
    .await;
    stands("waiting", "no_worker").await;
    // At once, and not when the claim is written to the store.
    let claimed = claim(&client).await;
    let (told, _) = stands("running", "claimed").await;
    assert_eq!(told["why"]["until"], json!(claimed.expires_at), "{told}");
    assert!(told["why"]["detail"].as_str().unwrap().contains("w1") && told["attempt"] == 1, "{told}");
    let failed = json!({"settlements":[{"claim":claimed.claim,"outcome":"fail","error":"no money"}]});
    post(&client, "/v1/processors/charge/settle", &failed).await;
    let (_, reason) = stands("parked", "parked").await;
    assert_eq!(reason.as_deref(), Some("no money"));
    // Somebody lets it go, and nobody has it.
    let retried = post(&client, "/v1/streams/orders/lanes/retry", &json!({"key":"ann"})).await;
    assert_eq!(value(&retried), json!({"count":1,"applied":true}));
    stands("waiting", "no_worker").await;
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_processor_says_so_and_goes_on_when_it_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "halt").await;
    append(&client, Some("ann"), 1).await;
    append(&client, Some("bob"), 2).await;
    fail(&client, 1).await;
    let shown = client.processor("charge").await.unwrap();
    let [stopped] = &shown.stopped[..] else { panic!("{shown:?}") };
    assert_eq!((stopped.partition, stopped.status.as_str()), (0, "halted"));
    assert_eq!(stopped.reference.as_deref(), Some("orders/0/1"));
    assert_eq!(stopped.cause.as_deref(), Some("the worker gave no reason"));
    for wish in ["retry", "resume"] {
        let path = format!("/v1/streams/orders/lanes/{wish}");
        let refused = post(&client, &path, &json!({"key":"ann"})).await;
        assert_eq!((refused.status.as_u16(), &value(&refused)["code"]), (409, &json!("processor_stopped")));
        let detail = value(&refused)["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("POST /v1/processors/charge/resume"), "{detail}");
    }
    let resumed = post(&client, "/v1/processors/charge/resume", &json!({})).await;
    assert_eq!((resumed.status.as_u16(), value(&resumed)), (200, json!({"count":1,"applied":true})));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let claimed = claim(&client).await;
        ids.push(claimed.events[0].id);
        settle(&client, &claimed, "done").await;
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    assert_eq!(client.processor("charge").await.unwrap().stopped, []);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_processor_is_paused_resumed_and_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "park").await;
    append(&client, Some("ann"), 1).await;
    let done = claim(&client).await;
    settle(&client, &done, "done").await;
    let paused = post(&client, "/v1/processors/charge/pause", &json!({})).await;
    assert_eq!((paused.status.as_u16(), value(&paused)), (200, json!({"count":1,"applied":true})));
    let stopped = client.processor("charge").await.unwrap().stopped.remove(0);
    assert_eq!((stopped.status.as_str(), stopped.by.as_deref()), ("paused", Some("a call without a token")));
    append(&client, Some("ann"), 2).await;
    assert!(client.claim("charge", &ClaimRequest::default()).await.unwrap().claims.is_empty());
    let why = client.lane("orders", b"ann").await.unwrap().processors.remove(0).why;
    assert_eq!((why.code.as_str(), &why.by, &why.since), ("processor_paused", &stopped.by, &stopped.since));
    assert!(why.detail.contains("paused by a call without a token") && why.since.is_some(), "{why:?}");
    post(&client, "/v1/processors/charge/resume", &json!({})).await;
    let second = claim(&client).await;
    assert_eq!(second.events[0].id, 2);
    settle(&client, &second, "done").await;

    let refused = post(&client, "/v1/processors/charge/reset", &json!({})).await;
    assert_eq!((refused.status.as_u16(), &value(&refused)["code"]), (400, &json!("invalid_value")));
    let unknown = json!({"start":"beginning","emit":"loud"});
    let refused = value(&post(&client, "/v1/processors/charge/reset", &unknown).await);
    assert!(refused["detail"].as_str().unwrap().contains("emit"), "{refused}");
    let reset = post(&client, "/v1/processors/charge/reset", &json!({"start":"beginning"})).await;
    assert_eq!(reset.status, 200);
    assert_eq!(claim(&client).await.events[0].id, 1, "it runs again");
    program.stop().await;
}

/// Settles the next claim as done with a state, and says so on another stream. Answers the state it had.
async fn settle_aloud(client: &Client) -> Option<String> {
    let claimed = claim(client).await;
    let (id, emit) = (claimed.events[0].id, json!([{"stream":"told","key":"k","data":claimed.events[0].id}]));
    let done = json!({"claim":claimed.claim,"outcome":"done","state":id,"emit":emit});
    assert_eq!(
        post(client, "/v1/processors/charge/settle", &json!({"settlements":[done]})).await.status,
        200
    );
    claimed.state.map(|state| state.get().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_reset_keeps_or_clears_states_and_emits_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "park").await;
    client.put_stream("told", &serde_json::from_value(json!({"partitions":1})).unwrap()).await.unwrap();
    append(&client, Some("ann"), 1).await;
    assert_eq!(settle_aloud(&client).await, None);
    let reset = async |state: &str| {
        let body = json!({"start":"beginning","state":state,"emit":"off"});
        assert_eq!(post(&client, "/v1/processors/charge/reset", &body).await.status, 200);
    };
    reset("keep").await;
    assert_eq!(settle_aloud(&client).await.as_deref(), Some("1"), "the state stayed");
    reset("clear").await;
    assert_eq!(settle_aloud(&client).await, None, "the state went");
    append(&client, Some("ann"), 2).await;
    assert_eq!(settle_aloud(&client).await.as_deref(), Some("1"));
    // Emits arrive in their order: what is there when the new one is there is all.
    let told = crate::seam::until("the new one is told", || async {
        let page = get(&client, "/v1/streams/told/events?partition=0").await;
        let told: Vec<_> = page["events"].as_array()?.iter().map(|event| event["data"].clone()).collect();
        told.contains(&json!(2)).then_some(told)
    })
    .await;
    assert_eq!(told, [json!(1), json!(2)]);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_responder_of_a_stream_answers_jobs_that_name_no_processor() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "park").await;
    let audit = json!({"stream":"orders","pull":true});
    client.put_processor("audit", &serde_json::from_value(audit).unwrap()).await.unwrap();
    let submit =
        async || value(&post(&client, "/v1/streams/orders/jobs", &json!({"key":"ann","data":1})).await);
    assert_eq!(submit().await["code"], "processor_required");
    let put = async |responder: &str| {
        let settings = serde_json::from_value(json!({"responder":responder})).unwrap();
        client.put_stream("orders", &settings).await.unwrap().responder
    };
    assert_eq!(put("nobody").await.as_deref(), Some("nobody"));
    let refused = submit().await;
    assert_eq!(refused["code"], "processor_not_found", "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("answers the jobs of stream"), "{refused}");
    put("audit").await;
    let job = submit().await;
    let told = get(&client, &format!("/v1/jobs/{}", job["id"].as_str().unwrap())).await;
    assert_eq!(told["processor"], "audit", "{told}");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_a_key_is_retried_and_passed_over_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "park").await;
    append(&client, None, 1).await;
    fail(&client, 1).await;
    let event = client.event("orders", 0, 1).await.unwrap();
    let told = &event.processors[0];
    assert_eq!((told.status.as_str(), told.reason.as_deref()), ("parked", Some("the worker gave no reason")));
    let lane = json!({"ref":"orders/0/1"});
    let retried = post(&client, "/v1/streams/orders/lanes/retry", &lane).await;
    assert_eq!((retried.status.as_u16(), &value(&retried)["applied"]), (200, &json!(true)));
    fail(&client, 1).await;
    assert_eq!(post(&client, "/v1/streams/orders/lanes/skip", &lane).await.status, 200);
    assert_eq!(client.event("orders", 0, 1).await.unwrap().processors[0].status, "skipped");
    let other = json!({"ref":"bills/0/1"});
    let refused = value(&post(&client, "/v1/streams/orders/lanes/skip", &other).await);
    assert_eq!(refused["code"], "invalid_value", "{refused}");
    let both = json!({"ref":"orders/0/1","key":"ann"});
    let refused = value(&post(&client, "/v1/streams/orders/lanes/skip", &both).await);
    assert!(refused["detail"].as_str().unwrap().contains("the only one of the two"), "{refused}");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_found_brought_back_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "dead_letter").await;
    for data in 1..=2 {
        append(&client, Some("ann"), data).await;
        fail(&client, u64::from(data)).await;
    }
    append(&client, Some("bob"), 3).await;
    fail(&client, 3).await;
    let all = get(&client, "/v1/dead-letters").await;
    let refs: Vec<&str> =
        all["items"].as_array().unwrap().iter().map(|item| item["ref"].as_str().unwrap()).collect();
    assert_eq!(refs, ["orders/0/1", "orders/0/2", "orders/0/3"], "{all}");
    assert_eq!((&all["items"][0]["data"], &all["items"][0]["attempts"]), (&json!(1), &json!(1)), "{all}");
    let some = get(&client, "/v1/dead-letters?processor=charge&limit=1").await;
    assert_eq!((some["items"].as_array().unwrap().len(), some["next"].is_string()), (1, true));
    let bobs = get(&client, "/v1/dead-letters?stream=orders&key=bob").await;
    assert_eq!(
        (bobs["items"].as_array().unwrap().len(), &bobs["items"][0]["ref"]),
        (1, &json!("orders/0/3"))
    );

    let redrive = "/v1/dead-letters/redrive";
    let dry = json!({"filter":{"processor":"charge"},"dry_run":true});
    assert_eq!(value(&post(&client, redrive, &dry).await)["count"], 3);
    // Event 2 came after it, and has ended.
    let refused = post(&client, redrive, &json!({"refs":["orders/0/1","orders/0/9"]})).await;
    assert_eq!(refused.status, 409, "nothing of it was done");
    let refused = value(&refused);
    assert_eq!((&refused["code"], &refused["count"]), (&json!("successors_done"), &json!(0)), "{refused}");
    let codes: Vec<&Value> = refused["items"].as_array().unwrap().iter().map(|item| &item["code"]).collect();
    assert_eq!(codes, [&json!("dead_letter_not_found"), &json!("successors_done")], "{refused}");
    let missing = post(&client, redrive, &json!({"refs":["orders/0/9"]})).await;
    assert_eq!(
        (missing.status.as_u16(), value(&missing)["items"][0]["accepted"].as_bool()),
        (404, Some(false))
    );
    // The last of its lane has its place; a copy always has one at the end.
    let back = post(&client, redrive, &json!({"refs":["orders/0/3","orders/0/9"]})).await;
    assert_eq!((back.status.as_u16(), &value(&back)["count"]), (207, &json!(1)), "one of two");
    let again = claim(&client).await;
    assert_eq!(again.events[0].id, 3);
    settle(&client, &again, "done").await;
    let copied = value(&post(&client, redrive, &json!({"refs":["orders/0/1"],"to":"tail"})).await);
    assert_eq!(copied["count"], 1, "{copied}");
    let copy = claim(&client).await;
    assert_eq!((copy.events[0].id, copy.events[0].data.as_ref().unwrap().get()), (4, "1"));
    settle(&client, &copy, "done").await;
    let gone = json!({"filter":{"stream":"orders"}});
    assert_eq!(value(&post(&client, "/v1/dead-letters/discard", &gone).await)["count"], 1);
    assert_eq!(get(&client, "/v1/dead-letters").await["items"], json!([]));
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diverted_lane_comes_back_as_a_whole_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, "dead_letter_lane").await;
    append(&client, Some("ann"), 1).await;
    fail(&client, 1).await;
    append(&client, Some("ann"), 2).await;
    crate::seam::until("the second event among the dead letters", || async {
        let all = get(&client, "/v1/dead-letters").await;
        (all["items"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    let redrive = "/v1/dead-letters/redrive";
    let first = value(&post(&client, redrive, &json!({"refs":["orders/0/1"]})).await);
    assert_eq!(first["items"][0]["code"], "whole_lane", "{first}");
    let second = value(&post(&client, redrive, &json!({"refs":["orders/0/2"]})).await);
    assert_eq!(second["items"][0]["code"], "earlier_dead", "{second}");
    let whole = value(&post(&client, redrive, &json!({"refs":["orders/0/2","orders/0/1"]})).await);
    assert_eq!(whole["count"], 2, "{whole}");
    for id in 1..=2 {
        let claimed = claim(&client).await;
        assert_eq!(claimed.events[0].id, id);
        settle(&client, &claimed, "done").await;
    }
    program.stop().await;
}
