//! Dead letters come back where that keeps the order of their lane, and are refused where it would not.

use serde_json::{Value, json};

use crate::seam;
use crate::support::{Http, Server};

/// Appends events of one lane that are given up as long as a file is missing, and one that is done where it says so.
async fn lane(server: &Server, key: &str, dead: &[bool]) -> Vec<String> {
    let http = server.http();
    let events = dead
        .iter()
        .map(|dead| json!({"key":key,"data":if *dead { json!({"until":"mended"}) } else { json!({}) }}));
    let told = http.done("/v1/streams/orders/events", events.collect()).await;
    let told = told["events"].as_array().unwrap().iter();
    told.map(|told| told["ref"].as_str().unwrap().to_owned()).collect()
}

async fn redrive(http: &Http, wish: Value) -> Value {
    http.post("/v1/dead-letters/redrive", wish).await.body
}

async fn dead_letters(http: &Http, count: usize) {
    seam::until("the dead letters", || async {
        let letters = http.get("/v1/dead-letters?stream=orders").await;
        (letters["items"].as_array().unwrap().len() == count).then_some(())
    })
    .await;
}

/// The numbers of a lane that were done, in the order in which they were.
fn done(server: &Server, key: &str) -> Vec<u64> {
    let steps = server.steps().into_iter().filter(|step| step.key == key);
    steps.filter(|step| step.outcome.as_deref() == Some("done")).map(|step| step.seq).collect()
}

async fn job_of_lane(http: &Http, key: &str) {
    let job = http.submit(json!({"key":key,"data":{}})).await;
    assert_eq!(job["status"], "done", "{job}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_comes_back_in_place_only_as_the_last_of_its_lane() {
    one_letter(Server::start("", "on_failure = \"dead_letter\"").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_comes_back_through_any_node() {
    one_letter(Server::start_three("", "on_failure = \"dead_letter\"").await).await;
}

async fn one_letter(server: Server) {
    let http = server.http();
    let overtaken = lane(&server, "ann", &[true, false]).await.remove(0);
    let last = lane(&server, "bob", &[false, true]).await.remove(1);
    dead_letters(&http, 2).await;
    seam::until("what came after it", || std::future::ready((done(&server, "ann") == [2]).then_some(())))
        .await;
    std::fs::write(server.folder().join("mended"), "").unwrap();

    let refused = redrive(&http, json!({"refs":[overtaken]})).await;
    assert_eq!(refused["count"], 0, "{refused}");
    assert_eq!(refused["items"][0]["code"], "successors_done", "{refused}");
    let back = redrive(&http, json!({"refs":[last]})).await;
    assert_eq!(back["count"], 1, "{back}");
    let tail = redrive(&http, json!({"refs":[overtaken],"to":"tail"})).await;
    assert_eq!(tail["count"], 1, "{tail}");
    job_of_lane(&http, "ann").await;
    job_of_lane(&http, "bob").await;
    assert_eq!(done(&server, "ann"), [2, 3, 4], "a copy at the end of its lane");
    assert_eq!(done(&server, "bob"), [1, 2, 3], "in its own place");
    dead_letters(&http, 0).await;
    let unknown = redrive(&http, json!({"refs":[last]})).await;
    assert_eq!(unknown["items"][0]["code"], "dead_letter_not_found", "{unknown}");
    println!("2 dead letters: 1 refused in place and taken at the tail, 1 taken in place");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_of_dead_letters_comes_back_as_a_whole_and_in_order() {
    whole_lane(Server::start("", "on_failure = \"dead_letter_lane\"").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_of_dead_letters_comes_back_through_any_node() {
    whole_lane(Server::start_three("", "on_failure = \"dead_letter_lane\"").await).await;
}

async fn whole_lane(mut server: Server) {
    let http = server.http();
    let refs = lane(&server, "ann", &[true, false, false, false]).await;
    dead_letters(&http, 4).await;
    server.kill_and_start().await;
    let http = server.http();
    std::fs::write(server.folder().join("mended"), "").unwrap();
    for (wish, code) in [(&refs[2..3], "earlier_dead"), (&refs[..2], "whole_lane")] {
        let refused = redrive(&http, json!({"refs":wish})).await;
        assert_eq!(refused["count"], 0, "{refused}");
        let codes: Vec<&str> =
            refused["items"].as_array().unwrap().iter().filter_map(|item| item["code"].as_str()).collect();
        assert!(codes.contains(&code), "{code}: {refused}");
    }
    assert_eq!(done(&server, "ann"), Vec::<u64>::new(), "a refusal changes nothing");
    let back = redrive(&http, json!({"filter":{"processor":"charge","key":"ann"}})).await;
    assert_eq!(back["count"], 4, "{back}");
    job_of_lane(&http, "ann").await;
    assert_eq!(done(&server, "ann"), [1, 2, 3, 4, 5]);
    println!("4 dead letters of a lane: refused in part, taken as a whole");
    server.stop().await;
}
