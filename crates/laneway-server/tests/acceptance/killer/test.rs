//! A handler that takes the whole server with it is parked after its limit, and only it.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::Program;
use crate::seam;
use crate::support::Http;

const CONFIG: &str = r#"
[[stream]]
name = "orders"
partitions = 2

[[processor]]
name = "charge"
stream = "orders"
exec = ["sh", "-c", 'read data; echo "$LANEWAY_KEY $data" >> runs; if [ "$data" = 666 ]; then kill -9 $PPID; fi']
"#;
/// Crashes that are counted before an event is parked.
const LIMIT: usize = 3;

/// A server that may be killed as soon as it is ready, and where it listens.
async fn start(folder: &Path, listen: &str) -> (Program, String) {
    let program = Program::start(folder, &["serve", "--store", "file:./data", "--listen", listen]);
    let ready = program.line("ready ").await;
    let address = ready.strip_prefix("ready http://").unwrap().to_owned();
    (program, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_kills_the_server_is_parked_and_only_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("laneway.toml"), CONFIG).unwrap();
    let (mut program, address) = start(folder.path(), "127.0.0.1:0").await;
    let http = Http::new(&format!("http://{address}"));
    let innocent: Vec<String> = (0..12).map(|number| format!("lane-{number}")).collect();
    let events = |data: u32| innocent.iter().map(move |key| json!({"key":key,"data":data}));
    http.done("/v1/streams/orders/events", events(1).collect()).await;
    // The whole call is answered before any of it can run: it was one append per partition.
    let killer = [json!({"key":"killer","data":666}), json!({"key":"killer","data":7})];
    let sent =
        http.try_call(http::Method::POST, "/v1/streams/orders/events", &[], Some(&json!(killer))).await;
    let acknowledged = sent.is_some();

    let mut kills = 0;
    let parked = loop {
        let end = async {
            let status = program.ended().await;
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
        };
        let parked = seam::until("the killer to park", || async {
            let path = "/v1/streams/orders/lane?key=killer";
            let lane = http.try_call(http::Method::GET, path, &[], None).await?.body;
            (lane["processors"][0]["status"] == "parked").then_some(lane)
        });
        tokio::select! {
            () = end => {}
            lane = parked => break lane,
        }
        kills += 1;
        assert!(kills <= 2 * LIMIT, "the killer is never parked");
        program = start(folder.path(), &address).await.0;
        // It may be dead again before it has these.
        let more: Value = events(10 + u32::try_from(kills).unwrap()).collect();
        drop(http.try_call(http::Method::POST, "/v1/streams/orders/events", &[], Some(&more)).await);
    };
    let why = parked["processors"][0]["why"]["detail"].as_str().unwrap();
    println!("{kills} kills, the killer is parked: {why}");
    assert!(acknowledged || kills > 0);
    assert!((LIMIT..=LIMIT + 1).contains(&kills), "{kills}");
    for key in &innocent {
        let job = http.submit(json!({"key":key,"data":99})).await;
        assert_eq!(job["status"], "done", "{job}");
    }
    let lanes = http.get("/v1/streams/orders/lanes?status=parked").await;
    assert_eq!(lanes["items"].as_array().unwrap().len(), 1, "{lanes}");
    // What follows it runs when somebody passes it over.
    assert_eq!(http.done("/v1/streams/orders/lanes/skip", json!({"key":"killer"})).await["applied"], true);
    assert_eq!(http.submit(json!({"key":"killer","data":8})).await["status"], "done");
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    let killed: Vec<&str> = runs.lines().filter(|run| run.starts_with("killer ")).collect();
    assert_eq!(&killed[killed.len() - 2..], ["killer 7", "killer 8"], "{killed:?}");
    assert_eq!(killed.len(), kills + 2, "{killed:?}");
    program.stop().await;
}
