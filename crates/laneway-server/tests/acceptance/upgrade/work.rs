//! Goes on with everything that a store of the version before holds.

use std::collections::BTreeMap;

use http::{HeaderName, Method};
use serde_json::{Value, json};

use super::{Fixture, Upgraded};
use crate::seam;
use crate::support::Http;

/// Partitions of all processors of the fixtures.
const SEATS: u64 = 14;
const EMITS: u64 = 4_000;
const LARGE: usize = 3 << 20;

/// Claims that were settled, by the key of their lane, in order.
type Lanes = BTreeMap<String, Vec<Value>>;

pub(super) async fn until_owned(http: &Http) {
    seam::until("every partition has its owner", || async {
        let readiness = http.get("/readyz?verbose").await;
        (readiness["seats_owned"] == SEATS).then_some(())
    })
    .await;
}

pub(super) async fn go_on(store: &Upgraded, http: &Http) {
    until_owned(http).await;
    emits_arrive(store, http).await;
    requests_have_their_effect(store, http).await;
    repeats_are_known(store, http).await;
    held_up_lanes_go_on(store, http).await;
    the_second_processor_goes_on(http).await;
    dead_letters_come_back(http).await;
    stopped_processors_go_on(http).await;
    the_newest_wins(http).await;
    delays_and_dates_stay(store, http).await;
    what_was_trimmed_is_counted(store, http).await;
    ends_of_jobs_are_read_and_forgotten(store, http).await;
}

/// Claims and settles as many events. Each is done, with its data as the result.
async fn run(http: &Http, processor: &str, count: usize) -> Lanes {
    let (mut lanes, mut left) = (Lanes::new(), count);
    let path = |call| format!("/v1/processors/{processor}/{call}");
    while left > 0 {
        let claimed = http.done(&path("claim"), json!({"wait":"20s","max_lanes":left})).await;
        let claims = claimed["claims"].as_array().unwrap().clone();
        assert!(!claims.is_empty(), "{processor}: {left} of {count} events do not come");
        for claim in claims {
            let result = json!({"ran": claim["events"][0]["data"]});
            let settlement = json!({"claim":claim["claim"],"outcome":"done","result":result});
            let settled = http.done(&path("settle"), json!({"settlements":[settlement]})).await;
            assert_eq!(settled["settlements"][0]["accepted"], true, "{settled}");
            left -= 1;
            let key = claim["key"].as_str().unwrap_or_default().to_owned();
            lanes.entry(key).or_default().push(claim);
        }
    }
    lanes
}

fn data(lanes: &Lanes, key: &str) -> Vec<Value> {
    lanes.get(key).into_iter().flatten().map(|claim| claim["events"][0]["data"].clone()).collect()
}

fn numbers() -> Vec<Value> {
    (1..=5).map(|n| json!({ "n": n })).collect()
}

/// The receipt of the event, or why it was refused.
async fn append(http: &Http, stream: &str, event: Value) -> Value {
    let mut body = http.post(&format!("/v1/streams/{stream}/events"), event).await.body;
    if body["events"].is_array() { body["events"][0].take() } else { body }
}

async fn job(http: &Http, id: &Value) -> Value {
    http.get(&format!("/v1/jobs/{}", id.as_str().unwrap())).await
}

/// A run had emitted this when its server was killed.
async fn emits_arrive(store: &Upgraded, http: &Http) {
    if store.fixture == Fixture::Closed {
        return;
    }
    let events = seam::until("all that was emitted", || async {
        let stream = http.get("/v1/streams/fanned").await;
        let arrived = stream["heads"][0]["events"].as_u64().unwrap_or_default();
        if arrived < EMITS { None } else { Some(http.events("fanned").await) }
    })
    .await;
    let arrived: Vec<_> =
        events.iter().map(|event| (event["data"].as_u64(), event["seq"].as_u64())).collect();
    let emitted: Vec<_> = (0..EMITS).map(|n| (Some(n), Some(n + 1))).collect();
    assert!(arrived == emitted, "{} events arrived", arrived.len());
}

