//! Keys that are no text.

use crate::program::Program;

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
