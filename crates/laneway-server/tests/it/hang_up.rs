//! A client that hangs up in the middle of a change: the change is carried out all the same.

use http::Method;
use laneway_client::wire::EventDraft;

use crate::program::{Program, paste};
use crate::raw::Raw;
use crate::seam;

/// The handler says that it runs, and waits until the test lets it end.
const CONFIG: &str = r#"
[[stream]]
name = "orders"
partitions = 1

[[processor]]
name = "charge"
stream = "orders"
exec = ["sh", "-c", 'cat > /dev/null; echo began > began; read go < go']
"#;

#[tokio::test(flavor = "multi_thread")]
async fn removal_of_a_processor_survives_the_client_that_asked_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    paste(format!("mkfifo {}", go.display()));
    let program = Program::configured(folder.path(), CONFIG).await;
    let client = program.client();
    let event = EventDraft { key: Some("ann".to_owned()), ..EventDraft::default() };
    client.append("orders", &[event]).await.unwrap();
    seam::until("the handler", || async { folder.path().join("began").exists().then_some(()) }).await;
    let hung_up = Raw::call(&program, "DELETE /v1/processors/charge").await;
    let processor = "/v1/processors/charge";
    let view = async || client.send(Method::GET, processor, &[], None).await.unwrap();
    seam::until("the drain", || async {
        let view: serde_json::Value = serde_json::from_slice(&view().await.body).unwrap();
        (view["running"] == false).then_some(())
    })
    .await;
    drop(hung_up);
    // The server has seen the end of the connection once it has answered a call that came after it.
    client.send(Method::GET, "/livez", &[], None).await.unwrap();
    seam::beside(move || std::fs::write(go, "go\n").unwrap());
    seam::until("the removal", || async { (view().await.status == 404).then_some(()) }).await;
    assert_eq!(client.send(Method::GET, "/readyz", &[], None).await.unwrap().status, 200);
    program.stop().await;
}