/// They were filed while nobody owned the partition.
async fn requests_have_their_effect(store: &Upgraded, http: &Http) {
    let [cancelled, paused] = [0, 1].map(|number| store.known["unowned"][number].clone());
    seam::until("the filed cancel and pause", || async {
        let (cancelled, paused) = (job(http, &cancelled).await, job(http, &paused).await);
        (cancelled["status"] == "cancelled" && paused["why"]["code"] == "lane_paused").then_some(())
    })
    .await;
    http.done("/v1/streams/last/lanes/resume", json!({"key":"b"})).await;
    assert_eq!(data(&run(http, "unowned", 1).await, "b"), ["b"]);
}

/// Dedup ids and idempotency keys of before answer what they answered then.
async fn repeats_are_known(store: &Upgraded, http: &Http) {
    let known = &store.known;
    let again = append(http, "orders", json!({"key":"ann","dedup_id":"once","data":"once"})).await;
    assert_eq!(again["append"], "duplicate", "{again}");
    assert_eq!((&again["id"], &again["seq"]), (&known["dedup"]["id"], &known["dedup"]["seq"]), "{again}");
    let other = append(http, "orders", json!({"key":"ann","dedup_id":"once","data":"other"})).await;
    assert_eq!(other["code"], "dedup_conflict", "{other}");

    let name = [(HeaderName::from_static("idempotency-key"), "order-17")];
    let submit = async |amount: u64| {
        let body = json!({"key":"named","data":{"amount":amount}});
        http.try_call(Method::POST, "/v1/streams/orders/jobs", &name, Some(&body)).await.unwrap()
    };
    let again = submit(5).await;
    assert_eq!((again.status, &again.body["id"]), (200, &known["named"]), "{again:?}");
    assert_eq!(again.body["result"], json!({"ran":{"amount":5},"count":1}), "{again:?}");
    let other = submit(6).await;
    assert_eq!((other.status, &other.body["code"]), (409, &json!("idempotency_conflict")), "{other:?}");
}

/// Parked, retrying, paused and claimed lanes, each with events behind its head; and lanes that only waited.
async fn held_up_lanes_go_on(store: &Upgraded, http: &Http) {
    let lane = &store.reads["/v1/streams/orders/lane?key=ann"];
    let event = json!({"key":"ann","data":"new","expect_prev":lane["last_id"],"object":{"paid":4},
        "expect_object_version":lane["object_version"]});
    let new = append(http, "orders", event).await;
    assert_eq!(new["prev"], lane["last_id"], "{new}");
    assert_eq!(new["seq"], lane["last_seq"].as_u64().unwrap() + 1, "{new}");
    let stands = http.get("/v1/streams/orders/lane?key=ann").await;
    assert_eq!((&stands["object"], &stands["object_version"]), (&json!({"paid":4}), &json!(4)), "{stands}");

    for (call, key) in [("retry", "parked"), ("retry", "retrying"), ("resume", "paused")] {
        let request = json!({"key":key,"processor":"charge"});
        let answer = http.done(&format!("/v1/streams/orders/lanes/{call}"), request).await;
        assert_eq!((&answer["count"], &answer["applied"]), (&json!(1), &json!(true)), "{key}: {answer}");
    }
    let late = settle_late(store, http).await;
    assert_eq!((&late["accepted"], &late["code"]), (&json!(false), &json!("claim_lost")), "{late}");
    let ran = run(http, "charge", 6 + 5 + 5 + 5 + 2 + 1 + 1).await;
    assert_eq!(data(&ran, "parked"), [numbers(), vec![json!("behind")]].concat());
    for key in ["retrying", "paused", "claimed"] {
        assert_eq!(data(&ran, key), numbers(), "{key}");
    }
    let attempts = ["parked", "retrying", "paused", "claimed"].map(|key| ran[key][0]["attempt"].as_u64());
    assert_eq!(attempts, [Some(1), Some(2), Some(1), Some(2)]);
    assert_eq!(data(&ran, "ann"), ["last", "new"]);
    assert_eq!(ran["ann"][0]["state"], json!({"runs":9}));
    assert_eq!(data(&ran, "pending"), [json!({"wait":true})]);
    assert_eq!(data(&ran, ""), ["keyless last"]);

    assert!(ran["claimed"][0]["fence"].as_str() > store.known["claim"]["fence"].as_str());
    for (name, result) in [("parked", json!("behind")), ("pending", json!({"wait":true}))] {
        let job = job(http, &store.known[name]).await;
        assert_eq!((&job["status"], &job["result"]["ran"]), (&json!("done"), &result), "{job}");
    }
}

