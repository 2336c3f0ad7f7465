//! Dead letters page by page.

use http::Method;
use http::header::LINK;
use laneway_client::Client;
use laneway_client::wire::{ClaimRequest, DeadFilter, EventDraft, Settle};
use serde_json::{Value, json};

use crate::program::Program;

/// Two processors that give everything up, and three events of two lanes: six dead letters.
async fn given_up(program: &Program) -> Client {
    let client = program.client();
    client.put_stream("orders", &serde_json::from_str(r#"{"partitions":2}"#).unwrap()).await.unwrap();
    let events: Vec<EventDraft> =
        serde_json::from_value(json!([{"key":"ann","data":1},{"key":"bob","data":2},{"key":"ann","data":3}]))
            .unwrap();
    client.append("orders", &events).await.unwrap();
    for processor in ["charge", "mail"] {
        give_up(&client, processor, 3).await;
    }
    client
}

/// A processor that gives up so many events.
async fn give_up(client: &Client, processor: &str, count: usize) {
    let settings = json!({"stream":"orders","pull":true,"on_failure":"dead_letter"});
    client.put_processor(processor, &serde_json::from_value(settings).unwrap()).await.unwrap();
    for _ in 0..count {
        let wish: ClaimRequest = serde_json::from_str(r#"{"wait":"20s"}"#).unwrap();
        let claim = client.claim(processor, &wish).await.unwrap().claims.remove(0).claim;
        let settle = json!({"settlements":[{"claim":claim,"outcome":"fail","error":"no"}]});
        let settle: Settle = serde_json::from_value(settle).unwrap();
        assert!(client.settle(processor, &settle).await.unwrap().settlements[0].accepted);
    }
}

async fn post(client: &Client, path: &str, body: Value) -> Value {
    let answer = client.send(Method::POST, path, &[], Some(body.to_string().into_bytes())).await.unwrap();
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_page_by_page_over_processors_and_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = given_up(&program).await;
    let all = async |filter: DeadFilter| {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = client.dead_letters(&filter, cursor.as_deref(), 1).await.unwrap();
            assert!(page.items.len() <= 1);
            found.extend(page.items.into_iter().map(|dead| (dead.processor, dead.reference)));
            cursor = page.next;
            if cursor.is_none() {
                return found;
            }
        }
    };
    let found = all(DeadFilter::default()).await;
    assert_eq!(found.len(), 6, "{found:?}");
    let mut distinct = found.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 6, "none comes twice: {found:?}");
    let of_ann = DeadFilter {
        processor: Some("mail".to_owned()),
        key: Some("ann".to_owned()),
        ..DeadFilter::default()
    };
    assert_eq!(all(of_ann).await.len(), 2);

    let page = client.send(Method::GET, "/v1/dead-letters?stream=orders&limit=2", &[], None).await.unwrap();
    let next = serde_json::from_slice::<Value>(&page.body).unwrap()["next"].as_str().unwrap().to_owned();
    let link = format!("</v1/dead-letters?stream=orders&limit=2&cursor={next}>; rel=\"next\"");
    assert_eq!(page.headers[LINK], link.as_str());
    let path = format!("/v1/dead-letters?processor=mail&cursor={next}");
    let other = client.send(Method::GET, &path, &[], None).await.unwrap();
    let told: Value = serde_json::from_slice(&other.body).unwrap();
    assert!(told["detail"].as_str().unwrap().contains("used for the same list"), "{told}");
    program.stop().await;
}

/// A filter means whole lanes: what cannot come back is told, and the rest goes its way.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_redrives_lanes_and_tells_of_each_letter() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = given_up(&program).await;
    let filter = json!({"processor":"charge"});
    let dry = post(&client, "/v1/dead-letters/redrive", json!({"filter":filter,"dry_run":true})).await;
    assert_eq!((&dry["count"], dry["items"].as_array().unwrap().len()), (&json!(3), 3), "{dry}");
    let done = post(&client, "/v1/dead-letters/redrive", json!({"filter":filter})).await;
    assert_eq!(done["count"], 1, "only bob's is the last of its lane: {done}");
    let codes: Vec<&Value> = done["items"].as_array().unwrap().iter().map(|item| &item["code"]).collect();
    assert_eq!(codes.iter().filter(|code| **code == "successors_done").count(), 2, "{done}");
    let tail = post(&client, "/v1/dead-letters/redrive", json!({"filter":filter,"to":"tail"})).await;
    assert_eq!(tail["count"], 2, "{tail}");
    let rest = post(&client, "/v1/dead-letters/discard", json!({"filter":filter})).await;
    assert_eq!(rest["count"], 0, "{rest}");
    let refused =
        post(&client, "/v1/dead-letters/discard", json!({"refs":["orders/0/1"],"cursor":"x"})).await;
    assert!(refused["detail"].as_str().unwrap().contains("cursor is set beside refs"), "{refused}");
    program.stop().await;
}

/// A copy says where it comes from: an event that has no room for that stays a dead letter.
#[tokio::test(flavor = "multi_thread")]
async fn copy_without_room_for_its_origin_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    client.put_stream("orders", &serde_json::from_str(r#"{"partitions":1}"#).unwrap()).await.unwrap();
    let headers: serde_json::Map<String, Value> = (0..64).map(|at| (format!("h{at}"), json!("v"))).collect();
    let events = json!([{"key":"ann","data":1,"headers":headers}]);
    let events: Vec<EventDraft> = serde_json::from_value(events).unwrap();
    client.append("orders", &events).await.unwrap();
    give_up(&client, "charge", 1).await;
    let redrive = json!({"filter":{"processor":"charge"},"to":"tail"});
    let refused = post(&client, "/v1/dead-letters/redrive", redrive).await;
    assert_eq!(
        (&refused["count"], &refused["items"][0]["code"]),
        (&json!(0), &json!("headers_full")),
        "{refused}"
    );
    program.stop().await;
}
