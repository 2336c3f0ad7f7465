//! CloudEvents 1.0, in the three ways they come over HTTP.

use serde_json::{Value, json};

use crate::program::{Program, paste};

async fn ready(program: &Program) -> String {
    let settings = serde_json::from_value(json!({"partitions":1})).unwrap();
    program.client().put_stream("orders", &settings).await.unwrap();
    format!("{}/v1/streams/orders/events", program.address())
}

fn post(options: &str, url: &str) -> Value {
    serde_json::from_str(&paste(format!("curl -s {options} {url}"))).unwrap()
}

const ATTRIBUTES: &str = r#""specversion":"1.0","source":"/shop","type":"order.paid""#;

#[tokio::test(flavor = "multi_thread")]
async fn structured_and_batched_events_have_key_dedup_id_and_headers() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let url = ready(&program).await;
    let structured = "-H 'Content-Type: application/cloudevents+json; charset=utf-8'";
    let one = format!(
        r#"{{{ATTRIBUTES},"id":"1","subject":"ann","time":"2026-11-16T18:00:00Z","data":{{"a" : 1}}}}"#
    );
    let told = post(&format!("{structured} -d '{one}'"), &url);
    assert_eq!(told["events"][0]["append"], "new", "{told}");
    let again = post(&format!("{structured} -d '{one}'"), &url);
    assert_eq!((&again["events"][0]["append"], &again["events"][0]["id"]), (&json!("duplicate"), &json!(1)));
    let batch = format!(
        r#"[{{{ATTRIBUTES},"id":"2","subject":"ann","partitionkey":"p"}},{{{ATTRIBUTES},"id":"3","data_base64":"AP8="}}]"#
    );
    let told = post(&format!("-H 'Content-Type: application/cloudevents-batch+json' -d '{batch}'"), &url);
    assert_eq!(told["events"].as_array().unwrap().len(), 2, "{told}");
    let client = program.client();
    let first = client.event("orders", 0, 1).await.unwrap();
    assert_eq!((first.key.as_deref(), first.kind.as_deref()), (Some("ann"), Some("order.paid")));
    assert_eq!(first.data.unwrap().get(), r#"{"a" : 1}"#);
    assert_eq!((&*first.headers["ce-source"], &*first.headers["ce-time"]), ("/shop", "2026-11-16T18:00:00Z"));
    assert_eq!(client.event("orders", 0, 2).await.unwrap().key.as_deref(), Some("p"));
    assert_eq!(client.event("orders", 0, 3).await.unwrap().data_b64.as_deref(), Some("AP8="));
    let wrong = post(&format!("{structured} -d '{}'", one.replace("1.0", "0.3")), &url);
    assert_eq!(
        (&wrong["code"], &wrong["detail"]),
        (&json!("invalid_value"), &json!("specversion is \"0.3\", must be \"1.0\""))
    );
    let absent = post(&format!("{structured} -d '{{\"specversion\":\"1.0\"}}'"), &url);
    assert_eq!(absent["detail"], "id is absent, must be set");
    program.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_events_have_their_attributes_in_headers_and_any_body() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::serve(folder.path()).await;
    let url = ready(&program).await;
    let headers = "-H 'ce-specversion: 1.0' -H 'ce-source: /shop' -H 'ce-type: order.paid'";
    let json =
        "-H 'ce-id: 1' -H 'ce-subject: Z%C3%BCrich/1' -H 'Content-Type: application/json' -d '{\"a\" : 1}'";
    let told = post(&format!("{headers} {json}"), &url);
    assert_eq!(told["events"][0]["append"], "new", "{told}");
    let image =
        "-H 'ce-id: 2' -H 'ce-n: 7' -H 'Content-Type: image/png' --data-binary \"$(printf '\\377x')\"";
    assert_eq!(post(&format!("{headers} {image}"), &url)["events"][0]["append"], "new");
    let client = program.client();
    let first = client.event("orders", 0, 1).await.unwrap();
    assert_eq!((first.key.as_deref(), first.data.unwrap().get()), (Some("Zürich/1"), r#"{"a" : 1}"#));
    let second = client.event("orders", 0, 2).await.unwrap();
    assert_eq!((second.key, second.data_b64.as_deref()), (None, Some("/3g=")));
    assert_eq!((&*second.headers["ce-datacontenttype"], &*second.headers["ce-n"]), ("image/png", "7"));
    let broken = "-H 'ce-id: 3' -H 'Content-Type: application/json' -d '{\"a\"'";
    assert_eq!(post(&format!("{headers} {broken}"), &url)["code"], "invalid_json");
    program.stop().await;
}
