//! Keys are opaque: whatever they are, they come back as they were and have a lane of their own, over a kill too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Callers, Server};

const ODD: [&[u8]; 14] = [
    b"ns/name",
    b"ns%2Fname",
    b"{x}",
    b"two\nlines",
    b"two\r\nlines",
    "\u{1f600} emoji".as_bytes(),
    "e\u{301}".as_bytes(),
    "\u{e9}".as_bytes(),
    b"a&b=c?d#e%25",
    b" ",
    b"../../etc",
    b"not \xff\xfe utf-8",
    b"zero\x00byte",
    &[b'k'; 512],
];

/// The fields that name a key: text where it is text, else base64.
fn named(key: &[u8], rest: Value) -> Value {
    let (name, text) = match std::str::from_utf8(key) {
        Ok(text) => ("key", text.to_owned()),
        Err(_) => ("key_b64", STANDARD.encode(key)),
    };
    let mut fields = rest;
    fields[name] = json!(text);
    fields
}

/// The key as a query names it: every byte of its base64 that is no letter or digit is escaped.
fn query(key: &[u8]) -> String {
    let escaped = STANDARD.encode(key).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    format!("/v1/streams/odd/lane?key_b64={escaped}")
}

fn check_key(key: &[u8], told: &Value) {
    for (field, value) in named(key, json!({})).as_object().unwrap() {
        assert_eq!(&told[field], value, "{key:?}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_keys_have_lanes_of_their_own_and_come_back_as_they_were() {
    odd_keys(Server::empty().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_keys_come_back_as_they_were_through_any_node() {
    odd_keys(Server::empty_three().await).await;
}

async fn odd_keys(mut server: Server) {
    let (http, mut callers) = (server.http(), Callers::new(&server));
    http.put("/v1/streams/odd", json!({"partitions":3})).await;
    http.put("/v1/processors/work", json!({"stream":"odd","pull":true})).await;
    for (key, number) in ODD.iter().zip(0..) {
        let event = named(key, json!({"data":number}));
        let appended = callers.done("/v1/streams/odd/events", json!([event, event])).await;
        let reference = appended["events"][1]["ref"].as_str().unwrap();
        let place = reference.strip_prefix("odd/").unwrap();
        let event = callers.get(&format!("/v1/streams/odd/events/{place}")).await;
        check_key(key, &event);
        assert_eq!((&event["seq"], &event["data"]), (&json!(2), &json!(number)), "{key:?}");
        let claim = callers.claim("work", 2).await;
        check_key(key, &claim);
        // The first is done, and the second one has an hour.
        let first = &claim["events"][0]["id"];
        let settlement = json!({"claim":claim["claim"],"outcome":"retry","through":first,"retry_after":"1h"});
        let settle = json!({"settlements":[settlement]});
        assert_eq!(
            callers.done("/v1/processors/work/settle", settle).await["settlements"][0]["accepted"],
            true
        );
    }
    server.kill_and_start().await;
    let (http, mut callers) = (server.http(), Callers::new(&server));
    for key in ODD {
        let lane = callers.get(&query(key)).await;
        check_key(key, &lane);
        assert_eq!((&lane["last_seq"], &lane["pending"]), (&json!(2), &json!(1)), "{key:?}");
        let skipped = callers.done("/v1/streams/odd/lanes/skip", named(key, json!({}))).await;
        assert_eq!(skipped["applied"], true, "{key:?}: {skipped}");
        assert_eq!(callers.get(&query(key)).await["pending"], 0, "{key:?}");
    }
    for (event, says) in [
        (json!({"key":"k".repeat(513)}), "512"),
        (json!({"key_b64":STANDARD.encode([0; 513])}), "512"),
        (json!({"key":"a","key_b64":"YQ=="}), "key_b64"),
        (json!({"key_b64":"no base64!"}), "key_b64"),
    ] {
        let said = http.post("/v1/streams/odd/events", event).await;
        assert_eq!((said.status, &said.body["code"]), (400, &json!("invalid_value")), "{said:?}");
        assert!(said.body["detail"].as_str().unwrap().contains(says), "{said:?}");
    }
    println!("{} odd keys, each with a lane of its own", ODD.len());
    server.stop().await;
}
