//! Lanes by how they stand, and what is asked of many at once.

use http::Method;
use laneway_client::wire::{LaneStatus, ListedLane};
use laneway_client::{Answer, Client};
use serde_json::{Value, json};

use crate::program::Program;
use crate::seam;

const LANES: &str = "/v1/streams/orders/lanes";

async fn post(client: &Client, path: &str, body: Value) -> Answer {
    client.send(Method::POST, path, &[], Some(body.to_string().into_bytes())).await.unwrap()
}

fn value(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

async fn get(client: &Client, path: &str) -> Value {
    value(&client.send(Method::GET, path, &[], None).await.unwrap())
}

/// Streams with two partitions, and a processor that gives up at the first failure; nobody claims yet.
async fn ready(program: &Program, keys: u32) -> Client {
    let client = program.client();
    client.put_stream("orders", &serde_json::from_value(json!({"partitions":2})).unwrap()).await.unwrap();
    let settings = json!({"stream":"orders","pull":true,"retry":{"max_attempts":1}});
    client.put_processor("charge", &serde_json::from_value(settings).unwrap()).await.unwrap();
    let events: Vec<Value> = (0..keys)
        .flat_map(|key| [json!({"key":format!("k{key}")}), json!({"key":format!("k{key}")})])
        .collect();
    for events in events.chunks(1_000) {
        post(&client, "/v1/streams/orders/events", json!(events)).await;
    }
    client
}

/// Claims every lane and fails its head.
async fn park_all(client: &Client, lanes: usize) {
    let mut parked = 0;
    while parked < lanes {
        let claims = post(client, "/v1/processors/charge/claim", json!({"max_lanes":100,"wait":"20s"})).await;
        let claims = value(&claims)["claims"].as_array().unwrap().clone();
        let settlements: Vec<Value> = claims
            .iter()
            .map(|claim| json!({"claim":claim["claim"],"outcome":"fail","error":"no money"}))
            .collect();
        post(client, "/v1/processors/charge/settle", json!({"settlements":settlements})).await;
        parked += claims.len();
    }
}

/// All lanes that stand so, page by page.
async fn all(client: &Client, status: LaneStatus) -> Vec<ListedLane> {
    let (mut items, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.lanes("orders", Some(status), cursor.as_deref()).await.unwrap();
        items.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return items;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_listed_by_how_they_stand() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, 5).await;
    let waiting = get(&client, &format!("{LANES}?status=waiting")).await;
    assert_eq!(
        (waiting["items"].as_array().unwrap().len(), &waiting["partial"]),
        (5, &json!(true)),
        "{waiting}"
    );
    assert_eq!(all(&client, LaneStatus::Parked).await, []);
    // Page by page, no lane twice.
    let (mut keys, mut path) = (Vec::new(), format!("{LANES}?status=waiting&limit=2"));
    loop {
        let page = client.send(Method::GET, &path, &[], None).await.unwrap();
        let told = value(&page);
        keys.extend(
            told["items"].as_array().unwrap().iter().map(|lane| lane["key"].as_str().unwrap().to_owned()),
        );
        let Some(next) = told["next"].as_str() else { break };
        let link = page.headers["link"].to_str().unwrap();
        assert_eq!(link, format!("<{LANES}?status=waiting&limit=2&cursor={next}>; rel=\"next\""));
        path = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
    }
    keys.sort();
    assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4"]);
    let claim = post(&client, "/v1/processors/charge/claim", json!({"wait":"20s"})).await;
    let claimed = value(&claim)["claims"][0].clone();
    let running = all(&client, LaneStatus::Running).await;
    assert_eq!(running.iter().map(|lane| lane.key.as_deref()).collect::<Vec<_>>(), [claimed["key"].as_str()]);
    let settle = json!({"settlements":[{"claim":claimed["claim"],"outcome":"fail","error":"no money"}]});
    post(&client, "/v1/processors/charge/settle", settle).await;
    let parked = all(&client, LaneStatus::Parked).await;
    let [lane] = &parked[..] else { panic!("{parked:?}") };
    assert_eq!((lane.key.as_deref(), lane.cause.as_deref()), (claimed["key"].as_str(), Some("no money")));
    assert_eq!((lane.status.as_str(), lane.attempt, lane.since.is_some()), ("parked", 1, true));
    assert_eq!(lane.head.as_deref(), claimed["events"][0]["ref"].as_str());
    // What waits behind a parked head does not wait for its turn.
    assert_eq!(all(&client, LaneStatus::Waiting).await.len(), 4);
    assert_eq!(
        get(&client, LANES).await["items"].as_array().unwrap().len(),
        1,
        "without a status: all that are held up"
    );
    for (query, says) in [
        ("?status=sleeping", "must be one of waiting, running, retrying, parked, paused, diverting"),
        ("?limit=0", "must be 1 to 1000"),
        ("?processor=mail", "does not process stream"),
        ("?cursor=x", "must be the next of a page"),
    ] {
        let told = get(&client, &format!("{LANES}{query}")).await;
        assert!(told["detail"].as_str().unwrap().contains(says), "{query}: {told}");
    }
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_that_go_on_after_they_were_held_up_wait_and_run_too() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, 5).await;
    park_all(&client, 5).await;
    assert_eq!(all(&client, LaneStatus::Waiting).await, [], "they are parked");
    post(&client, &format!("{LANES}/retry"), json!({"filter":{"status":"parked"}})).await;
    post(&client, "/v1/streams/orders/events", json!([{"key":"new"}, {"key":"k0"}])).await;
    // What is set aside lies behind the floor of the log; page by page, no lane twice.
    for limit in [2, 100] {
        let (mut keys, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = get(&client, &format!("{LANES}?status=waiting&limit={limit}{cursor}")).await;
            let items = page["items"].as_array().unwrap();
            keys.extend(items.iter().map(|lane| lane["key"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        keys.sort();
        assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4", "new"]);
    }
    let wanted = json!({"max_lanes":100,"wait":"20s"});
    let mut claimed = Vec::new();
    while claimed.len() < 6 {
        let claims = value(&post(&client, "/v1/processors/charge/claim", wanted.clone()).await);
        let claims = claims["claims"].as_array().unwrap();
        claimed.extend(claims.iter().map(|claim| claim["key"].as_str().unwrap().to_owned()));
    }
    assert_eq!(all(&client, LaneStatus::Waiting).await, []);
    let running = all(&client, LaneStatus::Running).await;
    let mut running: Vec<String> = running.into_iter().map(|lane| lane.key.unwrap()).collect();
    running.sort();
    claimed.sort();
    assert_eq!(running, claimed);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_asks_of_all_lanes_that_stand_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, 30).await;
    park_all(&client, 30).await;
    let filter = json!({"filter":{"status":"parked"}});
    let tried =
        post(&client, &format!("{LANES}/skip"), json!({"filter":{"status":"parked"},"dry_run":true})).await;
    assert_eq!((tried.status.as_u16(), value(&tried)), (200, json!({"count":30,"applied":false})));
    assert_eq!(all(&client, LaneStatus::Parked).await.len(), 30, "nothing happened");
    let skipped = post(&client, &format!("{LANES}/skip"), filter.clone()).await;
    assert_eq!((skipped.status.as_u16(), value(&skipped)), (200, json!({"count":30,"applied":true})));
    assert_eq!(all(&client, LaneStatus::Parked).await, []);
    let none = post(&client, &format!("{LANES}/skip"), filter.clone()).await;
    assert_eq!(value(&none), json!({"count":0,"applied":true}));
    park_all(&client, 30).await;
    let paused = post(&client, &format!("{LANES}/pause"), filter).await;
    assert_eq!(value(&paused)["count"], 30, "{}", value(&paused));
    let paused = all(&client, LaneStatus::Paused).await;
    assert!(paused.len() == 30 && paused[0].cause.as_deref() == Some("a call without a token"), "{paused:?}");
    let resumed =
        post(&client, &format!("{LANES}/resume"), json!({"filter":{"status":"paused"},"processor":"charge"}))
            .await;
    assert_eq!(value(&resumed), json!({"count":30,"applied":true}));
    for (body, says) in [
        (json!({"filter":{"status":"waiting"}}), "must be retrying, parked, paused or diverting"),
        (json!({"filter":{"status":"parked"},"key":"k1"}), "set beside a key or ref"),
        (json!({"filter":{}}), "status is absent, must be set"),
        (json!({"key":"k1","cursor":"x"}), "cursor is set, must be absent unless filter is set"),
        (json!({"filter":{"status":"parked"},"cursor":"x"}), "cursor is \"x\", must be the next of a page"),
        (json!({}), "or set filter"),
    ] {
        let told = value(&post(&client, &format!("{LANES}/retry"), body.clone()).await);
        assert!(told["detail"].as_str().unwrap().contains(says), "{body}: {told}");
    }
    program.stop().await;
}

/// More lanes than one call changes: it says so, and the next call goes on behind them.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_finds_more_than_a_call_changes_says_where_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, 1_100).await;
    park_all(&client, 1_100).await;
    let first = value(
        &post(&client, &format!("{LANES}/retry"), json!({"filter":{"status":"parked"},"dry_run":true})).await,
    );
    assert_eq!(first["count"], 1_000, "{first}");
    let next = json!({"filter":{"status":"parked"},"dry_run":true,"cursor":first["next"]});
    let second = value(&post(&client, &format!("{LANES}/retry"), next).await);
    assert_eq!(second, json!({"count":100,"applied":false}));
    let wrong = json!({"filter":{"status":"paused"},"cursor":first["next"]});
    let wrong = value(&post(&client, &format!("{LANES}/retry"), wrong).await);
    assert!(wrong["detail"].as_str().unwrap().contains("must be used for the same list"), "{wrong}");
    let done = value(&post(&client, &format!("{LANES}/retry"), json!({"filter":{"status":"parked"}})).await);
    assert_eq!((&done["count"], &done["applied"]), (&json!(1_000), &json!(true)), "{done}");
    seam::until("the lanes that are left", || async {
        (all(&client, LaneStatus::Parked).await.len() == 100).then_some(())
    })
    .await;
    program.stop().await;
}