/// The worker that had a lane when the server ended says that it failed, when its lease is over.
async fn settle_late(store: &Upgraded, http: &Http) -> Value {
    let settlement = json!({"claim":store.known["claim"]["claim"],"outcome":"fail"});
    let settled = http.done("/v1/processors/charge/settle", json!({"settlements":[settlement]})).await;
    settled["settlements"][0].clone()
}

/// It had passed less of the stream than the first, and runs some types only.
async fn the_second_processor_goes_on(http: &Http) {
    let ran = run(http, "audit", 26).await;
    for key in ["parked", "retrying", "paused", "claimed", "skipped"] {
        assert_eq!(data(&ran, key), numbers(), "{key}");
    }
    assert_eq!(data(&ran, "ann"), ["last"]);
}

async fn redrive(http: &Http, request: Value) {
    let answer = http.done("/v1/dead-letters/redrive", request).await;
    assert!(answer["items"].as_array().unwrap().iter().all(|item| item["accepted"] == true), "{answer}");
}

async fn dead_letters_come_back(http: &Http) {
    redrive(http, json!({"refs":["payments/0/10"],"processor":"refund"})).await;
    assert_eq!(data(&run(http, "refund", 1).await, "bad"), ["job"]);
    redrive(http, json!({"refs":["payments/0/1"],"processor":"refund","to":"tail"})).await;
    let copy = run(http, "refund", 1).await;
    let event = &copy["bad"][0]["events"][0];
    assert_eq!((&event["data"], &event["seq"]), (&json!({"n":1}), &json!(5)), "{event}");
    assert_eq!(event["headers"]["laneway-redriven-from"], "3/0/1", "{event}");

    // A lane that diverts goes on doing so until all of it comes back.
    append(http, "payments", json!({"key":"diverts","data":{"n":5}})).await;
    seam::until("the new event is put aside", || async {
        let letters = http.get("/v1/dead-letters?processor=ledger").await;
        (letters["items"].as_array().unwrap().len() == 5).then_some(())
    })
    .await;
    redrive(http, json!({"filter":{"processor":"ledger","key":"diverts"}})).await;
    // Beside what was appended for the other processor.
    let ran = run(http, "ledger", 6).await;
    assert_eq!(data(&ran, "diverts"), numbers());
    run(http, "refund", 1).await;
    let letters = http.get("/v1/dead-letters").await;
    let left: Vec<_> = letters["items"].as_array().unwrap().iter().map(|letter| &letter["ref"]).collect();
    assert_eq!(left, ["payments/0/2", "payments/0/3"]);
}

/// One was halted by a failure, one was paused, and its stream is full.
async fn stopped_processors_go_on(http: &Http) {
    http.done("/v1/processors/guard/resume", json!({})).await;
    assert_eq!(data(&run(http, "guard", 2).await, "a"), [1, 2]);
    let refused = append(http, "full", json!({"key":"k3","data":3})).await;
    assert_eq!(refused["code"], "stream_full", "{refused}");
    http.done("/v1/processors/stopped/resume", json!({})).await;
    assert_eq!(run(http, "stopped", 3).await.len(), 3);
    assert_eq!(append(http, "full", json!({"key":"k3","data":3})).await["seq"], 1);
}

