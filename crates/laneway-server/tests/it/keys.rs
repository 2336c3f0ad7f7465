//! Keys are opaque: whatever they are, they come back as they were and have a lane of their own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use laneway_client::wire::{ClaimRequest, EventDraft, LaneRequest};

use crate::program::Program;

const ODD: [&[u8]; 9] = [
    b"ns/name",
    b"two\nlines",
    "\u{1f600} emoji".as_bytes(),
    b"{x}",
    b"a&b=c?d#e%25",
    b" ",
    b"../../etc",
    b"not \xff\xfe utf-8",
    b"zero\x00byte",
];

fn named(key: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(key) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(key))),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_keys_have_lanes_of_their_own_and_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    client.put_stream("odd", &serde_json::from_str(r#"{"partitions":3}"#).unwrap()).await.unwrap();
    client
        .put_processor("work", &serde_json::from_str(r#"{"stream":"odd","pull":true}"#).unwrap())
        .await
        .unwrap();
    for key in ODD {
        let (text, base64) = named(key);
        let event = EventDraft { key: text.clone(), key_b64: base64.clone(), ..EventDraft::default() };
        let appended = client.append("odd", &[event.clone(), event]).await.unwrap();
        let lane = client.lane("odd", key).await.unwrap();
        assert_eq!((lane.key.as_ref(), lane.key_b64.as_ref()), (text.as_ref(), base64.as_ref()), "{key:?}");
        assert_eq!((lane.last_seq, lane.pending), (2, 2), "{key:?}");
        let receipt = &appended.events[1];
        let event = client.event("odd", receipt.partition.unwrap(), receipt.id.unwrap()).await.unwrap();
        assert_eq!((event.key, event.key_b64, event.seq), (text.clone(), base64.clone(), Some(2)), "{key:?}");
        let wish = ClaimRequest { wait: Some("20s".to_owned()), ..ClaimRequest::default() };
        let claim = client.claim("work", &wish).await.unwrap().claims.remove(0);
        assert_eq!((claim.key, claim.key_b64), (text.clone(), base64.clone()), "{key:?}");
        let settle = serde_json::json!({"settlements":[{"claim":claim.claim,"outcome":"done"}]});
        client.settle("work", &serde_json::from_value(settle).unwrap()).await.unwrap();
        let lane = LaneRequest { key: text, key_b64: base64, ..LaneRequest::default() };
        assert!(client.skip_lane("odd", &lane).await.unwrap().applied, "{key:?}");
        assert_eq!(client.lane("odd", key).await.unwrap().pending, 0, "{key:?}");
    }
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_can_be_asked_for_in_base64() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::dev(folder.path(), &[]).await;
    let path = "/v1/streams/orders/lane?key_b64=%2F%2B8%3D";
    let answer = program.client().send(http::Method::GET, path, &[], None).await.unwrap();
    let lane: laneway_client::wire::Lane = answer.read().unwrap();
    assert_eq!((lane.key, lane.key_b64.as_deref()), (None, Some("/+8=")));
    program.stop().await;
}
