//! A folder has one server: a second one is refused at once, with the reason, and harms nobody.

use serde_json::json;

use crate::program::{Program, run};
use crate::support::Http;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_a_folder_is_refused_and_told_who_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = Program::serve(folder.path()).await;
    let http = Http::new(first.address());
    http.put("/v1/streams/orders", json!({"partitions":1})).await;
    http.done("/v1/streams/orders/events", json!({"key":"a","data":1})).await;
    let holder = std::fs::read_to_string(folder.path().join("data/LOCK")).unwrap();
    let pid: String =
        holder.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let serve = ["serve", "--store", "file:./data", "--listen", "127.0.0.1:0"];
    for (args, code) in [(&serve[..], 1), (&["store", "verify", "file:./data"], 1)] {
        let second = run(folder.path(), args);
        let told = String::from_utf8(second.stderr).unwrap();
        assert_eq!(second.status.code(), Some(code), "{told}");
        assert!(second.stdout.is_empty(), "{args:?} is not ready");
        assert!(told.contains("in use") && told.contains(&pid) && told.contains("data"), "{args:?}: {told}");
    }
    http.done("/v1/streams/orders/events", json!({"key":"a","data":2})).await;
    first.stop().await;

    let next = Program::serve(folder.path()).await;
    let events = Http::new(next.address()).events("orders").await;
    let data: Vec<u64> = events.iter().map(|event| event["data"].as_u64().unwrap()).collect();
    assert_eq!(data, [1, 2], "who was refused has changed nothing");
    next.stop().await;
}
