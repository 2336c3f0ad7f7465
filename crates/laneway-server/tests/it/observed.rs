//! What the server tells of itself: metrics, readiness, and traces that go on.

use std::collections::BTreeMap;

use laneway_client::wire::{ClaimRequest, EventDraft, ProcessorSettings, Readiness, Settle, StreamSettings};

use crate::program::{Program, paste};
use crate::seam;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Names and labels with their values.
fn metrics(program: &Program) -> BTreeMap<String, f64> {
    let text = paste(format!("curl -sf {}/metrics", program.address()));
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let pair = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(pair).collect()
}

async fn with_work(program: &Program) -> laneway_client::Client {
    let client = program.client();
    let one = StreamSettings { partitions: Some(1), ..StreamSettings::default() };
    client.put_stream("orders", &one).await.unwrap();
    let settings =
        ProcessorSettings { stream: "orders".to_owned(), pull: true, ..ProcessorSettings::default() };
    client.put_processor("charge", &settings).await.unwrap();
    let event = |key: &str| EventDraft { key: Some(key.to_owned()), ..EventDraft::default() };
    client.append("orders", &[event("a"), event("a"), event("b")]).await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_tell_what_happened_and_every_documented_name_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = with_work(&program).await;
    let wish = ClaimRequest { wait: Some("20s".to_owned()), ..ClaimRequest::default() };
    let claim = client.claim("charge", &wish).await.unwrap().claims.remove(0);
    let settle = serde_json::json!({"settlements": [{"claim": claim.claim, "outcome": "done"}]});
    let settle: Settle = serde_json::from_value(settle).unwrap();
    assert!(client.settle("charge", &settle).await.unwrap().settlements[0].accepted);

    let seat = r#"{stream="orders",processor="charge",partition="0""#;
    let lag = format!("laneway_lag_events{seat}}}");
    // Gauges are told about once a second.
    seam::until("the lag is told", async || (metrics(&program).get(&lag) == Some(&2.0)).then_some(())).await;
    let found = metrics(&program);
    let done = format!("laneway_events_processed_total{seat},outcome=\"done\"}}");
    let appended = r#"laneway_events_appended_total{stream="orders",partition="0"}"#;
    assert_eq!((found[appended], found[&done]), (3.0, 1.0));
    let version = format!("laneway_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(found[&version], 1.0);
    assert!(found[r#"laneway_store_op_duration_seconds_bucket{op="commit",le="+Inf"}"#] >= 1.0);
    let bounds = found
        .keys()
        .filter(|name| name.starts_with("laneway_store_op_duration_seconds_bucket{op=\"read\""))
        .count();
    assert_eq!(bounds, 13, "twelve bounds, and all");
    assert!(found["process_resident_memory_bytes"] > 1e6 && found["process_open_fds"] >= 3.0);

    let page = include_str!("../../../../docs/reference/metrics.md");
    let listed = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name))
        .filter(|name| !name.contains(' '));
    let exposed = paste(format!("curl -sf {}/metrics", program.address()));
    // These tell of what did not happen.
    let absent = [
        "laneway_store_errors_total",
        "laneway_faults_total",
        "laneway_dedup_evicted_total",
        "laneway_store_held_bytes",
    ];
    let missing: Vec<&str> = listed
        .clone()
        .filter(|name| !absent.contains(name) && !exposed.contains(&format!("# TYPE {name} ")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let typed = exposed
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ').map(|(name, _)| name));
    let unlisted: Vec<&str> = typed.filter(|name| !listed.clone().any(|listed| listed == *name)).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    assert!(exposed.contains("# HELP laneway_lag_events "), "what it means is told");

    let head = paste(format!("curl -sfi {}/metrics | tr -d '\\r'", program.address()));
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8\n"), "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_says_what_stands_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_work(&program).await;
    let told = || -> Readiness {
        serde_json::from_str(&paste(format!("curl -s '{}/readyz?verbose'", program.address()))).unwrap()
    };
    seam::until("its seat is owned", async || (told().seats_owned == 1).then_some(())).await;
    let told = told();
    assert!(told.ready && !told.draining && told.store == "answers", "{told:?}");
    assert_eq!(told.durability, "synced");
    for call in ["livez", "readyz", "startupz"] {
        assert_eq!(paste(format!("curl -sf {}/{call}", program.address())), "ok\n", "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_of_a_request_goes_on_with_its_event() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    with_work(&program).await;
    let append = |header: &str, key: &str| {
        let call = format!("{}/v1/streams/orders/events", program.address());
        paste(format!("curl -sf -H 'traceparent: {header}' --json '{{\"key\":\"{key}\"}}' {call}"))
    };
    append(PARENT, "traced");
    append("00-what", "not traced");
    let events = paste(format!("curl -sf '{}/v1/streams/orders/events?partition=0'", program.address()));
    let events: serde_json::Value = serde_json::from_str(&events).unwrap();
    let parent = |at: usize| events["events"][at]["headers"]["traceparent"].clone();
    assert_eq!([parent(3), parent(4)], [serde_json::json!(PARENT), serde_json::Value::Null], "{events}");
}
