//! Events as they come, over connections that end.

use http::Method;
use http::header::{ACCEPT, HeaderName};
use laneway_client::{Client, Followed, Following};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::Program;
use crate::raw::Raw;
use crate::seam;

async fn ready(program: &Program, partitions: u32) -> Client {
    let client = program.client();
    let settings = serde_json::from_value(json!({"partitions":partitions})).unwrap();
    client.put_stream("orders", &settings).await.unwrap();
    client
}

async fn append(client: &Client, keys: impl IntoIterator<Item = u32>) {
    let events: Vec<_> = keys
        .into_iter()
        .map(|key| serde_json::from_value(json!({"key":format!("k{key}"),"data":key})).unwrap())
        .collect();
    client.append("orders", &events).await.unwrap();
}

async fn next(following: &mut Following) -> Followed {
    seam::guarded("an event", following.next()).await.unwrap().expect("it goes on")
}

async fn references(following: &mut Following, count: usize) -> Vec<String> {
    let mut references = Vec::new();
    while references.len() < count {
        match next(following).await {
            Followed::Event(event) => references.push(event.reference),
            other => panic!("{other:?}"),
        }
    }
    references
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_begins_where_it_says_and_ends_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::serve(folder.path()).await;
    let client = ready(&program, 1).await;
    append(&client, 0..5).await;
    let mut now = client.follow("orders", Some(0), None).await.unwrap();
    let mut third = client.follow("orders", Some(0), Some("0:3")).await.unwrap();
    assert_eq!(references(&mut third, 2).await, ["orders/0/4", "orders/0/5"]);
    append(&client, [9]).await;
    assert_eq!(references(&mut now, 1).await, ["orders/0/6"]);
    let call = "GET /v1/streams/orders/events?key=k9&after=0&heartbeat=1s\nAccept: text/event-stream";
    let mut lane = Raw::call(&program, call).await;
    let said = lane.until("orders/0/6").await;
    assert!(said.contains("retry: 1000\n\n") && !said.contains("orders/0/5"), "{said}");
    // Nothing comes, and it is told so, with its place.
    lane.until(": nothing new\nid: 0:6\n\n").await;
    program.signal(Signal::TERM);
    let Followed::Ended(why) = next(&mut now).await else { panic!("the server ends") };
    assert_eq!(serde_json::from_str::<Value>(&why).unwrap()["code"], "shutting_down");
    assert!(seam::guarded("the end", now.next()).await.unwrap().is_none());
    drop((third, lane));
    assert!(program.ended().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn places_that_cannot_be_followed_are_refused_and_followers_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, 2).await;
    let ask = async |query: &str, last: Option<&str>| {
        let mut headers = vec![(ACCEPT, "text/event-stream")];
        headers.extend(last.map(|last| (HeaderName::from_static("last-event-id"), last)));
        let path = format!("/v1/streams/orders/events{query}");
        let answer = client.send(Method::GET, &path, &headers, None).await.unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    for (query, last, says) in [
        ("", Some("soon"), "Last-Event-ID is \"soon\", must be the id of an event"),
        ("", Some("0:1"), "must be once about partition 1"),
        ("", Some("0:1,1:1,9:1"), "must be about partitions 0 to 1"),
        ("?after=7", None, "query after is 7, must be 0 over several partitions"),
        ("?partition=2", None, "must be 0 to 1"),
        ("?partition=0&key=a", None, "set beside key"),
        ("?heartbeat=1ms", None, "must be 1s to 1m"),
        ("?limit=7", None, "query \"limit\" is not known"),
    ] {
        let told = ask(query, last).await;
        assert!(told["detail"].as_str().unwrap().contains(says), "{query} {last:?}: {told}");
    }
    let mut followers = Vec::new();
    for _ in 0..256 {
        followers.push(client.follow("orders", None, None).await.unwrap());
    }
    let refused = client.follow("orders", None, None).await.unwrap_err();
    assert_eq!(refused.code(), Some("too_many_followers"));
    // Who goes away makes room for the next.
    drop(followers.pop());
    append(&client, 0..2).await;
    seam::until("room for another follower", || async { client.follow("orders", None, None).await.ok() })
        .await;
    drop(followers);
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_below_the_trim_is_told_where_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = program.client();
    let settings = serde_json::from_value(json!({"partitions":1,"keep":"1ms"})).unwrap();
    client.put_stream("orders", &settings).await.unwrap();
    append(&client, 0..5).await;
    let refused = seam::until("retention", || async {
        append(&client, [1]).await;
        client.follow("orders", Some(0), Some("0:1")).await.err()
    })
    .await;
    assert_eq!(refused.code(), Some("event_trimmed"));
    assert!(refused.to_string().contains("the first event still there is"), "{refused}");
    let page = client.events("orders", 0, 1, 10).await.unwrap_err();
    assert_eq!(page.code(), Some("event_trimmed"));
    program.stop().await;
}

/// An answer in chunks, to its end.
async fn whole_answer(raw: &mut Raw) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n0\r\n\r\n") {
        let more = raw.more("the end").await;
        assert!(!more.is_empty(), "the connection ended before the answer");
        answer.extend_from_slice(&more);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_reads_nothing_is_dropped_with_a_reason_and_holds_up_nobody() {
    const EVENTS: usize = 160;
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let client = ready(&program, 1).await;
    let call = "GET /v1/streams/orders/events?after=0\nAccept: text/event-stream";
    let mut deaf = Raw::call(&program, call).await;
    let mut reading = client.follow("orders", Some(0), None).await.unwrap();
    // More than all the buffers between the two have room for.
    let large = "x".repeat(200 << 10);
    for _ in 0..EVENTS {
        let event = serde_json::from_value(json!({"key": "ann", "data": large})).unwrap();
        client.append("orders", &[event]).await.unwrap();
        references(&mut reading, 1).await;
    }
    // Who follows with a heartbeat hears that nothing came for longer than anybody is waited for.
    let call =
        format!("GET /v1/streams/orders/events?after=0:{EVENTS}&heartbeat=31s\nAccept: text/event-stream");
    Raw::call(&program, &call).await.until(": nothing new").await;
    let metrics = client.send(Method::GET, "/metrics", &[], None).await.unwrap();
    assert!(String::from_utf8_lossy(&metrics.body).contains("laneway_followers_dropped_total 1\n"));
    let answer = whole_answer(&mut deaf).await;
    let (events, told) = answer.rsplit_once("event: dropped\ndata: ").expect("it is told");
    let told: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    assert_eq!(told["reason"], "nothing was taken for 30s");
    let (_, last) = events.rsplit_once("\nid: 0:").expect("it had room for some");
    let seen: usize = last.lines().next().unwrap().parse().unwrap();
    assert_eq!(told["at"], format!("0:{seen}"), "the last that it got");
    // It comes back where it was.
    let place = told["at"].as_str().unwrap();
    let mut back = client.follow("orders", Some(0), Some(place)).await.unwrap();
    let next = references(&mut back, 1).await;
    assert!(seen < EVENTS && next == [format!("orders/0/{}", seen + 1)], "{place}: {next:?}");
    program.stop().await;
}