async fn the_newest_wins(http: &Http) {
    let stale = append(http, "objects", json!({"key":"doc","generation":6,"data":"stale"})).await;
    assert_eq!((&stale["append"], &stale["newest_generation"]), (&json!("stale"), &json!(7)), "{stale}");
    let ran = run(http, "newest", 2).await;
    assert_eq!((data(&ran, "doc"), data(&ran, "gone")), (vec![json!("doc 7")], vec![json!("again")]));
    let last = json!({"id":1,"generation":3,"incarnation":0,"data":"three"});
    assert_eq!(ran["doc"][0]["last_done"], last);
    assert_eq!(ran["gone"][0]["events"][0]["incarnation"], 1);
    append(http, "objects", json!({"key":"doc","generation":8,"data":"doc 8"})).await;
    let ran = run(http, "newest", 1).await;
    let last = json!({"id":4,"generation":7,"incarnation":0,"data":"doc 7"});
    assert_eq!((data(&ran, "doc"), &ran["doc"][0]["last_done"]), (vec![json!("doc 8")], &last));
}

async fn delays_and_dates_stay(store: &Upgraded, http: &Http) {
    // The hold of an hour is over by now.
    let ran = run(http, "mail", 4).await;
    assert_eq!(data(&ran, "hold"), ["held", "behind"]);
    assert_eq!(
        (data(&ran, "lasting"), data(&ran, "urgent")),
        (vec![json!("in time")], vec![json!("urgent")])
    );
    let scheduled = job(http, &store.known["scheduled"]).await;
    assert_eq!(scheduled["status"], "scheduled", "{scheduled}");
    assert_eq!(scheduled["why"]["until"], "2099-01-02T03:04:05Z", "{scheduled}");
    let id = store.known["scheduled"].as_str().unwrap();
    let prefer = [(HeaderName::from_static("prefer"), "wait=20")];
    let said = http.try_call(Method::POST, &format!("/v1/jobs/{id}/cancel"), &prefer, None).await.unwrap();
    assert_eq!((said.status, &said.body["status"]), (200, &json!("cancelled")), "{said:?}");

    let fired = http.done("/v1/schedules/nightly/run", json!({})).await;
    assert_eq!(data(&run(http, "charge", 1).await, "night"), [json!({"report":"daily"})]);
    assert_eq!(job(http, &fired["job"]).await["status"], "done", "{fired}");
}

async fn what_was_trimmed_is_counted(store: &Upgraded, http: &Http) {
    let lane = append(http, "brief", json!({"key":"k0","data":"next"})).await;
    assert_eq!((&lane["prev"], &lane["seq"]), (&json!(1), &json!(2)), "{lane}");
    run(http, "sweep", 1).await;
    let ran = run(http, "bill", 6).await;
    assert_eq!(data(&ran, "bill-0"), [0, 2, 4]);
    assert_eq!(data(&ran, "bill-1"), [1, 3, 5]);
    if store.fixture == Fixture::Closed {
        // They lie in segments whose footers had another format.
        let events = http.get("/v1/streams/bulk/events?partition=0&after=63").await["events"].take();
        let events: Vec<_> = events.as_array().unwrap().iter().map(|event| &event["data"]).collect();
        let text = |digit: &str| json!(digit.repeat((1 << 20) - 256));
        assert!(events == [&text("3"), &text("4")], "{} events", events.len());
        let next = append(http, "bulk", json!({"key":"bulk","data":0})).await;
        assert_eq!((&next["prev"], &next["seq"]), (&json!(65), &json!(66)), "{next}");
    }
}

async fn ends_of_jobs_are_read_and_forgotten(store: &Upgraded, http: &Http) {
    let large = job(http, &store.known["large"]).await["result"].take();
    assert!(large == "x".repeat(LARGE), "a result of {} letters", large.as_str().unwrap_or_default().len());
    let path = format!("/v1/jobs/{}", store.known["long"].as_str().unwrap());
    assert_eq!(http.get(&path).await["result"], json!({"ran":"long","count":5}));
    for (method, status) in [(Method::DELETE, 204), (Method::GET, 410)] {
        let said = http.try_call(method, &path, &[], None).await.unwrap();
        assert_eq!(said.status, status, "{said:?}");
    }
    let endless = http.post("/v1/streams/orders/jobs", json!({"key":"new","keep":"36500d"})).await;
    assert_eq!(endless.body["code"], "invalid_value", "{endless:?}");
    let retried = job(http, &store.known["retried"]).await;
    assert_eq!(retried["retry_of"], store.known["small"], "{retried}");
}
