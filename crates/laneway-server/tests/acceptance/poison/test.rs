//! An event that can never be done parks its own lane, and nobody else's, until somebody decides.

use serde_json::json;

use crate::support::{Http, Server};

async fn parked_lanes(http: &Http) -> Vec<String> {
    let lanes = http.get("/v1/streams/orders/lanes?status=parked").await;
    let lanes = lanes["items"].as_array().unwrap_or_else(|| panic!("{lanes}")).clone();
    lanes.iter().map(|lane| lane["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_parks_its_own_lane_and_no_other() {
    poison(Server::start("", "").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_parks_its_own_lane_through_any_node() {
    poison(Server::start_three("", "").await).await;
}

async fn poison(mut server: Server) {
    let http = server.http();
    let others: Vec<String> = (0..24).map(|number| format!("lane-{number}")).collect();
    let send = async |number: u32| {
        let keys = others.iter().map(String::as_str).chain(["bad"]);
        let events =
            keys.map(|key| json!({"key":key,"data":{"n":number,"poison":key == "bad" && number == 2}}));
        http.done("/v1/streams/orders/events", events.collect()).await;
    };
    for number in 1..=5 {
        send(number).await;
    }
    server.finish(others.clone()).await;
    let behind = http.done("/v1/streams/orders/jobs", json!({"key":"bad","data":{}})).await;
    for after_a_kill in [false, true] {
        if after_a_kill {
            server.kill_and_start().await;
            send(6).await;
            server.finish(others.clone()).await;
        }
        assert_eq!(parked_lanes(&http).await, ["bad"]);
        let lane = http.get("/v1/streams/orders/lane?key=bad").await;
        let told = &lane["processors"][0];
        assert_eq!((&told["status"], &told["why"]["code"]), (&json!("parked"), &json!("parked")), "{lane}");
        assert!(told["why"]["detail"].as_str().unwrap().contains("poison"), "{lane}");
    }
    let ran = |key: &str| -> Vec<u64> {
        let steps = server.steps().into_iter();
        steps.filter(|step| step.key == key && step.outcome.is_some()).map(|step| step.seq).collect()
    };
    assert_eq!(ran("bad"), [1, 2], "nothing behind the poison");
    for other in &others {
        assert_eq!(ran(other), (1..=8).collect::<Vec<_>>(), "{other}");
    }
    // Tried again it parks again; passed over it lets the rest go, in order.
    let wish = json!({"key":"bad"});
    assert_eq!(http.done("/v1/streams/orders/lanes/retry", wish.clone()).await["applied"], true);
    crate::seam::until("the second run of the poison", || {
        std::future::ready((ran("bad").len() == 3).then_some(()))
    })
    .await;
    crate::seam::until("the lane to park again", || async {
        (parked_lanes(&http).await == ["bad"]).then_some(())
    })
    .await;
    assert_eq!(http.done("/v1/streams/orders/lanes/skip", wish).await["applied"], true);
    assert_eq!(http.ended(&behind).await["status"], "done");
    assert_eq!(http.submit(json!({"key":"bad","data":{}})).await["status"], "done");
    assert_eq!(ran("bad"), [1, 2, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(parked_lanes(&http).await, Vec::<String>::new());
    println!("1 lane of {} parked, {} events of the others done", others.len() + 1, 8 * others.len());
    server.stop().await;
}
